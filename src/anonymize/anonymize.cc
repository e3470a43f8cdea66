#include "anonymize/anonymize.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "anonymize/attr_scrub.h"
#include "anonymize/build.h"
#include "anonymize/feature_scrub.h"
#include "anonymize/field_transform.h"
#include "anonymize/pseudonyms.h"
#include "anonymize/transform.h"
#include "perfdata/writer.h"

namespace stackreel::anonymize {
namespace {

Status CheckWhole(const perfdata::ReadEnd& read, std::string_view name, const Options& options) {
  if (read.complete || !read.damage || options.salvage) return {};
  Error error = *read.damage;
  if (error.file.empty()) error.file = name;
  return Fail(SalvageCures(std::move(error)));
}

// A kernel counts the events that it opens, and perf adds a billion for those it makes up. Greater
// ids are other bytes of a damaged file, taken for ids: they stay as they are, whatever they tell.
Status CheckIds(const std::vector<perfdata::Event>& events, std::string_view name) {
  constexpr uint64_t kMostIds = uint64_t{1} << 40;
  for (const perfdata::Event& event : events) {
    for (const uint64_t id : event.ids) {
      if (id < kMostIds) continue;
      Error error(ErrorKind::kDamaged,
                  fmt::format("an event has the id {:#x}, which no kernel gives", id));
      error.file = name;
      return Fail(std::move(error));
    }
  }
  return {};
}

// As the recording was compressed, but at no level that takes zstd hundreds of megabytes to begin.
int CompressionOf(const perfdata::Features& features) {
  constexpr uint32_t kMaxLevel = 12;  // of zstd's 22
  if (!features.compressed) return 0;
  return static_cast<int>(std::clamp(features.compressed->level, uint32_t{1}, kMaxLevel));
}

// Steps one behind the other. A step is made for the one behind it and decides what the events are
// that it gets, so between them goes what is told late where to.
class Steps {
 public:
  explicit Steps(const Collected& collected) : collected_(collected), events_{collected.events} {}

  void Add(const RecordStepFactory& make) {
    if (!make) return;
    auto gap = std::make_unique<Gap>();
    std::unique_ptr<RecordStep> step =
        make({collected_.endian, events_.back(), collected_.features}, *gap);
    if (!step) return;
    if (!gaps_.empty()) gaps_.back()->to = step.get();
    events_.push_back(step->Events());
    gaps_.push_back(std::move(gap));
    steps_.push_back(std::move(step));
  }
  // Who takes the records that are to arrive at `end`.
  perfdata::TimedSink& LeadTo(perfdata::TimedSink& end) {
    if (steps_.empty()) return end;
    gaps_.back()->to = &end;
    return *steps_.front();
  }
  // Of the records that arrive.
  [[nodiscard]] const std::vector<perfdata::Event>& events() const { return events_.back(); }
  [[nodiscard]] const std::vector<std::unique_ptr<RecordStep>>& steps() const { return steps_; }

 private:
  struct Gap : perfdata::TimedSink {
    perfdata::TimedSink* to = nullptr;
    Status OnTimedRecord(const perfdata::TimedRecord& record) override {
      return to->OnTimedRecord(record);
    }
  };
  const Collected& collected_;
  std::deque<std::vector<perfdata::Event>> events_;  // stay where they are: steps refer to them
  std::vector<std::unique_ptr<Gap>> gaps_;           // behind each step
  std::vector<std::unique_ptr<RecordStep>> steps_;
};

}  // namespace

Result<Outcome> Anonymize(const RereadableRecording& in, ByteSink& out, const Key& key,
                          const Options& options) {
  if (options.keep_raw != KeepRaw::kNothing && options.level > Level::kAddresses) {
    return Fail(ErrorKind::kUsage, "raw data has process numbers: only --addresses can keep it");
  }
  TRY_ASSIGN(const std::unique_ptr<Collected> collected, Collect(in));
  TRY(CheckWhole(collected->read, in.name(), options));
  TRY(CheckIds(collected->events, in.name()));
  TRY_ASSIGN(const std::unique_ptr<Remap> remap, Remap::Build(*collected, key));

  Outcome outcome;
  const TextScrub text(*remap, collected->events);
  Pseudonyms names(key, options.level, options.publics, *collected);
  FieldTransform fields(options.level, collected->endian, *remap, text, names);
  TRY_ASSIGN(const RereadableRecording::Opened input, in.Open());

  Steps steps(*collected);
  steps.Add(options.unwind);
  steps.Add(options.name_functions);
  RawFields raw_fields(collected->features, collected->width, collected->endian, *remap);
  KeepsRaw keeps_raw;
  if (options.keep_raw == KeepRaw::kSafe) {
    keeps_raw = [&](const perfdata::Attr& attr) { return raw_fields.Knows(attr); };
  }
  const std::vector<perfdata::Event> written = ScrubEvents(
      steps.events(), collected->features, options.level, keeps_raw, *remap, names, outcome.report);
  const perfdata::WriterOptions writer_options = {options.container, collected->endian,
                                                  CompressionOf(collected->features)};
  TRY_ASSIGN(const std::unique_ptr<perfdata::Writer> writer,
             perfdata::Writer::Create(out, writer_options, written));
  const auto& nr_cpus = collected->features.nr_cpus;
  const auto scrubbed = [&](const FeatureBytes& recorded_features) {
    return ScrubFeatures(recorded_features, nr_cpus ? nr_cpus->second : 0, collected->endian,
                         options.level, text, fields, outcome.report);
  };
  FeatureBytes features = scrubbed(collected->features.raw);
  features[static_cast<uint32_t>(perfdata::Feature::kStackreelAnonymized)] =
      MakeMark(options.level, collected->endian);
  TRY(writer->WriteEarlyFeatures(features));

  Transform transform(collected->endian, steps.events(), written, fields, *remap, *writer,
                      outcome.report, &raw_fields, options.salvage);
  Counters& counters = outcome.report.counters;
  perfdata::RoundSorter sorter(*input.reader, steps.LeadTo(transform), counters);
  TRY_ASSIGN(outcome.read, input.reader->ReadAll(sorter));
  TRY(CheckWhole(outcome.read, in.name(), options));
  TRY(sorter.Finish());
  for (const std::unique_ptr<RecordStep>& step : steps.steps()) {
    TRY(step->Finish());
    step->CollectCounters(counters);
    // What a step makes holds names and addresses of the recording, too.
    for (auto& [feature, bytes] : scrubbed(step->Features())) features[feature] = std::move(bytes);
  }
  TRY(writer->EndRecords());
  TRY(writer->Finish(features));

  outcome.samples = transform.samples();
  counters.Merge(input.reader->counters());
  counters.Merge(writer->counters());
  counters.Add("anonymize.outside_mappings", remap->outside_mappings());
  outcome.bad_records = transform.bad_records();
  counters.Add("anonymize.bad_record", transform.bad_records());
  return outcome;
}

}  // namespace stackreel::anonymize
