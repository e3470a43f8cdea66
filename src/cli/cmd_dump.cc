// stackreel dump: a recording as it is, record by record.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analyze/trace_profile.h"
#include "cli/command.h"
#include "cli/progress.h"
#include "cli/recording_input.h"
#include "cli/samples_of_trace.h"
#include "cli/trace_input.h"
#include "os/file.h"
#include "perfdata/dump.h"
#include "perfdata/reader.h"
#include "views/flame_graph.h"
#include "views/trace_dump.h"

namespace stackreel::cli {
namespace {

using perfdata::RawRecord;
using perfdata::RecordType;

// Gathers lines and writes them in large pieces.
class LineOutput {
 public:
  explicit LineOutput(ByteSink& sink) : sink_(sink) {}
  Status Line(std::string_view line) {
    text_.append(line);
    text_ += '\n';
    return text_.size() < kPiece ? Status() : Flush();
  }
  Status Flush() {
    TRY(sink_.Write(AsBytes(text_)));
    text_.clear();
    return {};
  }

 private:
  static constexpr size_t kPiece = size_t{256} << 10;
  ByteSink& sink_;
  std::string text_;
};

// "2026-11-30 03:38:29 UTC".
std::string UtcText(std::filesystem::file_time_type time) {
  const auto since = std::chrono::file_clock::to_sys(time).time_since_epoch();
  const int64_t seconds = std::chrono::duration_cast<std::chrono::seconds>(since).count();
  return perfdata::DateText(static_cast<uint64_t>(std::max<int64_t>(seconds, 0))) + " UTC";
}

const perfdata::Attr* AttrOf(const perfdata::Reader& reader, const RawRecord& raw) {
  const std::optional<uint32_t> event = reader.events().IndexOf(raw, reader.endian());
  return event ? &reader.events().events()[*event].attr : nullptr;
}

// Prints each record.
class RecordLines : public perfdata::RecordSink {
 public:
  RecordLines(const perfdata::Reader& reader, LineOutput& out, bool raw_bytes)
      : reader_(reader), out_(out), raw_bytes_(raw_bytes) {}
  Status OnRecord(const RawRecord& raw) override {
    const perfdata::DumpContext context{reader_.endian(), AttrOf(reader_, raw),
                                        reader_.features().arch, raw_bytes_};
    for (const std::string& line : perfdata::DumpRecord(raw, context)) TRY(out_.Line(line));
    return {};
  }

 private:
  const perfdata::Reader& reader_;
  LineOutput& out_;
  bool raw_bytes_;
};

// Counts records and passes each on.
class RecordCounts : public perfdata::RecordSink {
 public:
  explicit RecordCounts(const perfdata::Reader& reader) : reader_(reader) {}
  void PassOnTo(perfdata::RecordSink* next) { next_ = next; }
  Status OnRecord(const RawRecord& raw) override;
  Status Print(const perfdata::ReadEnd& end, LineOutput& out) const;

 private:
  struct Count {
    uint64_t records = 0, bytes = 0;
  };
  void CountLoss(const RawRecord& raw, const perfdata::Attr* attr);

  const perfdata::Reader& reader_;
  perfdata::RecordSink* next_ = nullptr;
  std::map<uint32_t, Count> types_;
  std::map<uint32_t, Count> samples_;  // by event
  uint64_t lost_records_ = 0, lost_samples_ = 0, damaged_ = 0;
};

Status RecordCounts::OnRecord(const RawRecord& raw) {
  Count& type = types_[raw.type];
  ++type.records;
  type.bytes += raw.bytes.size() + raw.extra_size;
  if (raw.record_type() == RecordType::kSample) {
    Count& event = samples_[reader_.events().IndexOf(raw, reader_.endian()).value_or(0)];
    ++event.records;
    event.bytes += raw.bytes.size();
  } else {
    CountLoss(raw, AttrOf(reader_, raw));
  }
  return next_ == nullptr ? Status() : next_->OnRecord(raw);
}

void RecordCounts::CountLoss(const RawRecord& raw, const perfdata::Attr* attr) {
  const bool tells_loss =
      raw.record_type() == RecordType::kLost || raw.record_type() == RecordType::kLostSamples;
  if (!tells_loss) return;
  const Result<perfdata::Record> record = perfdata::DecodeRecord(raw, {reader_.endian(), attr});
  if (!record) {
    ++damaged_;
    return;
  }
  if (const auto* lost = std::get_if<perfdata::Lost>(&record->body)) lost_records_ += lost->lost;
  if (const auto* lost = std::get_if<perfdata::LostSamples>(&record->body)) {
    lost_samples_ += lost->lost;
  }
}

Status RecordCounts::Print(const perfdata::ReadEnd& end, LineOutput& out) const {
  TRY(out.Line(fmt::format("{:<22} {:>12} {:>16}", "record", "count", "bytes")));
  Count all;
  for (const auto& [type, count] : types_) {
    TRY(out.Line(fmt::format("{:<22} {:>12} {:>16}", perfdata::RecordTypeName(type), count.records,
                             count.bytes)));
    all.records += count.records;
    all.bytes += count.bytes;
  }
  TRY(out.Line(fmt::format("{:<22} {:>12} {:>16}", "all", all.records, all.bytes)));
  TRY(out.Line(""));
  TRY(out.Line(fmt::format("{:<22} {:>12} {:>16}  {}", "event", "samples", "bytes", "ids")));
  for (uint32_t i = 0; i < reader_.events().events().size(); ++i) {
    const perfdata::Event& event = reader_.events().events()[i];
    const auto counted = samples_.find(i);
    const Count count = counted == samples_.end() ? Count() : counted->second;
    TRY(out.Line(fmt::format("{:<22} {:>12} {:>16}  {}", event.name, count.records, count.bytes,
                             event.ids.size())));
  }
  TRY(out.Line(""));
  TRY(out.Line(fmt::format("lost records: {}", lost_records_)));
  TRY(out.Line(fmt::format("lost samples: {}", lost_samples_)));
  if (damaged_ != 0) TRY(out.Line(fmt::format("damaged records of loss: {}", damaged_)));
  if (end.compressed_bytes != 0) {
    TRY(out.Line(fmt::format(
        "compressed: {} bytes to {}, {:.1f}:1", end.decompressed_bytes, end.compressed_bytes,
        static_cast<double>(end.decompressed_bytes) / static_cast<double>(end.compressed_bytes))));
  }
  for (const perfdata::ReadEnd::PassedOver& bytes : end.passed_over) {
    TRY(out.Line(fmt::format("damaged: {} bytes at {:#x} to {:#x} are no records",
                             bytes.end - bytes.start, bytes.start, bytes.end)));
  }
  if (end.unfinished) TRY(out.Line("unfinished: the recorder did not end"));
  for (const auto& [name, value] : reader_.counters().values()) {
    TRY(out.Line(fmt::format("{}: {}", name, value)));
  }
  return {};
}

class DumpCommand : public Command {
 public:
  [[nodiscard]] const char* name() const override { return "dump"; }
  [[nodiscard]] const char* summary() const override {
    return "Print a recording as it is: each record, each field, where it lies";
  }
  [[nodiscard]] std::vector<std::string> examples() const override {
    return {"stackreel dump perf.data | less   # all records",
            "stackreel dump --header           # what is known of machine, command and events",
            "stackreel dump --stats            # records, bytes, samples, losses",
            "stackreel dump -D                 # with all bytes in hex",
            "stackreel dump -i stackreel.trace --format=chrome > trace.json # for Perfetto"};
  }
  void AddOptions(CLI::App& app) override {
    app.add_option("-i,--input,FILE", input_, "The recording; - is standard input")
        ->type_name("FILE")
        ->capture_default_str();
    app.add_flag("--header", header_, "Print the features instead of the records");
    app.add_flag("--stats", stats_, "Print counts by record and event instead of the records");
    app.add_flag("-D,--raw", raw_, "Print the bytes of each record too");
    app.add_option("--format", format_,
                   "Of a trace: how to write its events: lines of text, a JSON object a line, "
                   "Chrome's trace format, folded stacks")
        ->capture_default_str()
        ->check(CLI::IsMember({"text", "json", "chrome", "folded"}));
    trace_.AddFilters(app, ShortNames::kNo);
    trace_.AddTids(app);
    app_ = &app;
  }
  Result<int> Run(const GlobalOptions& global) override;

 private:
  Status PrintHeader(const perfdata::Reader& reader, LineOutput& out) const;
  Result<int> RunOnTrace(const std::string& trace, const GlobalOptions& global);

  TraceInput trace_;
  const CLI::App* app_ = nullptr;
  std::string format_ = "text";
  std::string input_ = "perf.data";
  bool header_ = false;
  bool stats_ = false;
  bool raw_ = false;
};

Status DumpCommand::PrintHeader(const perfdata::Reader& reader, LineOutput& out) const {
  TRY(out.Line(fmt::format("format: {}, {}-endian",
                           reader.container() == perfdata::Container::kFile ? "file" : "pipe",
                           reader.endian() == Endian::kLittle ? "little" : "big")));
  if (const std::optional<perfdata::FilePlaces> places = reader.places()) {
    std::error_code error;
    const auto written = std::filesystem::last_write_time(input_, error);
    if (!error) TRY(out.Line("captured on: " + UtcText(written)));
    TRY(out.Line(fmt::format("attrs: {} of {} bytes at {}", places->attr_count, places->attr_size,
                             places->attrs_offset)));
    TRY(out.Line(fmt::format("data: {} bytes at {}", places->data_size, places->data_offset)));
    TRY(out.Line(
        fmt::format("features: {} at {}", reader.features().raw.size(), places->features_offset)));
  }
  for (const std::string& line : perfdata::DescribeFeatures(reader.features(), reader.endian())) {
    TRY(out.Line(line));
  }
  return {};
}

Result<int> DumpCommand::RunOnTrace(const std::string& trace, const GlobalOptions& global) {
  TRY(RefuseThese(*app_, global, {"header", "stats", "raw"},
                  "is for recordings of samples; " + trace + " is a trace"));
  trace_.set_input(trace);
  TRY(trace_.Open());
  TRY_ASSIGN(const std::unique_ptr<os::OutputFile> out, os::OutputFile::Create("-"));
  if (format_ == "folded") {
    TRY_ASSIGN(const profile::Profile profile, analyze::MakeTraceProfile(trace_.calls()));
    TRY(out->Write(AsBytes(views::Folded(profile, {}))));
  } else {
    std::vector<analyze::TimedSample> samples;
    TRY_ASSIGN(const auto recorded, DescribeSamplesOfTrace(trace));
    if (format_ == "chrome" && recorded) {
      TRY_ASSIGN(samples, ReadTimedSamples(trace, global));
    }
    TRY(format_ == "json"     ? views::TraceDumpJson(trace_.calls(), *out)
        : format_ == "chrome" ? views::TraceDumpChrome(trace_.calls(), samples, *out)
                              : views::TraceDumpText(trace_.calls(), *out));
  }
  TRY(out->Commit());
  return trace_.Report(global);
}

Result<int> DumpCommand::Run(const GlobalOptions& global) {
  const std::string trace = TraceOr(input_, *app_);
  if (IsTrace(trace)) return RunOnTrace(trace, global);
  std::vector<std::string> names = TraceFilterNames();
  names.insert(names.end(), {"format", "tid"});
  TRY(RefuseThese(*app_, global, names, "is for traces; " + input_ + " is a recording of samples"));
  if (raw_ && (header_ || stats_)) {
    return Fail(ErrorKind::kUsage, "--raw prints records, which --header and --stats leave out");
  }
  TRY_ASSIGN(const RecordingInput input, OpenRecording(input_));
  const std::unique_ptr<perfdata::Reader>& reader = input.reader;
  TRY_ASSIGN(const std::unique_ptr<os::OutputFile> file, os::OutputFile::Create("-"));
  LineOutput out(*file);

  // In a file the features are known before the records are read.
  const bool is_file = reader->container() == perfdata::Container::kFile;
  if (header_ && is_file) TRY(PrintHeader(*reader, out));
  if (header_ && is_file && !stats_) {
    TRY(out.Flush());
    TRY(file->Commit());
    return kExitDone;
  }

  RecordCounts counts(*reader);
  RecordLines lines(*reader, out, raw_);
  if (!header_ && !stats_) counts.PassOnTo(&lines);
  TRY_ASSIGN(const perfdata::ReadEnd end, reader->ReadAll(counts));
  if (header_ && !is_file) TRY(PrintHeader(*reader, out));
  if (stats_) TRY(counts.Print(end, out));
  TRY(out.Flush());
  TRY(file->Commit());
  if (end.complete || !end.damage) return kExitDone;
  PrintError(*end.damage, global);
  return kExitDamagedInput;
}

}  // namespace

std::unique_ptr<Command> MakeDumpCommand() { return std::make_unique<DumpCommand>(); }

}  // namespace stackreel::cli
