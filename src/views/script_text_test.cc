#include "views/script_text.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "analyze/fake_recording.h"

namespace stackreel::views {
namespace {

using analyze::FakeFiles;
using analyze::FakeRecording;
using analyze::kChainSample;
using analyze::kPlainSample;
using analyze::MakeEvent;
using perfdata::kContextUser;
using ::testing::HasSubstr;

constexpr uint64_t kBias = 0x555500000000;

class FormatSink : public analyze::AnalysisSink {
 public:
  FormatSink(ScriptFormatter& formatter, bool json) : formatter_(formatter), json_(json) {}
  Status OnSample(const analyze::AnalyzedSample& sample) override {
    return json_ ? formatter_.AppendJson(sample, text) : formatter_.AppendText(sample, text);
  }
  std::string text;

 private:
  ScriptFormatter& formatter_;
  bool json_;
};

class ScriptTest : public ::testing::Test {
 protected:
  explicit ScriptTest(std::vector<perfdata::Event> events = {MakeEvent(kChainSample, 1, "cycles")})
      : recording_(std::move(events)) {
    files_.elf["/bin/prog"] = analyze::MakeFile();
    recording_.Mmap(1, kBias + 0x1000, 0x4000, analyze::TextOffset(files_.elf["/bin/prog"]),
                    "/bin/prog");
    recording_.Comm(1, 1, "prog");
  }
  Result<std::string> Format(const std::string& fields, bool json = false, bool ns = false) {
    const std::vector<uint8_t> bytes = recording_.Take();
    MemorySource source(bytes);
    auto reader = perfdata::Reader::Open(source);
    CHECK(reader.has_value());
    InlineExecutor executor;
    analyze::Analysis analysis(**reader, files_, executor, {});
    ScriptOptions options;
    options.nanoseconds = ns;
    if (!fields.empty()) {
      TRY_ASSIGN(options.fields, FieldSelection::Parse(fields));
    }
    ScriptFormatter formatter(analysis, options);
    FormatSink sink(formatter, json);
    TRY(analysis.Run(sink));
    return sink.text;
  }
  void Chain() {
    perfdata::Sample sample;
    sample.time = 12'000'345'678;
    sample.ip = kBias + 0x1010;
    const std::vector<uint8_t> words =
        recording_.Words({kContextUser, kBias + 0x1010, kBias + 0x2020, 0x7000});
    sample.callchain = perfdata::U64Array(words, Endian::kLittle);
    recording_.Sample(sample);
  }

  FakeFiles files_;
  FakeRecording recording_;
};

TEST_F(ScriptTest, UsualFields) {
  Chain();
  const std::string at = fmt::format("{:x}", analyze::TextOffset(files_.elf["/bin/prog"]) + 0x10);
  const std::string text = *Format("");
  EXPECT_THAT(text, HasSubstr("prog     1    12.000345:       1000 cycles: \n"));
  EXPECT_THAT(text, HasSubstr(at + " f1000+0x10 (/bin/prog)\n"));
  EXPECT_THAT(text, HasSubstr("            7000 [unknown] ([unknown])\n\n"));
}

TEST_F(ScriptTest, ChosenFieldsAndChanges) {
  Chain();
  EXPECT_EQ(*Format("comm,tid,time,event", false, true),
            "            prog     1    12.000345678: cycles: \n");
}

TEST_F(ScriptTest, FieldsLeftOut) {
  Chain();
  EXPECT_EQ(*Format("-ip,-sym,-dso,-period"), "            prog     1    12.000345: cycles: \n");
}

TEST_F(ScriptTest, AFieldThatSamplesDoNotHave) {
  Chain();
  const auto text = Format("tid,addr");
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(text.error().message, HasSubstr("'addr' cannot be printed"));
}

TEST_F(ScriptTest, Json) {
  Chain();
  Chain();
  const std::string text = *Format("", true);
  const size_t newline = text.find('\n');
  const auto first = nlohmann::json::parse(text.substr(0, newline));
  const auto second = nlohmann::json::parse(text.substr(newline));
  EXPECT_EQ(first, second) << "whoever writes the first one adds the schema";
  EXPECT_EQ(first["comm"], "prog");
  EXPECT_EQ(first["time_ns"], 12'000'345'678);
  EXPECT_FALSE(first.contains("cpu"));
  ASSERT_EQ(first["frames"].size(), 3U);
  EXPECT_EQ(first["frames"][0]["sym"], "f1000");
  EXPECT_EQ(first["frames"][0]["offset"], 0x10);
  EXPECT_EQ(first["frames"][1]["ip"], "0x555500002020");
  EXPECT_EQ(first["frames"][1]["dso"], "/bin/prog");
  EXPECT_FALSE(first["frames"][2].contains("dso"));
}

// A page fault's addr stands with its function, as perf has it.
class PageFaultTest : public ScriptTest {
 protected:
  static std::vector<perfdata::Event> Event() {
    auto event = MakeEvent(kPlainSample | perfdata::kSampleAddr, 1, "page-faults");
    event.attr.config = perfdata::kSwPageFaults;
    return {event};
  }
  PageFaultTest() : ScriptTest(Event()) {}
};

TEST_F(PageFaultTest, AddrHasItsFunction) {
  perfdata::Sample sample;
  sample.ip = kBias + 0x1010;
  sample.addr = kBias + 0x3004;
  recording_.Sample(sample);
  sample.addr = 0x10;
  recording_.Sample(sample);
  EXPECT_EQ(*Format("addr,ip,sym,symoff,dso"),
            "    555500003004 f3000+0x4 (/bin/prog)     555500001010 f1000+0x10 (/bin/prog)\n"
            "              10 [unknown] ([unknown])     555500001010 f1000+0x10 (/bin/prog)\n");
}

// The tag that a pointer carries is shown, and is no part of where it points.
TEST_F(PageFaultTest, TagsOfAddr) {
  perfdata::Sample sample;
  sample.ip = kBias + 0x1010;
  sample.addr = (kBias + 0x3004) | uint64_t{0x2a} << 57;
  recording_.Sample(sample);
  EXPECT_EQ(*Format("addr,ip,sym,symoff,dso"),
            "5400555500003004 f3000+0x4 (/bin/prog)     555500001010 f1000+0x10 (/bin/prog)\n");
}

TEST(FieldSelectionTest, Refusals) {
  for (const char* text : {"", "nothing", "comm,+ip", "sym", "comm,,ip"}) {
    const auto selection = FieldSelection::Parse(text);
    ASSERT_FALSE(selection) << text;
    EXPECT_EQ(selection.error().kind, ErrorKind::kUsage) << text;
  }
}

}  // namespace
}  // namespace stackreel::views
