#include "record/round_processor.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <utility>

#include "os/file.h"
#include "perfdata/pac_mask.h"
#include "perfdata/reader.h"
#include "perfdata/sample.h"
#include "record/records.h"

namespace stackreel::record {
namespace {

TEST(ParseSwitchOutput, SignalsSizesAndTimes) {
  EXPECT_FALSE(ParseSwitchOutput("")->enabled());
  EXPECT_TRUE(ParseSwitchOutput("signal")->on_signal);
  EXPECT_EQ(ParseSwitchOutput("512K")->bytes, 512u << 10);
  EXPECT_EQ(ParseSwitchOutput("2G")->bytes, uint64_t{2} << 30);
  EXPECT_EQ(ParseSwitchOutput("30s")->time.count(), 30'000);
  EXPECT_EQ(ParseSwitchOutput("2h")->time.count(), 7'200'000);
}

TEST(ParseSwitchOutput, RefusesWhatIsNone) {
  for (const char* text : {"x", "10", "0M", "10Mx", "M", "-5s", "99999999999G", "1.5M"}) {
    const auto result = ParseSwitchOutput(text);
    ASSERT_FALSE(result.has_value()) << text;
    EXPECT_EQ(result.error().kind, ErrorKind::kUsage);
  }
}

// What a kernel with PTR_AUTH records puts into a ring, and what becomes of it in the file.
class PtrAuthTest : public testing::Test {
 protected:
  static constexpr uint32_t kPid = 1 << 24;  // beyond any that runs
  static constexpr uint64_t kMask = 0x007f000000000000;

  PtrAuthTest() {
    event_.attr.type = perfdata::kTypeSoftware;
    event_.attr.sample_type = perfdata::kSampleIdentifier | perfdata::kSampleIp |
                              perfdata::kSampleTid | perfdata::kSampleTime;
    event_.attr.flags = perfdata::kAttrSampleIdAll | perfdata::kAttrPtrAuth;
    event_.ids = {5};
    event_.name = "cpu-clock";
    std::filesystem::create_directories(folder_);
    options_.path = folder_ + "/perf.data";
  }
  ~PtrAuthTest() override { std::filesystem::remove_all(folder_); }

  void Put(perfdata::RecordType type, perfdata::RecordBody body, uint16_t misc = 0) {
    perfdata::Record record = MakeRecord(type, misc, std::move(body));
    record.sample_id->present = event_.attr.sample_type & ~uint64_t{perfdata::kSampleIp};
    record.sample_id->id = 5;
    record.sample_id->time = ++time_;
    Append(*perfdata::EncodeRecord(record, {kNativeEndian, &event_.attr}));
  }
  void PutSample() {
    perfdata::Sample sample;
    sample.present = event_.attr.sample_type;
    sample.id = 5;
    sample.pid = sample.tid = kPid;
    sample.time = ++time_;
    Append(*perfdata::EncodeSample(sample, 2, event_.attr, kNativeEndian));
  }
  void Append(const std::vector<uint8_t>& record) {
    ring_.insert(ring_.end(), record.begin(), record.end());
  }
  void EndRound() { rounds_.push_back(std::exchange(ring_, {})); }

  // What stands in the files, each record by a word and where its type has one, its content, masks
  // those of process `pid`. `begun` is when the program runs.
  std::vector<std::string> Process(uint32_t pid = kPid, const std::function<void()>& begun = {}) {
    RoundQueue queue(1 << 20);
    InlineExecutor executor;
    auto processor = RoundProcessor::Create(options_, {event_}, queue, executor, counters_);
    EXPECT_TRUE(processor && (*processor)->Publish());
    if (begun) begun();
    for (const std::vector<uint8_t>& ring : std::exchange(rounds_, {})) queue.Push({{ring}});
    queue.Close();
    EXPECT_TRUE((*processor)->Run());
    EXPECT_TRUE((*processor)->Finish(0));
    std::vector<std::string> out;
    for (const std::string& file : (*processor)->totals().files) {
      out.emplace_back("file");
      Describe(file, pid, out);
    }
    return out;
  }

 private:
  struct Describing : perfdata::RecordSink {
    Status OnRecord(const perfdata::RawRecord& raw) override {
      if (raw.record_type() == perfdata::RecordType::kSample) out.emplace_back("SAMPLE");
      if (raw.record_type() == perfdata::RecordType::kPtrAuth) out.emplace_back("PTR_AUTH");
      const auto record = perfdata::DecodeRecord(raw, {});
      const auto* update = record ? std::get_if<perfdata::EventUpdate>(&record->body) : nullptr;
      const auto mask =
          update != nullptr ? perfdata::PacMaskOf(*update, kNativeEndian) : std::nullopt;
      if (!mask || mask->pid != pid) return {};
      out.push_back(fmt::format(
          "{} at {}: {}", mask->tid - pid, mask->time,
          perfdata::MaskText(mask->enabled_keys, mask->insn_mask, mask->data_mask, mask->source)));
      return {};
    }
    Describing(std::vector<std::string>& lines, uint32_t whose) : out(lines), pid(whose) {}
    std::vector<std::string>& out;
    uint32_t pid;
  };
  static void Describe(const std::string& path, uint32_t pid, std::vector<std::string>& out) {
    const auto source = os::OpenSource(path);
    ASSERT_TRUE(source);
    const auto reader = perfdata::Reader::Open(**source);
    ASSERT_TRUE(reader);
    for (const perfdata::Event& event : (*reader)->events().events()) {
      EXPECT_FALSE(event.attr.Has(perfdata::kAttrPtrAuth)) << "perf would warn of it";
    }
    Describing describing(out, pid);
    EXPECT_TRUE((*reader)->ReadAll(describing));
  }

 protected:
  std::string folder_ = fmt::format("{}stackreel-ptr-auth-{}", testing::TempDir(), getpid());
  ProcessorOptions options_;
  perfdata::Event event_;
  Counters counters_;
  uint64_t time_ = 0;

 private:
  std::vector<uint8_t> ring_;
  std::vector<std::vector<uint8_t>> rounds_;
};

constexpr const char* kAllKeys =
    ": keys 0x1f, instruction mask 0x7f000000000000, data mask 0x7f000000000000, the kernel's "
    "record";
constexpr const char* kNoKeys =
    ": keys none, instruction mask 0x7f000000000000, data mask 0x7f000000000000, the kernel's "
    "record";

TEST_F(PtrAuthTest, IsWrittenInTheFormThatPerfPassesOverAtItsPlace) {
  for (const bool unwinds : {false, true}) {
    options_.unwind_live = unwinds;
    time_ = 0;
    Put(perfdata::RecordType::kComm, perfdata::Comm{kPid, kPid, "x"}, perfdata::kMiscCommExec);
    Put(perfdata::RecordType::kPtrAuth, perfdata::PtrAuth{kPid, kPid, 0x1f, kMask, kMask});
    PutSample();
    Put(perfdata::RecordType::kPtrAuth, perfdata::PtrAuth{kPid, kPid, 0, kMask, kMask});
    PutSample();
    EndRound();
    EXPECT_EQ(Process(),
              (std::vector<std::string>{"file", std::string("0 at 2") + kAllKeys, "SAMPLE",
                                        std::string("0 at 4") + kNoKeys, "SAMPLE"}));
    std::filesystem::remove(options_.path);
  }
  EXPECT_EQ(counters_.Get("record.bad_record"), 0u);
}

TEST_F(PtrAuthTest, OneThatCannotBeReadIsCountedAndNotWritten) {
  options_.unwind_live = false;
  Put(perfdata::RecordType::kPtrAuth, perfdata::Opaque{std::vector<uint8_t>(16)});
  PutSample();
  EndRound();
  EXPECT_EQ(Process(), (std::vector<std::string>{"file", "SAMPLE"}));
  EXPECT_EQ(counters_.Get("record.bad_record"), 1u);
}

// A further file begins with what the kernel has said up to then, of threads too.
TEST_F(PtrAuthTest, AFurtherFileBeginsWithTheMasks) {
  options_.unwind_live = false;
  options_.switch_output.bytes = 1;
  Put(perfdata::RecordType::kFork, perfdata::Task{kPid, 1, kPid, 1, 1});
  Put(perfdata::RecordType::kPtrAuth, perfdata::PtrAuth{kPid, kPid, 0x1f, kMask, kMask});
  for (const uint32_t tid : {kPid + 1, kPid + 2}) {
    Put(perfdata::RecordType::kFork, perfdata::Task{kPid, kPid, tid, kPid, 1});
  }
  Put(perfdata::RecordType::kPtrAuth, perfdata::PtrAuth{kPid, kPid + 2, 0, kMask, kMask});
  EndRound();
  EndRound();  // lets go what the sorter holds back
  const std::vector<std::string> lines = Process();
  const auto last = std::find(lines.rbegin(), lines.rend(), "file");
  EXPECT_EQ(std::vector<std::string>(last.base(), lines.end()),
            (std::vector<std::string>{std::string("0 at 0") + kAllKeys,
                                      std::string("2 at 0") + kNoKeys}));
}

// What changes once the program runs is told by records, and was otherwise before.
TEST_F(PtrAuthTest, KeysAreReadBeforeTheProgramRuns) {
  const auto self = static_cast<uint32_t>(getpid());
  uint64_t keys = 0x1e;
  options_.masks = os::MaskRoute::kRecords;
  options_.pids = {self};
  options_.ptr_auth = [&](uint32_t, uint32_t) -> Result<os::PointerAuthentication> {
    return os::PointerAuthentication{keys, kMask, kMask};
  };
  const std::vector<std::string> lines = Process(self, [&] { keys = 0x1f; });
  EXPECT_EQ(lines, (std::vector<std::string>{
                       "file",
                       "0 at 0: keys 0x1e, instruction mask 0x7f000000000000, data mask "
                       "0x7f000000000000, the process's ptr_auth file"}));
}

}  // namespace
}  // namespace stackreel::record
