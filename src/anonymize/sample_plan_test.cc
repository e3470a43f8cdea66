#include "anonymize/sample_plan.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "anonymize/fake_recording.h"
#include "base/byte_writer.h"
#include "perfdata/sample_layout.h"

namespace stackreel::anonymize {
namespace {

using fake::Bytes;
using perfdata::Sample;

constexpr uint32_t kPid = 10;
constexpr uint64_t kText = 0x555500000000, kHeap = 0x7f0000000000, kKernel = 0xffffffff9a000000;
// All whose fields are numbers or the chain, and stay.
constexpr uint64_t kPlannable =
    perfdata::kSampleIp | perfdata::kSampleTid | perfdata::kSampleTime | perfdata::kSampleAddr |
    perfdata::kSampleId | perfdata::kSampleStreamId | perfdata::kSampleCpu |
    perfdata::kSamplePeriod | perfdata::kSampleCallchain | perfdata::kSampleWeight |
    perfdata::kSampleDataSrc | perfdata::kSampleTransaction | perfdata::kSampleCgroup |
    perfdata::kSampleDataPageSize | perfdata::kSampleCodePageSize | perfdata::kSampleArch1;

// Treats the fields of samples as Anonymize does, both ways.
class BothWays {
 public:
  BothWays(Level level, Endian endian, uint64_t sample_type) : level_(level), endian_(endian) {
    attr.sample_type = sample_type;
    fake::Recording in({fake::SomeEvent(0)}, {.endian = endian});
    in.Map(kPid, kText, 0x4000, 0, "/bin/prog");
    in.Map(kPid, kHeap, 0x40000, 0, "//anon");
    in.MapKernel(kKernel, 0x1000000, kKernel, "[kernel.kallsyms]_text");
    bytes_ = in.Finish();
    MemorySource source(bytes_);
    collected_ = *Collect(RereadableRecording(source));
    remap_ = *Remap::Build(*collected_, fake::SomeKey());
    text_.emplace(*remap_, collected_->events);
    names_.emplace(fake::SomeKey(), level, publics_, *collected_);
    fields_.emplace(level, endian, *remap_, *text_, *names_);
    plan = SamplePlan::Make(attr, attr, level, endian);
  }
  Bytes Decoded(const Bytes& record) {
    Sample sample;
    EXPECT_TRUE(perfdata::DecodeSample(RawOf(record), attr, endian_, sample));
    fields_->Begin(ContextOf(record, sample.pid), decoded_tally);
    perfdata::VisitFields(sample, perfdata::WireScope{RawOf(record).misc, &attr}, *fields_);
    return *perfdata::EncodeSample(sample, RawOf(record).misc, attr, endian_);
  }
  Bytes Rewritten(const Bytes& record) {
    Bytes out(record.size());
    fields_->Begin(ContextOf(record, plan->PidOf(record)), rewritten_tally);
    plan->Rewrite(record, *fields_, out.data());
    return out;
  }
  // By name of the field.
  static std::map<std::string_view, std::vector<uint64_t>> Counts(const FieldTally& tally) {
    std::map<std::string_view, std::vector<uint64_t>> counts;
    for (const FieldTally::Entry& entry : tally.entries()) {
      counts[entry.field->name] = {entry.kept, entry.changed, entry.dropped};
    }
    return counts;
  }

  perfdata::Attr attr;
  std::optional<SamplePlan> plan;
  FieldTally decoded_tally, rewritten_tally;

 private:
  [[nodiscard]] perfdata::RawRecord RawOf(const Bytes& record) const {
    perfdata::RawRecord raw;
    raw.type = static_cast<uint32_t>(perfdata::RecordType::kSample);
    raw.misc = LoadUnaligned<uint16_t>(record.data() + 4, endian_);
    raw.bytes = record;
    return raw;
  }
  [[nodiscard]] AddressContext ContextOf(const Bytes& record, uint32_t pid) const {
    const SpaceId space = pid == kPid ? kFirstUserSpace : kNobodysSpace | pid;
    return {space, Machine::kHost, RawOf(record).cpu_mode(), {}};
  }

  Level level_;
  Endian endian_;
  Bytes bytes_;
  std::unique_ptr<Collected> collected_;
  std::unique_ptr<Remap> remap_;
  std::optional<TextScrub> text_;
  PublicNames publics_;
  std::optional<Pseudonyms> names_;
  std::optional<FieldTransform> fields_;
};

class SomeSamples {
 public:
  explicit SomeSamples(Endian endian) : endian_(endian), chain_(endian) {}
  Sample Next() {
    Sample sample;
    chain_.Clear();
    for (uint64_t i = Below(6); i > 0; --i) chain_.U64(Address());
    sample.callchain = perfdata::U64Array(chain_.view(), endian_);
    sample.pid = Below(2) == 0 ? kPid : 77;
    sample.id = 5;
    for (uint64_t* number :
         {&sample.time, &sample.stream_id, &sample.period, &sample.weight, &sample.data_src,
          &sample.transaction, &sample.cgroup, &sample.data_page_size, &sample.arch_enabled_keys}) {
      *number = Below(3) == 0 ? 0 : random_();
    }
    sample.tid = static_cast<uint32_t>(random_());
    sample.cpu = 3;
    sample.ip = Address();
    sample.addr = Address();
    return sample;
  }
  uint16_t Misc() { return static_cast<uint16_t>(Below(4) | Below(2) << 14); }

 private:
  uint64_t Below(uint64_t count) { return random_() % count; }
  uint64_t Address() {
    switch (Below(9)) {
      case 0:
        return kText + Below(0x4001);
      case 1:
        return kHeap + Below(0x40000);
      case 2:
        return kKernel + Below(0x1000000);
      case 3:
        return perfdata::kContextKernel;
      case 4:
        return perfdata::kContextUser;
      case 5:
        return perfdata::kContextUserDeferred;
      case 6:
        return Below(0x2000);
      case 7:
        return 0;
      default:
        return random_() >> Below(20);
    }
  }
  std::mt19937_64 random_{1};
  Endian endian_;
  ByteWriter chain_;
};

TEST(SamplePlan, RewritesAsDecodingAndEncodingDo) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 60; ++round) {
    const Endian endian = round % 2 == 0 ? Endian::kLittle : Endian::kBig;
    const auto level = static_cast<Level>(round % 3);
    const uint64_t id =
        random() % 2 == 0 ? perfdata::kSampleIdentifier : perfdata::kSampleId & random();
    BothWays both(level, endian, (random() & kPlannable & ~uint64_t{perfdata::kSampleId}) | id);
    ASSERT_TRUE(both.plan) << both.attr.sample_type;
    SomeSamples samples(endian);
    for (int i = 0; i < 50; ++i) {
      const Bytes record =
          *perfdata::EncodeSample(samples.Next(), samples.Misc(), both.attr, endian);
      ASSERT_TRUE(both.plan->Fits(record));
      ASSERT_EQ(both.Rewritten(record), both.Decoded(record)) << both.attr.sample_type;
    }
    EXPECT_EQ(BothWays::Counts(both.rewritten_tally), BothWays::Counts(both.decoded_tally));
  }
}

TEST(SamplePlan, LeavesWhatItDoesNotKnowThePlaceOf) {
  const auto makes = [](uint64_t recorded, uint64_t written) {
    perfdata::Attr before, after;
    before.sample_type = recorded;
    after.sample_type = written;
    return SamplePlan::Make(before, after, Level::kAddresses, Endian::kLittle).has_value();
  };
  EXPECT_TRUE(makes(kPlannable, kPlannable));
  constexpr uint64_t kUnknown = uint64_t{1} << 60;
  for (const uint64_t bit :
       {uint64_t{perfdata::kSampleRead}, uint64_t{perfdata::kSampleRaw},
        uint64_t{perfdata::kSampleBranchStack}, uint64_t{perfdata::kSampleRegsUser},
        uint64_t{perfdata::kSampleStackUser}, uint64_t{perfdata::kSampleAux}, kUnknown}) {
    EXPECT_FALSE(makes(kPlannable | bit, kPlannable | bit)) << bit;
    EXPECT_FALSE(makes(kPlannable | bit, kPlannable)) << bit;
  }
  // A number that goes: what follows it stands elsewhere then.
  EXPECT_FALSE(makes(kPlannable | perfdata::kSamplePhysAddr, kPlannable));
  // Both ids: they may differ.
  const uint64_t twice = kPlannable | perfdata::kSampleIdentifier;
  EXPECT_FALSE(makes(twice, twice));
}

TEST(SamplePlan, FitsRecordsThatEndWithTheirLastField) {
  BothWays both(Level::kAddresses, Endian::kLittle,
                perfdata::kSampleIp | perfdata::kSampleCallchain | perfdata::kSampleWeight);
  ASSERT_TRUE(both.plan);
  Sample sample;
  const Bytes words(24);
  sample.callchain = perfdata::U64Array(words, Endian::kLittle);
  Bytes record = *perfdata::EncodeSample(sample, 2, both.attr, Endian::kLittle);
  EXPECT_TRUE(both.plan->Fits(record));
  constexpr size_t kCount = 16;
  for (const uint64_t count : {uint64_t{2}, uint64_t{4}, UINT64_MAX, uint64_t{1} << 61 | 3}) {
    Bytes other = record;
    StoreUnaligned(other.data() + kCount, count, Endian::kLittle);
    EXPECT_FALSE(both.plan->Fits(other)) << count;
  }
  for (const size_t size : {record.size() - 8, record.size() - 1, size_t{8}, size_t{24}}) {
    EXPECT_FALSE(both.plan->Fits(ByteView(record).first(size))) << size;
  }
  record.resize(record.size() + 8);
  EXPECT_FALSE(both.plan->Fits(record));
}

}  // namespace
}  // namespace stackreel::anonymize
