#include <gtest/gtest.h>

#include <algorithm>
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

int RunQuietly(std::vector<std::string> args, std::string& errors) {
  args.insert(args.begin(), "stackreel");
  std::vector<const char*> argv;
  argv.reserve(args.size());
  for (const std::string& arg : args) argv.push_back(arg.c_str());
  ::testing::internal::CaptureStderr();
  const int code = Program().Run(static_cast<int>(argv.size()), argv.data());
  errors = ::testing::internal::GetCapturedStderr();
  return code;
}

// Every option that takes a number refuses one that makes no sense, in a line that can be read.
TEST(NumberTest, EveryNumericOptionHasARange) {
  int options = 0;
  for (const CommandDoc& doc : Program().Docs()) {
    for (const std::vector<OptionDoc>* list : {&doc.options, &doc.global_options}) {
      for (const OptionDoc& option : *list) {
        const std::vector<std::string> kinds = {"N",   "MS",  "SECONDS", "PERCENT", "HZ",
                                                "PID", "TID", "LEVEL",   "PAGES"};
        if (std::find(kinds.begin(), kinds.end(), option.value) == kinds.end()) continue;
        ++options;
        for (const char* value : {"-7", "1e300", "nan", "x", "99999999999999999999999"}) {
          std::string errors;
          const std::string given = option.names.back() + "=" + value;
          EXPECT_EQ(RunQuietly({doc.name, given, "-i", "/nowhere/perf.data"}, errors), kExitUsage)
              << doc.name << " " << given << ": " << errors;
          EXPECT_LT(errors.size(), 300U) << errors;
        }
      }
    }
  }
  EXPECT_GT(options, 20);
}

TEST(NumberTest, RefusalsCanBeRead) {
  std::string errors;
  RunQuietly({"report", "--max-stack", "0"}, errors);
  EXPECT_NE(errors.find("'0' is not a whole number from 1 to 1000000"), std::string::npos)
      << errors;
}

// An option without a meaning to an empty value must not take the next argument, or choose all.
TEST(ArgumentTest, NoOptionTakesAnEmptyValue) {
  int options = 0;
  for (const CommandDoc& doc : Program().Docs()) {
    for (const std::vector<OptionDoc>* list : {&doc.options, &doc.global_options}) {
      for (const OptionDoc& option : *list) {
        if (option.value.empty()) continue;
        ++options;
        for (const std::string& name : option.names) {
          std::string errors;
          EXPECT_EQ(RunQuietly({doc.name, name, ""}, errors), kExitUsage) << doc.name << name;
          EXPECT_NE(errors.find(name + ": the value is empty"), std::string::npos) << errors;
          if (!name.starts_with("--")) continue;
          EXPECT_EQ(RunQuietly({doc.name, name + "=", "perf.data"}, errors), kExitUsage);
          EXPECT_NE(errors.find(name + ": the value is empty"), std::string::npos) << errors;
        }
      }
    }
  }
  EXPECT_GT(options, 50);
}

TEST(ArgumentTest, AnUnknownOptionIsNamedAndNotTheFileBesideIt) {
  for (const CommandDoc& doc : Program().Docs()) {
    for (const std::string option : {"--no-such-thing-here", "-~"}) {
      std::string errors;
      EXPECT_EQ(RunQuietly({doc.name, option, "perf.data"}, errors), kExitUsage);
      EXPECT_NE(errors.find(doc.name + ": there is no option " + option), std::string::npos)
          << errors;
      EXPECT_EQ(errors.find("perf.data"), std::string::npos) << errors;
    }
  }
}

TEST(ArgumentTest, OptionsOfARecordedCommandAreItsOwn) {
  std::string errors;
  RunQuietly({"record", "/no/such/command", "--not-ours", "--empty="}, errors);
  EXPECT_NE(errors.find("command not found: /no/such/command"), std::string::npos) << errors;
  RunQuietly({"record", "--", "/no/such/command", "--not-ours", ""}, errors);
  EXPECT_NE(errors.find("command not found: /no/such/command"), std::string::npos) << errors;
}

TEST(HelpTest, OptionsShowTheirDefaults) {
  for (const CommandDoc& doc : Program().Docs()) {
    const std::string text = HelpText(doc);
    if (doc.name == "record") {
      EXPECT_NE(text.find("(default: 997)"), std::string::npos) << text;
      EXPECT_NE(text.find("65528"), std::string::npos) << text;
    }
    if (doc.name == "report") {
      EXPECT_NE(text.find("(default: 1024)"), std::string::npos) << text;
    }
  }
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
