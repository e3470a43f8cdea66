// That a sample which is seen to be clean quickly is clean when looked at in full.
#include "anonymize/clean_samples.h"

#include <gtest/gtest.h>

#include <random>

#include "anonymize/fake_leaks.h"
#include "anonymize/verify_bytes.h"

namespace stackreel::anonymize {
namespace {

using namespace fake;  // NOLINT(google-build-using-namespace): what tests of verification are made
                       // of

constexpr uint64_t kMapped = 0x555500000000, kMovedTo = 0x123456789000, kSize = 0x4000;

// All that leaves a sample with a shape.
constexpr uint64_t kFields =
    perfdata::kSampleIp | perfdata::kSampleTid | perfdata::kSampleTime | perfdata::kSampleAddr |
    perfdata::kSampleId | perfdata::kSampleStreamId | perfdata::kSampleCpu |
    perfdata::kSamplePeriod | perfdata::kSampleCallchain | perfdata::kSampleWeight |
    perfdata::kSampleDataSrc | perfdata::kSampleIdentifier | perfdata::kSampleTransaction |
    perfdata::kSampleCgroup | perfdata::kSampleCodePageSize;

class CleanSamplesTest : public testing::TestWithParam<Endian> {
 protected:
  CleanSamplesTest() {
    perfdata::Record record{static_cast<uint32_t>(RecordType::kMmap2), 2, {}, {}};
    record.body =
        perfdata::Mmap2{kPid, kPid, kMapped, kSize, 0, 8, 1, 99, 7, {}, 5, 2, "/bin/prog"};
    in_.Add(record, 0);
    std::get<perfdata::Mmap2>(record.body).addr = kMovedTo;
    out_.Add(record, 0);
    originals_ = OriginalValues(in_, {});
    originals_.AddMoves(in_, out_);
    places_ = AllowedPlaces(out_, {});
  }
  [[nodiscard]] perfdata::RawRecord RawOf(const Bytes& bytes) const {
    perfdata::RawRecord raw;
    raw.type = static_cast<uint32_t>(RecordType::kSample);
    raw.misc = 2;
    raw.bytes = bytes;
    return raw;
  }
  [[nodiscard]] Bytes SampleOf(const perfdata::Attr& attr, std::mt19937_64& random) const {
    Bytes chain(8 * (random() % 4));
    for (size_t at = 0; at < chain.size(); at += 8) {
      StoreUnaligned(chain.data() + at, kMovedTo + random() % kSize, GetParam());
    }
    perfdata::Sample sample;
    sample.ip = sample.addr = kMovedTo + random() % kSize;
    sample.pid = sample.tid = kPid;
    sample.time = random();
    sample.id = 100;
    sample.cpu = 3;
    sample.period = random() % 1'000'000;
    sample.weight = random() % 1000;
    sample.callchain = perfdata::U64Array(chain, GetParam());
    return *perfdata::EncodeSample(sample, 2, attr, GetParam());
  }
  // As verification looks at any record.
  [[nodiscard]] bool IsCleanInFull(const Bytes& bytes, const FieldSpans& fields,
                                   const CleanSamples& clean) const {
    bool is_clean = true;
    SearchBytes(bytes, fields.spans(), GetParam(), originals_,
                [&](const ByteHit&) { is_clean = false; });
    for (const FieldSpan& span : fields.spans()) {
      if (!span.IsAddress()) continue;
      const bool is_chain = span.info->name == "callchain";
      for (size_t at = span.begin + (is_chain ? 8 : 0); at < span.end; at += 8) {
        const auto value = LoadUnaligned<uint64_t>(bytes.data() + at, GetParam());
        if (clean.IsOutside(value) && !(is_chain && value >= perfdata::kContextMax)) return false;
      }
    }
    return is_clean;
  }

  SeenMappings in_, out_;
  OriginalValues originals_;
  AllowedPlaces places_;
};
INSTANTIATE_TEST_SUITE_P(Endians, CleanSamplesTest, testing::Values(Endian::kLittle, Endian::kBig));

TEST_P(CleanSamplesTest, NothingIsCleanThatIsNotWhenLookedAtInFull) {
  std::mt19937_64 random(4);
  size_t clean_seen = 0, planted_seen = 0;
  for (int round = 0; round < 400; ++round) {
    perfdata::Attr attr;
    attr.sample_type = random() & kFields;
    CleanSamples clean(originals_, places_, GetParam());
    FieldSpans fields;
    perfdata::Sample sample;
    const Bytes first = SampleOf(attr, random);
    ASSERT_TRUE(FindFieldsOfSample(RawOf(first), attr, GetParam(), sample, fields));
    clean.LearnShape(0, attr, fields.spans(), first.size(), Level::kAddresses);
    ASSERT_TRUE(clean.HasShapeOf(0)) << attr.sample_type;
    for (int i = 0; i < 40; ++i) {
      Bytes bytes = SampleOf(attr, random);
      const bool plants = i % 2 == 1 && bytes.size() >= 16;
      if (plants) {  // whole, or what is left of it beside what else changes
        const uint64_t value =
            std::array{kMapped + random() % kSize, kMovedTo - kMapped, kMapped - kMovedTo,
                       uint64_t{0x7f0000001234}, std::byteswap(kMapped + 8)}[random() % 5];
        StoreUnaligned(bytes.data() + 8 + random() % (bytes.size() - 15), value, GetParam());
      }
      if (!FindFieldsOfSample(RawOf(bytes), attr, GetParam(), sample, fields)) continue;
      const bool in_full = IsCleanInFull(bytes, fields, clean);
      const bool is_clean = clean.IsClean(bytes, 0, sample);
      EXPECT_TRUE(in_full || !is_clean) << attr.sample_type << " " << round << " " << i;
      // Few are looked at in full in vain: random times pass for nothing.
      if (!plants) {
        EXPECT_TRUE(is_clean) << attr.sample_type << " " << round << " " << i;
      }
      clean_seen += is_clean ? 1 : 0;
      planted_seen += in_full ? 0 : 1;
    }
  }
  EXPECT_GT(clean_seen, 8000);
  EXPECT_GT(planted_seen, 1000);
}

TEST_P(CleanSamplesTest, SamplesOfOtherFieldsHaveNoShape) {
  std::mt19937_64 random(5);
  for (const uint64_t bit :
       {perfdata::kSampleRaw, perfdata::kSampleBranchStack, perfdata::kSampleRead,
        perfdata::kSampleRegsUser, perfdata::kSampleStackUser, perfdata::kSamplePhysAddr}) {
    perfdata::Attr attr;
    attr.sample_type = perfdata::kSampleIp | bit;
    CleanSamples clean(originals_, places_, GetParam());
    FieldSpans fields;
    perfdata::Sample sample;
    const Bytes bytes = SampleOf(attr, random);
    ASSERT_TRUE(FindFieldsOfSample(RawOf(bytes), attr, GetParam(), sample, fields));
    clean.LearnShape(0, attr, fields.spans(), bytes.size(), Level::kAddresses);
    EXPECT_FALSE(clean.HasShapeOf(0)) << bit;
  }
}

// What the thread's last chain ended with counts as seen; what it did not have does not.
TEST_P(CleanSamplesTest, AnEntryOfAChainIsFoundWhereverTheChainGoesOnAsTheLastOne) {
  constexpr size_t kEntries = 40;
  Bytes bytes(8 * kEntries);
  for (size_t i = 0; i < kEntries; ++i) {
    StoreUnaligned(bytes.data() + 8 * i, kMovedTo + i, GetParam());
  }
  CleanSamples clean(originals_, places_, GetParam());
  for (size_t i = 0; i < kEntries; ++i) {
    EXPECT_TRUE(clean.IsCleanChain(perfdata::U64Array(bytes, GetParam()), kPid));
    for (const uint64_t bad :
         {kMapped + 5, uint64_t{0x7f0000001234}, perfdata::kContextUserDeferred}) {
      Bytes other = bytes;
      StoreUnaligned(other.data() + 8 * i, bad, GetParam());
      EXPECT_FALSE(clean.IsCleanChain(perfdata::U64Array(other, GetParam()), kPid)) << i;
    }
  }
}

// It is in a mapping of OUT, and was in another of IN.
TEST_P(CleanSamplesTest, AnAddressThatWasOneIsNotCleanWhereSomethingElseLiesNow) {
  perfdata::Record record{static_cast<uint32_t>(RecordType::kMmap2), 2, {}, {}};
  record.body =
      perfdata::Mmap2{kPid, kPid, kMapped << 1, kSize, 0, 8, 1, 98, 7, {}, 5, 2, "/lib/other.so"};
  in_.Add(record, 0);
  std::get<perfdata::Mmap2>(record.body).addr = kMapped;
  out_.Add(record, 0);
  originals_ = OriginalValues(in_, {});
  places_ = AllowedPlaces(out_, {});
  CleanSamples clean(originals_, places_, GetParam());
  Bytes bytes(16);
  for (const auto& [address, is_clean] : {std::pair(kMovedTo + 5, true), {kMapped + 5, false}}) {
    StoreUnaligned(bytes.data(), kMovedTo + 4, GetParam());
    StoreUnaligned(bytes.data() + 8, address, GetParam());
    EXPECT_FALSE(clean.IsOutside(address));
    EXPECT_EQ(clean.IsCleanChain(perfdata::U64Array(bytes, GetParam()), kPid), is_clean);
  }
}

}  // namespace
}  // namespace stackreel::anonymize
