#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "cli/help.h"
#include "cli/program.h"

namespace stackreel::cli {
namespace {

CommandDoc SampleDoc() {
  CommandDoc doc;
  doc.name = "report";
  doc.summary = "Show where time went";
  doc.usage = "stackreel report [options] [FILE]";
  doc.examples = {"stackreel report  # all of it"};
  doc.positionals = {{"FILE", "A recording", false, false}};
  doc.options = {{{"-s", "--sort"}, "KEYS", "Sort by these keys", "", {}},
                 {{"--format"}, "text|json", "Output format", "", {"text", "json"}}};
  doc.global_options = {{{"-q", "--quiet"}, "", "Print less", "", {}}};
  return doc;
}

TEST(HelpTest, ExamplesComeBeforeOptions) {
  const std::string text = HelpText(SampleDoc());
  ASSERT_NE(text.find("Examples:"), std::string::npos);
  EXPECT_LT(text.find("Examples:"), text.find("Usage:"));
  EXPECT_LT(text.find("Usage:"), text.find("-s, --sort=KEYS"));
}

TEST(HelpTest, ManPageEscapesHyphensAndLeadingDots) {
  CommandDoc doc = SampleDoc();
  doc.options[0].description = ".so would include a file";
  const std::string page = ManPage(&doc, {doc});
  EXPECT_NE(page.find("\\fB\\-\\-sort\\fR"), std::string::npos);
  EXPECT_NE(page.find("\n\\&.so would"), std::string::npos);
}

TEST(HelpTest, CompletionOffersChoices) {
  for (const Shell shell : {Shell::kBash, Shell::kZsh, Shell::kFish}) {
    EXPECT_NE(CompletionScript(shell, {SampleDoc()}).find("text json"), std::string::npos);
  }
}

TEST(NearestTest, FindsATypoAndNothingForAnotherWord) {
  EXPECT_EQ(Nearest("reprot", {"record", "report", "script"}), "report");
  EXPECT_EQ(Nearest("zzzz", {"record", "report", "script"}), "");
}

class SettingsTest : public ::testing::Test {
 protected:
  SettingsTest() : sub_(app_.add_subcommand("report", "")) {
    app_.add_flag("--quiet", quiet_);
    sub_->add_option("--sort", sort_);
    sub_->add_option("--limit", limit_);
  }
  ~SettingsTest() override { unsetenv("STACKREEL_REPORT_SORT"); }
  CLI::App app_;
  CLI::App* sub_;
  bool quiet_ = false;
  std::string sort_ = "default";
  double limit_ = 0;
};

TEST_F(SettingsTest, OptionBeatsEnvironmentBeatsConfig) {
  const std::string config = "quiet = true\n[report]\nsort = \"config\"\nlimit = 2.5\n";
  setenv("STACKREEL_REPORT_SORT", "environment", 1);
  app_.parse("report");
  ASSERT_TRUE(ApplySettings(*sub_, config, "c"));
  EXPECT_EQ(sort_, "environment");
  EXPECT_EQ(limit_, 2.5);
  EXPECT_TRUE(quiet_);

  app_.clear();
  app_.parse("report --sort=typed");
  ASSERT_TRUE(ApplySettings(*sub_, config, "c"));
  EXPECT_EQ(sort_, "typed");
}

TEST_F(SettingsTest, AnUnknownOptionInTheConfigIsNamedWithItsFile) {
  app_.parse("report");
  const Status status = ApplySettings(*sub_, "[report]\nsrot = \"x\"\n", "config.toml");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().ToString(), "config.toml: there is no option 'report.srot'");
}

TEST_F(SettingsTest, AnotherCommandsTableIsLeftAlone) {
  app_.parse("report");
  EXPECT_TRUE(ApplySettings(*sub_, "[record]\nfrequency = 99\n", "c"));
}

TEST_F(SettingsTest, AValueThatDoesNotFitIsAUsageError) {
  app_.parse("report");
  const Status status = ApplySettings(*sub_, "[report]\nlimit = \"many\"\n", "c");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::kUsage);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they end by themselves
TEST(ProgramTest, NoMemoryIsAnErrorAndNoCrash) {
  const auto want_too_much = [] {
    std::set_new_handler(EndOutOfMemory);
    [[maybe_unused]] void* volatile kept = ::operator new(size_t{1} << 62);
  };
  EXPECT_EXIT(want_too_much(), testing::ExitedWithCode(kExitFailed), "error: out of memory");
}
#endif

}  // namespace
}  // namespace stackreel::cli
