#include "analyze/chain_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyze/fake_recording.h"

namespace stackreel::analyze {
namespace {

using perfdata::kContextKernel;
using perfdata::kContextUser;
using testing::ElementsAre;
using testing::SizeIs;

constexpr uint64_t kStackSample =
    kChainSample | perfdata::kSampleRegsUser | perfdata::kSampleStackUser;
constexpr uint64_t kKernelText = 0xffffffff81000000;

// Adds a sample whose stack has these words.
void AddStack(FakeRecording& recording, uint64_t pc, const std::vector<uint64_t>& words,
              const std::vector<uint64_t>& chain = {}, uint64_t dumped = 4096) {
  std::vector<uint64_t> values(20);
  values[kSpIndex] = 0x7ffc00001000;
  values[kIpIndex] = pc;
  const auto registers = recording.Words(values), stack = recording.Words(words),
             entries = recording.Words(chain);
  perfdata::Sample sample;
  sample.ip = pc;
  sample.regs_user.abi = 2;
  sample.regs_user.mask = kRegisterMask;
  sample.regs_user.values = perfdata::U64Array(registers, Endian::kLittle);
  sample.stack_user = stack;
  sample.stack_user_size = dumped;
  sample.callchain = perfdata::U64Array(entries, Endian::kLittle);
  recording.Sample(sample, chain.empty() ? kUserMode : kKernelMode);
}

// A recording read through the step.
class Stepped : public perfdata::TimedSink {
 public:
  Stepped(const std::vector<uint8_t>& bytes, symbolize::ModuleFileProvider& files)
      : source_(bytes), reader_(*perfdata::Reader::Open(source_)) {
    const std::vector<perfdata::Event>& events = reader_->events().events();
    step = MakeChainStep({reader_->endian(), events, reader_->features()}, *this, files, executor_);
    perfdata::TimedSink& first = step ? static_cast<perfdata::TimedSink&>(*step) : *this;
    events_ = step ? step->Events() : events;
    Counters counters;
    perfdata::RoundSorter sorter(*reader_, first, counters);
    CHECK(reader_->ReadAll(sorter).has_value());
    CHECK(sorter.Finish().has_value());
    if (step) CHECK(step->Finish().has_value());
  }
  Status OnTimedRecord(const perfdata::TimedRecord& timed) override {
    records.emplace_back(timed.raw.bytes.begin(), timed.raw.bytes.end());
    if (timed.raw.record_type() != perfdata::RecordType::kSample) return {};
    perfdata::Sample sample;
    const perfdata::Attr& attr = events_[*timed.event].attr;
    if (!perfdata::DecodeSample(timed.raw, attr, reader_->endian(), sample)) {
      ++damaged;
      return {};
    }
    std::vector<uint64_t>& chain = chains.emplace_back();
    for (size_t i = 0; i < sample.callchain.size(); ++i) chain.push_back(sample.callchain[i]);
    times.push_back(sample.time);
    return {};
  }

  std::unique_ptr<anonymize::RecordStep> step;
  std::vector<std::vector<uint8_t>> records;
  std::vector<std::vector<uint64_t>> chains;  // of samples
  std::vector<uint64_t> times;
  size_t damaged = 0;  // samples

 private:
  MemorySource source_;
  std::unique_ptr<perfdata::Reader> reader_;
  BackwardExecutor executor_;
  std::vector<perfdata::Event> events_;
};

class ChainStepTest : public testing::Test {
 protected:
  ChainStepTest() { files_.elf["/bin/prog"] = MakeFile(); }
  void MapProgram(FakeRecording& recording) {
    recording.Mmap(1, kBias + 0x1000, 0x4000, TextOffset(files_.elf["/bin/prog"]), "/bin/prog");
  }
  // What an analysis makes of a recording.
  std::vector<std::string> Lines(const std::vector<uint8_t>& bytes) {
    MemorySource source(bytes);
    const auto reader = *perfdata::Reader::Open(source);
    BackwardExecutor executor;
    Analysis analysis(*reader, files_, executor, {});
    TextSink sink;
    sink.analysis = &analysis;
    CHECK(analysis.Run(sink).has_value());
    return sink.lines;
  }
  FakeFiles files_;
};

// Without registers and stack it could be read: then it would be a sample that the recording lacks.
TEST_F(ChainStepTest, WhatIsDamagedInItsStackStaysDamaged) {
  constexpr uint64_t kDumped = 0x5a58;
  FakeRecording recording({MakeEvent(kStackSample, 1, "e")});
  AddStack(recording, kBias + 0x1010, {1, 2});
  AddStack(recording, kBias + 0x1010, {1, 2}, {}, kDumped);
  std::vector<uint8_t> bytes = recording.Take();
  size_t sizes = 0;
  for (size_t at = 0; at + 8 <= bytes.size(); at += 8) {
    if (LoadUnaligned<uint64_t>(bytes.data() + at, Endian::kLittle) != kDumped) continue;
    StoreUnaligned<uint64_t>(bytes.data() + at, uint64_t{1} << 40, Endian::kLittle);
    ++sizes;
  }
  ASSERT_EQ(sizes, 1U);
  const Stepped stepped(bytes, files_);
  EXPECT_THAT(stepped.chains, SizeIs(1));
  EXPECT_EQ(stepped.damaged, 1U);
}

TEST_F(ChainStepTest, NothingIsToBeDoneWithoutDumpedStacks) {
  FakeRecording recording({MakeEvent(kChainSample | perfdata::kSampleRegsUser, 1, "e")});
  EXPECT_EQ(Stepped(recording.Take(), files_).step, nullptr);
}

TEST_F(ChainStepTest, StacksAndRegistersBecomeCallchainsAndNothingElseChanges) {
  FakeRecording recording({MakeEvent(kStackSample, 1, "stacks"), MakeEvent(kChainSample, 2, "c")});
  recording.Comm(1, 1, "prog");
  MapProgram(recording);
  AddStack(recording, kBias + 0x1010, {kBias + 0x2020, kBias + 0x3030, kBias + 0x4040});
  recording.Comm(1, 1, "later");
  AddStack(recording, kBias + 0x1010, {kBias + 0x4040}, {kContextKernel, kKernelText + 8});
  perfdata::Sample plain;
  plain.ip = kBias + 0x1000;
  recording.Sample(plain, kUserMode, 1);
  const std::vector<uint8_t> bytes = recording.Take();

  const Stepped out(bytes, files_);
  const auto events = out.step->Events();
  EXPECT_EQ(events[0].attr.sample_type, kChainSample | perfdata::kSampleIdentifier);
  EXPECT_EQ(events[1].attr.sample_type, kChainSample | perfdata::kSampleIdentifier);
  EXPECT_THAT(out.chains, ElementsAre(ElementsAre(kContextUser, kBias + 0x1010, kBias + 0x2020,
                                                  kBias + 0x3030, kBias + 0x4040),
                                      ElementsAre(kContextKernel, kKernelText + 8, kContextUser,
                                                  kBias + 0x1010, kBias + 0x4040),
                                      ElementsAre()));
  // All records, in order; those that are not samples with stacks as they were.
  FakeFiles no_files;
  const Stepped none(bytes, no_files);
  ASSERT_THAT(out.records, SizeIs(6));
  for (const size_t i : {0, 1, 3, 5}) EXPECT_EQ(out.records[i], none.records[i]) << i;
  EXPECT_TRUE(std::ranges::is_sorted(out.times));
  EXPECT_TRUE(
      out.step->Features().contains(static_cast<uint32_t>(perfdata::Feature::kStackreelStackEnds)));
}

TEST_F(ChainStepTest, WhereNothingWasDumpedTheKernelsChainStays) {
  FakeRecording recording({MakeEvent(kStackSample, 1, "e")});
  MapProgram(recording);
  AddStack(recording, kBias + 0x1010, {}, {kContextKernel, kKernelText + 8}, 0);
  EXPECT_THAT(Stepped(recording.Take(), files_).chains,
              ElementsAre(ElementsAre(kContextKernel, kKernelText + 8)));
}

TEST_F(ChainStepTest, UnwindsWithTheMapsOfTheTime) {
  FakeRecording recording({MakeEvent(kStackSample, 1, "e")});
  MapProgram(recording);
  AddStack(recording, kBias + 0x1010, {kBias + 0x4040});
  recording.Mmap(1, kBias, 0x10000, 0, "/other");
  AddStack(recording, kBias + 0x1010, {kBias + 0x4040});
  const Stepped out(recording.Take(), files_);
  ASSERT_THAT(out.chains, SizeIs(2));
  EXPECT_THAT(out.chains[0], ElementsAre(kContextUser, kBias + 0x1010, kBias + 0x4040));
  EXPECT_THAT(out.chains[1], ElementsAre(kContextUser, kBias + 0x1010));
}

TEST_F(ChainStepTest, ManySamplesStayInOrder) {
  FakeRecording recording({MakeEvent(kStackSample, 1, "e")});
  MapProgram(recording);
  for (uint64_t i = 0; i < 1'000; ++i) AddStack(recording, kBias + 0x1000 + i % 256, {});
  const Stepped out(recording.Take(), files_);
  ASSERT_THAT(out.chains, SizeIs(1'000));
  EXPECT_TRUE(std::ranges::is_sorted(out.times));
  for (uint64_t i = 0; i < 1'000; ++i) EXPECT_EQ(out.chains[i][1], kBias + 0x1000 + i % 256);
}

TEST_F(ChainStepTest, AnonymisedStacksAnalyseAsTheirOriginals) {
  FakeRecording recording({MakeEvent(kStackSample, 1, "e")});
  recording.Arch("x86_64");
  recording.Add(
      perfdata::RecordType::kMmap, kKernelMode,
      perfdata::Mmap{UINT32_MAX, 0, kKernelText, 0x1000000, kKernelText, "[kernel.kallsyms]_text"});
  MapProgram(recording);
  AddStack(recording, kBias + 0x1010, {kBias + 0x2020, kBias + 0x3030, kBias + 0x4040});
  // Cut off: the kernel's chain goes on.
  AddStack(recording, kBias + 0x1010, {kBias + 0x2020},
           {kContextKernel, kKernelText + 0x110, kContextUser, kBias + 0x1010, kBias + 0x2020,
            kBias + 0x3030, kBias + 0x4040},
           8);
  const std::vector<uint8_t> bytes = recording.Take();

  MemorySource source(bytes);
  MemorySink sink;
  BackwardExecutor executor;
  anonymize::Options options;
  options.unwind = [&](const anonymize::RecordingHead& head, perfdata::TimedSink& next) {
    return MakeChainStep(head, next, files_, executor);
  };
  const auto key = *anonymize::Key::FromSecret(AsBytes("a secret of 20 bytes"));
  const auto outcome =
      anonymize::Anonymize(anonymize::RereadableRecording(source), sink, key, options);
  ASSERT_TRUE(outcome) << outcome.error().ToString();
  EXPECT_EQ(outcome->samples, 2U);

  std::vector<std::string> before = Lines(bytes);
  for (std::string& line : before) line.resize(line.find(" | "));  // how it ended is not per sample
  EXPECT_EQ(Lines(sink.bytes()), before);
  EXPECT_THAT(before, ElementsAre(":1: f1000 f2000' f3000' start'",
                                  ":1: k:k_inner f1000 f2000' f3000' start'"));
}

}  // namespace
}  // namespace stackreel::analyze
