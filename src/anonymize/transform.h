// The second pass: each record decoded, its fields treated by their class, encoded again.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "anonymize/collect.h"
#include "anonymize/field_transform.h"
#include "anonymize/raw_fields.h"
#include "anonymize/report.h"
#include "anonymize/sample_plan.h"
#include "perfdata/sorter.h"
#include "perfdata/writer.h"

namespace stackreel::anonymize {

// The error, and that --salvage would go on.
Error SalvageCures(Error error);

// Takes records in order of time and writes them in that order. All must outlive it.
class Transform : public perfdata::TimedSink {
 public:
  // `recorded`: the events as the records that come have them; `written`: as they go out.
  // `raw_fields`: for those of `written` that have raw data. Without `salvage` a record that is not
  // as its type says is an error.
  Transform(Endian endian, const std::vector<perfdata::Event>& recorded,
            const std::vector<perfdata::Event>& written, FieldTransform& fields, Remap& remap,
            perfdata::Writer& writer, Report& report, RawFields* raw_fields, bool salvage);
  Status OnTimedRecord(const perfdata::TimedRecord& timed) override;

  // Records that were not as their type says, and are not in the output.
  [[nodiscard]] uint64_t bad_records() const { return bad_records_; }
  [[nodiscard]] uint64_t samples() const { return samples_; }

 private:
  Status OnSample(const perfdata::TimedRecord& timed);
  // True if the sample could be written without being decoded.
  Result<bool> RewriteSample(const perfdata::TimedRecord& timed);
  SpaceId UserSpaceOf(Machine machine, uint32_t pid);
  Status OnOther(const perfdata::TimedRecord& timed);
  Status OnMask(perfdata::PacMask& mask);
  AddressContext ContextOf(const perfdata::Record& record) const;
  // Writes a record; one that readers would take for another event's is as bad as damaged.
  Status Write(const perfdata::TimedRecord& timed, ByteView encoded);
  Status DropBad(const perfdata::RawRecord& raw, Error error);
  Status Drop(const perfdata::RawRecord& raw, std::string_view why);

  Endian endian_;
  const std::vector<perfdata::Event>& recorded_;
  const std::vector<perfdata::Event>& written_;
  perfdata::EventTable written_table_;
  FieldTransform& fields_;
  Remap& remap_;
  perfdata::Writer& writer_;
  Report& report_;
  RawFields* raw_fields_;
  bool salvage_;
  std::vector<uint8_t> safe_raw_;
  // Of records, by type.
  FieldTally& TallyOf(uint32_t type);
  std::map<uint32_t, FieldTally*> tallies_;
  FieldTally& sample_tally_;
  FieldTally& trailer_tally_;
  SpaceTracker spaces_;
  // Asked for last; forgotten when spaces change.
  struct KnownSpace {
    Machine machine = Machine::kHost;
    uint32_t pid = 0;
    SpaceId space = 0;
  };
  std::optional<KnownSpace> last_space_;
  // By event; made when its first sample was decoded, so that the report has all fields in order.
  struct PlanOfEvent {
    bool made = false;
    std::optional<SamplePlan> plan;
  };
  std::vector<PlanOfEvent> plans_;
  std::vector<uint8_t> rewritten_;  // the sample; stays allocated
  perfdata::Sample sample_;
  uint64_t bad_records_ = 0, samples_ = 0;
};

}  // namespace stackreel::anonymize
