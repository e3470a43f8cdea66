#include "anonymize/anonymize.h"

#include "anonymize/attr_scrub.h"
#include "anonymize/build.h"
#include "anonymize/feature_scrub.h"
#include "anonymize/field_transform.h"
#include "anonymize/transform.h"
#include "perfdata/writer.h"

namespace stackreel::anonymize {
namespace {

Status CheckWhole(const perfdata::ReadEnd& read, std::string_view name) {
  if (read.complete || !read.damage) return {};
  Error error = *read.damage;
  if (error.file.empty()) error.file = name;
  return Fail(std::move(error));
}

}  // namespace

Result<Outcome> Anonymize(const RereadableRecording& in, ByteSink& out, const Key& key,
                          const Options& options) {
  TRY_ASSIGN(const std::unique_ptr<Collected> collected, Collect(in));
  TRY(CheckWhole(collected->read, in.name()));
  TRY_ASSIGN(const std::unique_ptr<Remap> remap, Remap::Build(*collected, key));

  Outcome outcome;
  const TextScrub text(*remap, collected->events);
  FieldTransform fields(options.level, collected->endian, *remap, text);
  const std::vector<perfdata::Event>* recorded = &collected->events;
  TRY_ASSIGN(const RereadableRecording::Opened input, in.Open());

  // The step decides what the events are that the transform gets, and is made for the transform.
  class Forward : public perfdata::TimedSink {
   public:
    perfdata::TimedSink* to = nullptr;
    Status OnTimedRecord(const perfdata::TimedRecord& record) override {
      return to->OnTimedRecord(record);
    }
  } forward;
  std::unique_ptr<RecordStep> step;
  std::vector<perfdata::Event> unwound;
  if (options.unwind) {
    step = options.unwind({collected->endian, collected->events, collected->features}, forward);
  }
  if (step) {
    unwound = step->Events();
    recorded = &unwound;
  }
  const std::vector<perfdata::Event> written =
      ScrubEvents(*recorded, collected->features, options.level, *remap, outcome.report);
  const perfdata::WriterOptions writer_options = {options.container, collected->endian, 0};
  TRY_ASSIGN(const std::unique_ptr<perfdata::Writer> writer,
             perfdata::Writer::Create(out, writer_options, written));
  FeatureBytes features =
      ScrubFeatures(collected->features, collected->endian, fields, outcome.report);
  TRY(writer->WriteEarlyFeatures(features));

  Transform transform(collected->endian, *recorded, written, fields, *remap, *writer,
                      outcome.report);
  forward.to = &transform;
  Counters& counters = outcome.report.counters;
  perfdata::TimedSink& first = step ? static_cast<perfdata::TimedSink&>(*step) : transform;
  perfdata::RoundSorter sorter(*input.reader, first, counters);
  TRY_ASSIGN(outcome.read, input.reader->ReadAll(sorter));
  TRY(CheckWhole(outcome.read, in.name()));
  TRY(sorter.Finish());
  if (step) {
    TRY(step->Finish());
    step->CollectCounters(counters);
    for (auto& [feature, bytes] : step->Features()) features[feature] = std::move(bytes);
  }
  TRY(writer->Finish(features));

  outcome.samples = transform.samples();
  counters.Merge(input.reader->counters());
  counters.Merge(writer->counters());
  counters.Add("anonymize.outside_mappings", remap->outside_mappings());
  counters.Add("anonymize.bad_record", transform.bad_records());
  return outcome;
}

}  // namespace stackreel::anonymize
