#include "cli/samples_of_trace.h"

#include <fmt/format.h>
#include <time.h>

#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "cli/analysis_input.h"
#include "cli/recording_input.h"
#include "perfdata/record.h"
#include "symbolize/symbolizer.h"
#include "tracedata/trace_writer.h"

namespace stackreel::cli {

namespace {

std::string PathOf(const std::string& directory) {
  return directory + "/" + tracedata::kSamplesFile;
}

bool HasSamples(const std::string& directory) {
  std::error_code error;
  return std::filesystem::exists(PathOf(directory), error);
}

std::string ClockName(const perfdata::Attr& attr) {
  if ((attr.flags & perfdata::kAttrUseClockid) == 0) return "";
  return attr.clockid == CLOCK_MONOTONIC ? "CLOCK_MONOTONIC"
                                         : fmt::format("clock {}", attr.clockid);
}

class SampleCount : public perfdata::RecordSink {
 public:
  explicit SampleCount(const perfdata::Reader& reader) : reader_(reader) {}
  Status OnRecord(const perfdata::RawRecord& raw) override {
    using perfdata::RecordType;
    const auto type = raw.record_type();
    if (type == RecordType::kSample) ++samples;
    if (type != RecordType::kLost && type != RecordType::kLostSamples) return {};
    const auto event = reader_.events().IndexOf(raw, reader_.endian());
    const perfdata::RecordContext context{
        reader_.endian(), event ? &reader_.events().events()[*event].attr : nullptr};
    const auto record = perfdata::DecodeRecord(raw, context);
    if (!record) return {};
    if (const auto* body = std::get_if<perfdata::Lost>(&record->body)) lost += body->lost;
    if (const auto* body = std::get_if<perfdata::LostSamples>(&record->body)) lost += body->lost;
    return {};
  }
  uint64_t samples = 0, lost = 0;

 private:
  const perfdata::Reader& reader_;
};

class TimedSamples : public analyze::AnalysisSink {
 public:
  explicit TimedSamples(analyze::Analysis& analysis) : analysis_(analysis) {}
  Status OnSample(const analyze::AnalyzedSample& sample) override {
    analyze::TimedSample timed{
        .time = sample.sample->time, .pid = sample.pid, .tid = sample.tid, .function = "[unknown]"};
    if (!sample.frames.empty()) {
      const analyze::AnalyzedFrame& top = sample.frames.front();
      const bool named = !top.symbols.empty() && top.symbols.front().function != 0;
      timed.function =
          named ? std::string(analysis_.symbolizer().strings().Text(top.symbols.front().function))
                : fmt::format("{:#x}", top.address.avma.value);
    }
    samples.push_back(std::move(timed));
    return {};
  }
  std::vector<analyze::TimedSample> samples;

 private:
  analyze::Analysis& analysis_;
};

}  // namespace

Result<std::string> SamplesOfTrace(const std::string& directory) {
  if (HasSamples(directory)) return PathOf(directory);
  return Fail(Error(ErrorKind::kNotFound, "there are no samples beside this trace")
                  .At(directory)
                  .WithCure("stackreel trace --with-samples … records both"));
}

Result<std::optional<views::TraceSamples>> DescribeSamplesOfTrace(const std::string& directory) {
  if (!HasSamples(directory)) return std::nullopt;
  TRY_ASSIGN(const RecordingInput input, OpenRecording(PathOf(directory)));
  SampleCount count(*input.reader);
  TRY(input.reader->ReadAll(count));
  views::TraceSamples samples{.file = tracedata::kSamplesFile,
                              .samples = count.samples,
                              .lost = count.lost,
                              .event = {},
                              .clock = {}};
  const auto& events = input.reader->events().events();
  if (!events.empty()) {
    samples.event = events.front().name;
    samples.clock = ClockName(events.front().attr);
  }
  return samples;
}

Result<std::vector<analyze::TimedSample>> ReadTimedSamples(const std::string& directory,
                                                           const GlobalOptions& global) {
  AnalysisInput input;
  CLI::App as_given_without_options;
  input.AddOptions(as_given_without_options);
  TRY_ASSIGN(std::string path, SamplesOfTrace(directory));
  input.set_input(std::move(path));
  TRY(input.Open(global, {}));
  TimedSamples sink(input.analysis());
  TRY(input.Run(sink));
  return std::move(sink.samples);
}

}  // namespace stackreel::cli
