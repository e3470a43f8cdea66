#include "cli/unwound_chains.h"

#include <gtest/gtest.h>

#include <random>

#include "perfdata/sample_layout.h"

namespace stackreel::cli {
namespace {

using perfdata::kSampleCallchain, perfdata::kSampleTime;

constexpr uint64_t kStack = perfdata::kSampleRegsUser | perfdata::kSampleStackUser;

class Passed : public perfdata::TimedSink {
 public:
  Status OnTimedRecord(const perfdata::TimedRecord& /*record*/) override {
    ++count;
    return {};
  }
  size_t count = 0;
};

// Two events: samples of the first had stacks, those of the second had chains all along.
class UnwoundChainFileTest : public testing::TestWithParam<Endian> {
 protected:
  void SetUp() override {
    std::vector<perfdata::Event> recorded(2), unwound(2);
    recorded[0].attr.sample_type = kSampleTime | kStack;
    recorded[0].attr.sample_regs_user = 1;
    recorded[0].attr.sample_stack_user = 8192;
    for (perfdata::Event* event : {&unwound[0], &unwound[1], &recorded[1]}) {
      event->attr.sample_type = kSampleTime | kSampleCallchain;
    }
    chains_ = *UnwoundChainFile::Create(GetParam(), passed_);
    chains_->SetEvents(recorded, unwound);
    attr_ = unwound[0].attr;
  }
  [[nodiscard]] std::vector<uint8_t> ChainOf(size_t entries, uint64_t first) const {
    std::vector<uint8_t> chain(8 * entries);
    for (size_t i = 0; i < entries; ++i) {
      StoreUnaligned(chain.data() + 8 * i, first + i, GetParam());
    }
    return chain;
  }
  void Pass(uint32_t event, uint64_t time, const std::vector<uint8_t>& chain) {
    perfdata::Sample sample;
    sample.time = time;
    sample.callchain = perfdata::U64Array(chain, GetParam());
    const std::vector<uint8_t> bytes = *perfdata::EncodeSample(sample, 2, attr_, GetParam());
    perfdata::TimedRecord record;
    record.raw.type = static_cast<uint32_t>(perfdata::RecordType::kSample);
    record.raw.bytes = bytes;
    record.time = time;
    record.event = event;
    EXPECT_TRUE(chains_->OnTimedRecord(record));
  }

  Passed passed_;
  std::unique_ptr<UnwoundChainFile> chains_;
  perfdata::Attr attr_;
};
INSTANTIATE_TEST_SUITE_P(Endians, UnwoundChainFileTest,
                         testing::Values(Endian::kLittle, Endian::kBig));

TEST_P(UnwoundChainFileTest, GivesTheChainsOfSamplesThatHadStacks) {
  Pass(0, 10, ChainOf(3, 100));
  Pass(1, 11, ChainOf(2, 200));  // had its chain
  Pass(0, 12, {});
  perfdata::TimedRecord other;
  other.raw.type = static_cast<uint32_t>(perfdata::RecordType::kComm);
  other.event = 0;
  EXPECT_TRUE(chains_->OnTimedRecord(other));
  Pass(0, 13, ChainOf(1, 300));
  EXPECT_EQ(passed_.count, 5);
  for (const auto& [time, entries, first] :
       {std::tuple{10, 3, 100}, std::tuple{12, 0, 0}, std::tuple{13, 1, 300}}) {
    const auto chain = chains_->Next();
    ASSERT_TRUE(chain && *chain);
    EXPECT_EQ((*chain)->event, 0);
    EXPECT_EQ((*chain)->time, time);
    ASSERT_EQ((*chain)->chain.size(), entries);
    for (int i = 0; i < entries; ++i) EXPECT_EQ((*chain)->chain[i], first + i);
  }
  EXPECT_FALSE(chains_->Next().value());
  EXPECT_FALSE(chains_->Next().value());
}

// More than is written, and more than is read back, at once; chains lie across both.
TEST_P(UnwoundChainFileTest, TakesMoreThanFitsItsMemory) {
  constexpr size_t kChains = 3000, kMost = 500;
  std::mt19937_64 random(3);
  for (size_t i = 0; i < kChains; ++i) Pass(0, i + 1, ChainOf(random() % kMost, 1000 * i));
  std::mt19937_64 again(3);
  for (size_t i = 0; i < kChains; ++i) {
    const auto chain = chains_->Next();
    ASSERT_TRUE(chain && *chain) << i;
    EXPECT_EQ((*chain)->time, i + 1);
    const std::vector<uint8_t> expected = ChainOf(again() % kMost, 1000 * i);
    ASSERT_TRUE(std::ranges::equal((*chain)->chain.bytes(), expected)) << i;
  }
  EXPECT_FALSE(chains_->Next().value());
}

TEST_P(UnwoundChainFileTest, OfNothingThereIsNothing) { EXPECT_FALSE(chains_->Next().value()); }

TEST(UnwoundToVerify, WithoutStacksThereIsNoFile) {
  std::vector<perfdata::Event> events(1);
  events[0].attr.sample_type = kSampleTime | kSampleCallchain;
  const perfdata::Features features;
  Passed passed;
  UnwoundToVerify unwound;
  const auto step = unwound.StandBehind({Endian::kLittle, events, features}, passed,
                                        [](perfdata::TimedSink&) { return nullptr; });
  EXPECT_EQ(step, nullptr);
  ASSERT_TRUE(unwound.Chains());
  EXPECT_EQ(*unwound.Chains(), nullptr);
}

}  // namespace
}  // namespace stackreel::cli
