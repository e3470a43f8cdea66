#include "views/text_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "profile/folded_profile.h"

namespace stackreel::views {
namespace {

using profile::SortKey;
using ::testing::HasSubstr;
using ::testing::Not;

// The report without its head.
std::string Body(const std::string& report) {
  const size_t at = report.find("#\n  ");
  return at == std::string::npos ? report : report.substr(at + 2);
}

class ReportTest : public ::testing::Test {
 protected:
  ReportTest() {
    profile_.facts.events = {"cycles", "cache-misses"};
    AddFolded(profile_,
              "app;main;parse;lex 40\n"
              "app;main;parse;read;[kernel.kallsyms]!copy 20\n"
              "app;main;render 39\n"
              "app;main;tiny 1\n");
  }
  profile::Profile profile_;
  ReportOptions options_;
};

TEST_F(ReportTest, ChildrenWithCallersFirst) {
  options_.percent_limit = 50;
  options_.graph_percent_limit = 5;
  EXPECT_EQ(Body(TextReport(profile_, options_)),
            "   100.00%      0.00%  app      app            [.] main\n"
            "            |\n"
            "            ---main\n"
            "               |\n"
            "               |--60.00%--parse\n"
            "               |          |\n"
            "               |          |--40.00%--lex\n"
            "               |          |\n"
            "               |           --20.00%--read\n"
            "               |                     copy\n"
            "               |\n"
            "                --39.00%--render\n"
            "\n"
            "    60.00%      0.00%  app      app            [.] parse\n"
            "            |\n"
            "            ---parse\n"
            "               |\n"
            "               |--40.00%--lex\n"
            "               |\n"
            "                --20.00%--read\n"
            "                          copy\n"
            "\n"
            "# 5 more rows not shown, 100.00% of self together (--percent-limit, --rows)\n");
}

TEST_F(ReportTest, NoChildrenWithCalleesFirst) {
  options_.children = false;
  options_.graph = CallGraph::kCallee;
  options_.keys = {SortKey::kDso, SortKey::kSym};
  options_.max_rows = 1;
  EXPECT_EQ(Body(TextReport(profile_, options_)),
            "    40.00%  app            [.] lex\n"
            "            |\n"
            "            ---lex\n"
            "               parse\n"
            "               main\n"
            "\n"
            "# 3 more rows not shown, 60.00% of self together (--percent-limit, --rows)\n");
}

TEST_F(ReportTest, NoGraphIsOneLineARow) {
  options_.graph = CallGraph::kNone;
  options_.children = false;
  options_.keys = {SortKey::kTid, SortKey::kSym};
  EXPECT_EQ(Body(TextReport(profile_, options_)),
            "    40.00%  100  [.] lex\n"
            "    39.00%  100  [.] render\n"
            "    20.00%  100  [k] copy\n"
            "     1.00%  100  [.] tiny\n");
}

TEST_F(ReportTest, BranchesBelowTheLimitAreSummedUp) {
  AddFolded(profile_, "app;main;render;a 3\napp;main;render;b 3\napp;main;render;c 30\n");
  options_.children = false;
  options_.keys = {SortKey::kComm};
  options_.graph = CallGraph::kCaller;
  options_.graph_percent_limit = 4;
  const std::string report = TextReport(profile_, options_);
  EXPECT_THAT(report, HasSubstr("--55.15%--render\n"));
  EXPECT_THAT(report, HasSubstr("--22.06%--c\n"));
  EXPECT_THAT(report, HasSubstr("--4.41%--[...]\n"));
}

TEST_F(ReportTest, RowFiltersKeepPercentagesUnlessTold) {
  options_.graph = CallGraph::kNone;
  options_.children = false;
  options_.row_dsos = {"[kernel*"};
  EXPECT_THAT(TextReport(profile_, options_), HasSubstr("    20.00%  app "));
  EXPECT_THAT(TextReport(profile_, options_), Not(HasSubstr("lex")));
  options_.percentage_of_rows = true;
  EXPECT_THAT(TextReport(profile_, options_), HasSubstr("   100.00%  app "));
}

TEST_F(ReportTest, EventsAreSections) {
  AddFolded(profile_, "app;main;miss 7\n", 1);
  options_.graph = CallGraph::kNone;
  const std::string report = TextReport(profile_, options_);
  const size_t first = report.find("# Samples: 4 of event 'cycles'\n");
  const size_t second = report.find("# Samples: 1 of event 'cache-misses'\n");
  ASSERT_NE(first, std::string::npos);
  ASSERT_NE(second, std::string::npos);
  EXPECT_LT(first, second);
  EXPECT_THAT(report.substr(0, second), Not(HasSubstr("miss\n")));
}

TEST_F(ReportTest, StatesWhatIsMissingAndWhy) {
  profile_.facts.lost = 1;
  profile_.facts.user_stacks = 4;
  profile_.facts.complete_stacks = 3;
  profile_.facts.stack_ends = {{"no CFI", 1}};
  profile_.facts.frames = 200;
  profile_.facts.unresolved_frames = 3;
  profile_.facts.unresolved_modules = {{"liba.so", {1, "no such file"}}, {"libb.so", {2, ""}}};
  profile_.facts.damage = "perf.data: offset 0x10: cut off";
  const std::string report = TextReport(profile_, options_);
  EXPECT_THAT(report,
              HasSubstr("# Damaged input, only a part was read: perf.data: offset 0x10: cut off\n"
                        "# Samples: 4\n"
                        "# Lost samples: 1 (20.00% of 5 taken)\n"
                        "# Complete stacks: 3 of 4 (75.00%)\n"
                        "#   1 ended: no CFI\n"
                        "# Unresolved frames: 3 of 200 (1.50%)\n"
                        "#   2 in libb.so\n"
                        "#   1 in liba.so: no such file\n"));
}

TEST_F(ReportTest, StatesThatTheRecorderDidNotEnd) {
  EXPECT_THAT(TextReport(profile_, options_), Not(HasSubstr("Unfinished")));
  profile_.facts.unfinished = true;
  EXPECT_THAT(TextReport(profile_, options_),
              HasSubstr("# Unfinished recording: its recorder was killed or the machine went down, "
                        "the last moments are missing\n"
                        "# Samples: 4\n"
                        "# Lost samples: none that are known\n"));
}

TEST_F(ReportTest, NoSamplesIsSaid) {
  options_.filter.comms = {"other"};
  EXPECT_THAT(TextReport(profile_, options_), HasSubstr("# No samples pass the filters.\n"));
  EXPECT_THAT(TextReport({}, options_), HasSubstr("# No samples.\n"));
}

TEST_F(ReportTest, LinesFitTheWidth) {
  AddFolded(profile_, "a_long_command_name;a_very_long_module_name_indeed.so.1.2.3!" +
                          std::string(200, 'f') + ";g;h;" + std::string(100, 'i') + " 50\n");
  options_.width = 80;
  const std::string report = TextReport(profile_, options_);
  size_t at = 0;
  while (at < report.size()) {
    const size_t end = report.find('\n', at);
    size_t width = 0;
    for (size_t i = at; i < end; ++i) width += (report[i] & 0xC0) != 0x80 ? 1 : 0;
    EXPECT_LE(width, 80u) << report.substr(at, end - at);
    at = end + 1;
  }
  EXPECT_THAT(report, HasSubstr("ffff…\n"));
}

TEST_F(ReportTest, ColorsAreOnlyAddedWhenAsked) {
  EXPECT_THAT(TextReport(profile_, options_), Not(HasSubstr("\x1b")));
  options_.color = true;
  options_.graph = CallGraph::kNone;
  options_.children = false;
  EXPECT_THAT(TextReport(profile_, options_),
              HasSubstr("\x1b[31m    40.00%\x1b[0m  app      app                [.] lex\n"));
}

TEST_F(ReportTest, NamesCannotDriveTheTerminal) {
  AddFolded(profile_, "e\x1b[2Jvil;main\x07 50\n");
  EXPECT_THAT(TextReport(profile_, options_), Not(HasSubstr("\x1b")));
  EXPECT_THAT(TextReport(profile_, options_), HasSubstr("e\\x1b[2Jvil"));
}

TEST_F(ReportTest, JsonHoldsTheSame) {
  options_.percent_limit = 50;
  options_.graph_percent_limit = 5;
  const auto json = nlohmann::json::parse(JsonReport(profile_, options_));
  EXPECT_EQ(json["schema"], "stackreel.report/1");
  EXPECT_EQ(json["facts"]["samples"], 4);
  const auto& event = json["events"][0];
  EXPECT_EQ(event["event"], "cycles");
  EXPECT_EQ(event["hidden_rows"], 5);
  const auto& row = event["rows"][0];
  EXPECT_EQ(row["comm"], "app");
  EXPECT_EQ(row["sym"]["function"], "main");
  EXPECT_EQ(row["children"]["percent"], 100.0);
  EXPECT_EQ(row["self"]["weight"], 0);
  ASSERT_EQ(row["graph"].size(), 6u);
  EXPECT_EQ(row["graph"][0]["function"], "main");
  EXPECT_TRUE(row["graph"][0]["parent"].is_null());
  EXPECT_EQ(row["graph"][1]["function"], "parse");
  EXPECT_EQ(row["graph"][1]["parent"], 0);
  EXPECT_EQ(row["graph"][0]["left_out"]["weight"], 1);
}

TEST_F(ReportTest, JsonIsValidWhateverTheNames) {
  AddFolded(profile_, "\xff\xfe;ma\"in\x01 50\n");
  EXPECT_TRUE(nlohmann::json::accept(JsonReport(profile_, options_)));
}

TEST_F(ReportTest, CsvQuotesWhatItMust) {
  profile::Profile profile;
  profile.facts.events = {"cycles"};
  AddFolded(profile, "app;f(int,\"x\") 3\napp;g 1\n");
  options_.children = false;
  EXPECT_EQ(CsvReport(profile, options_),
            "event,self_percent,self_samples,self_weight,comm,dso,sym\n"
            "cycles,75.0000,1,3,app,app,\"[.] f(int,\"\"x\"\")\"\n"
            "cycles,25.0000,1,1,app,app,[.] g\n");
}

// A chain and a tree as deep as this would end a program that recurses or is quadratic.
TEST_F(ReportTest, DeepStacksArePrinted) {
  std::string line = "app";
  for (int i = 0; i < 5000; ++i) line += ";f" + std::to_string(i);
  AddFolded(profile_, line + " 100\n");
  options_.max_rows = 20;
  const std::string report = TextReport(profile_, options_);
  EXPECT_THAT(report, HasSubstr("f255\n"));
  EXPECT_LT(report.size(), 1'000'000u);
}

}  // namespace
}  // namespace stackreel::views
