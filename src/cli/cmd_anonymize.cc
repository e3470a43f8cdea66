// stackreel anonymize: a recording that can be given away. inject --aslr is perf's spelling of it.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analyze/chain_step.h"
#include "analyze/function_names.h"
#include "anonymize/anonymize.h"
#include "anonymize/verify.h"
#include "base/plural.h"
#include "cli/anonymized_output.h"
#include "cli/command.h"
#include "cli/compared_samples.h"
#include "cli/event_choice.h"
#include "cli/file_search.h"
#include "cli/print.h"
#include "cli/recording_input.h"
#include "cli/unwound_chains.h"
#include "os/file.h"
#include "os/thread_pool.h"

namespace stackreel::cli {
namespace {

class AnonymizeCommand : public Command {
 public:
  [[nodiscard]] const char* name() const override { return "anonymize"; }
  [[nodiscard]] const char* summary() const override {
    return "Make a recording that can be given away: without addresses and data of the machine";
  }
  [[nodiscard]] std::vector<std::string> examples() const override {
    return {
        "stackreel anonymize perf.data -o public.data   # hide where everything lay in memory",
        "stackreel anonymize perf.data -o public.data --report   # and say what was changed",
        "stackreel anonymize perf.data -o public.data --identity   # hide machine and users, too",
        ("stackreel anonymize perf.data -o public.data --symbols --public-modules open.txt   "
         "# and all modules and functions but those of everybody's and of open.txt"),
        "stackreel anonymize --verify perf.data public.data   # whether anything is left"};
  }
  void AddOptions(CLI::App& app) override;
  Result<int> Run(const GlobalOptions& global) override;

 protected:
  // Those that inject has as well; gives those of no use with --verify.
  std::vector<CLI::Option*> AddCommonOptions(CLI::App& app, FileUse use);
  Result<int> Make(const GlobalOptions& global);

  std::string input_;
  std::string output_;

 private:
  [[nodiscard]] Result<anonymize::Key> ReadKey() const;
  [[nodiscard]] Result<anonymize::PublicNames> ReadPublicNames() const;
  // Nothing if none was chosen.
  [[nodiscard]] std::optional<anonymize::Level> ChosenLevel() const {
    if (symbols_) return anonymize::Level::kSymbols;
    if (identity_) return anonymize::Level::kIdentity;
    if (addresses_) return anonymize::Level::kAddresses;
    return std::nullopt;
  }
  // The binaries that stacks are unwound with, and functions named.
  [[nodiscard]] ModuleFilesFactory FilesOf(const GlobalOptions& global) const {
    return [this, &global](const perfdata::Features& features) {
      return search_.MakeProvider(global, features);
    };
  }
  Result<int> VerifyOnly(const GlobalOptions& global);

  // What OUT may be, and what IN may.
  [[nodiscard]] anonymize::VerifyOptions HowToVerify() const {
    anonymize::VerifyOptions options;
    options.level = ChosenLevel();
    options.keeps_raw = keep_raw_ == "safe";
    options.salvaged = salvage_;
    return options;
  }
  // Says what was lost; gives the exit code.
  [[nodiscard]] static int Tell(const anonymize::Outcome& outcome, const GlobalOptions& global);

  std::string to_verify_;
  bool verify_ = false, no_verify_ = false;
  bool addresses_ = false, identity_ = false, symbols_ = false;
  std::string public_modules_file_, public_comms_file_;
  std::string key_file_, keep_raw_, report_;
  bool salvage_ = false;
  FileSearch search_;
};

class InjectCommand : public AnonymizeCommand {
 public:
  [[nodiscard]] const char* name() const override { return "inject"; }
  [[nodiscard]] const char* summary() const override {
    return "Rewrite a recording: --aslr is anonymize --addresses as perf inject spells it";
  }
  [[nodiscard]] std::vector<std::string> examples() const override {
    return {"stackreel inject --aslr -i perf.data -o public.data"};
  }
  void AddOptions(CLI::App& app) override;
  Result<int> Run(const GlobalOptions& global) override;

 private:
  bool aslr_ = false;
};

std::vector<CLI::Option*> AnonymizeCommand::AddCommonOptions(CLI::App& app, FileUse use) {
  std::vector<CLI::Option*> making;
  making.push_back(app.add_flag("--no-verify", no_verify_,
                                "Do not look whether anything is left in the output"));
  making.push_back(
      app.add_option("--key", key_file_,
                     "A file with a secret, 16 bytes or more: equal keys give equal outputs; "
                     "without it a random key is made and thrown away")
          ->type_name("FILE"));
  making.push_back(
      app.add_flag("--report{text}", report_,
                   "Print what was changed, dropped and kept, by record and field; =json: as JSON")
          ->check(CLI::IsMember({"text", "json"})));
  app.add_option(
         "--keep-raw", keep_raw_,
         "Keep raw data of tracepoints, of which safe are numbers that are declared neither "
         "as pointers nor as text, and in which no address can be read")
      ->type_name("safe")
      ->check(CLI::IsMember({"safe"}));
  app.add_flag("--salvage", salvage_,
               "Anonymise what can be read of a damaged recording, and say what was lost");
  search_.AddOptions(app, use);
  return making;
}

void InjectCommand::AddOptions(CLI::App& app) {
  input_ = output_ = "-";
  app.add_flag("--aslr", aslr_, "Hide where the kernel and processes lie in memory");
  app.add_option("-i,--input", input_, "The recording; - is standard input")
      ->type_name("FILE")
      ->capture_default_str();
  app.add_option("-o,--output", output_, "Where to write it; - is standard output, as a pipe")
      ->type_name("FILE")
      ->capture_default_str();
  AddCommonOptions(app, FileUse::kUnwind);
}

Result<int> InjectCommand::Run(const GlobalOptions& global) {
  if (aslr_) return Make(global);
  return Fail(Error(ErrorKind::kUsage, "inject does nothing but --aslr, which was not given")
                  .WithCure("stackreel inject --aslr -i perf.data -o public.data"));
}

void AnonymizeCommand::AddOptions(CLI::App& app) {
  app.add_option("IN", input_, "The recording; - is standard input")->required();
  app.add_option("-o,--output", output_, "Where to write it; - is standard output, as a pipe")
      ->type_name("FILE");
  app.add_option("OUT", to_verify_, "With --verify: what was made of IN");
  CLI::Option* const verify = app.add_flag(
      "--verify", verify_,
      "Make nothing: look whether OUT holds anything of IN that it should not; exit code 3 if so. "
      "What that is OUT's mark says, or --identity or --symbols if they hide more");
  CLI::Option* addresses = app.add_flag(
      "--addresses", addresses_,
      "Hide where the kernel and processes lie in memory, and what was in it (default)");
  CLI::Option* identity = app.add_flag(
      "--identity", identity_,
      "Hide host and users too: folders, threads, command lines, cgroups, the CPU's model, and the "
      "numbers of processes and files; times are shifted. Names of binaries and build-ids stay");
  CLI::Option* symbols = app.add_flag(
      "--symbols", symbols_,
      "Hide all that --identity hides, and modules and functions that are not public. Nobody can "
      "look their functions up "
      "then; those that occur get pseudonyms, which report shows: f_hkvmzqtwrp. Into a pipe go "
      "65,000 bytes of them at most");
  identity->excludes(addresses);
  symbols->excludes(addresses)->excludes(identity);
  app.add_option("--public-modules", public_modules_file_,
                 "A file with modules that keep their names with --symbols, as the kernel, libc "
                 "and other common ones do: one a line, of a whole path if there is a / in it; * "
                 "and ? stand for any characters")
      ->type_name("FILE");
  app.add_option("--public-comms", public_comms_file_,
                 "The same of threads that keep their names with --identity and --symbols, as the "
                 "kernel's and common commands do")
      ->type_name("FILE");
  for (CLI::Option* making : AddCommonOptions(app, FileUse::kSymbols)) making->excludes(verify);
}

Result<anonymize::Key> AnonymizeCommand::ReadKey() const {
  if (key_file_.empty()) return anonymize::Key::Random();
  TRY_ASSIGN(const std::string secret, os::ReadTextFile(key_file_));
  return anonymize::Key::FromSecret(AsBytes(secret));
}

Result<anonymize::PublicNames> AnonymizeCommand::ReadPublicNames() const {
  anonymize::PublicNames publics;
  // With --verify the level may be OUT's.
  if (!public_modules_file_.empty() && !symbols_ && !verify_) {
    return Fail(ErrorKind::kUsage, "--public-modules needs --symbols");
  }
  if (!public_modules_file_.empty()) {
    TRY_ASSIGN(const std::string text, os::ReadTextFile(public_modules_file_));
    publics.modules = anonymize::ParsePatterns(text);
  }
  if (!public_comms_file_.empty()) {
    if (!identity_ && !symbols_ && !verify_) {
      return Fail(ErrorKind::kUsage, "--public-comms needs --identity or --symbols");
    }
    TRY_ASSIGN(const std::string text, os::ReadTextFile(public_comms_file_));
    publics.comms = anonymize::ParsePatterns(text);
  }
  return publics;
}

Result<int> AnonymizeCommand::VerifyOnly(const GlobalOptions& global) {
  TRY_ASSIGN(const RecordingFiles in_files, OpenRereadableFiles(input_));
  TRY_ASSIGN(const RecordingFiles out_files, OpenRereadableFiles(to_verify_));
  const anonymize::RereadableRecording in(*in_files.sources.front(), in_files.parts());
  const anonymize::RereadableRecording out(*out_files.sources.front(), out_files.parts());
  anonymize::VerifyOptions how = HowToVerify();
  TRY_ASSIGN(how.publics, ReadPublicNames());
  TRY_ASSIGN(const anonymize::Verdict verdict,
             VerifyRecordings(in, out, how, FilesOf(global), global.threads));
  if (!verdict.clean() || !global.quiet)
    Print(stdout, "{}", VerdictText(verdict, std::string(out.name()), ChosenLevel()));
  return verdict.clean() ? kExitDone : kExitCheckSaidNo;
}

Result<int> AnonymizeCommand::Run(const GlobalOptions& global) {
  if (verify_ == to_verify_.empty()) {
    return Fail(Error(ErrorKind::kUsage, "--verify goes with two recordings, and they with it")
                    .WithCure("stackreel anonymize --verify IN OUT"));
  }
  if (verify_ != output_.empty()) {
    return Fail(ErrorKind::kUsage, verify_ ? "--verify makes no output: no --output is taken"
                                           : "--output is required");
  }
  if (!verify_) return Make(global);
  TRY(search_.Check());
  return VerifyOnly(global);
}

// The output replaces what has its name; the recording that is read shall not be lost by that.
Status CheckIsAnother(const std::string& input, const std::string& output) {
  struct stat from = {}, to = {};
  if (output == "-" || stat(output.c_str(), &to) != 0 || !S_ISREG(to.st_mode)) return {};
  const int got = input == "-" ? fstat(STDIN_FILENO, &from) : stat(input.c_str(), &from);
  if (got != 0 || from.st_dev != to.st_dev || from.st_ino != to.st_ino) return {};
  return Fail(Error(ErrorKind::kUsage,
                    fmt::format("{} is the recording that is read, and would be replaced", output))
                  .WithCure("write to another file"));
}

Result<int> AnonymizeCommand::Make(const GlobalOptions& global) {
  TRY(search_.Check());
  TRY(CheckIsAnother(input_, output_));
  TRY_ASSIGN(const anonymize::Key key, ReadKey());
  TRY_ASSIGN(const RecordingFiles files, OpenRereadableFiles(input_));
  const anonymize::RereadableRecording recording(*files.sources.front(), files.parts());
  TRY_ASSIGN(const std::unique_ptr<AnonymizedOutput> output,
             AnonymizedOutput::Create(output_, /*kept=*/!no_verify_));

  const std::unique_ptr<Executor> executor = os::MakeThreadPool(global.threads);
  std::unique_ptr<symbolize::ModuleFileProvider> module_files;
  anonymize::Options options;
  options.level = ChosenLevel().value_or(anonymize::Level::kAddresses);
  TRY_ASSIGN(options.publics, ReadPublicNames());
  const auto files_for = [&](const perfdata::Features& features) -> symbolize::ModuleFileProvider& {
    if (!module_files) module_files = FilesOf(global)(features);
    return *module_files;
  };
  UnwoundToVerify unwound;
  options.unwind = [&](const anonymize::RecordingHead& head, perfdata::TimedSink& next) {
    const auto make = [&](perfdata::TimedSink& to) {
      return analyze::MakeChainStep(head, to, files_for(head.features), *executor);
    };
    return no_verify_ ? make(next) : unwound.StandBehind(head, next, make);
  };
  if (symbols_) {
    options.name_functions = [&](const anonymize::RecordingHead& head, perfdata::TimedSink& next) {
      return analyze::MakeFunctionNamesStep(head, next, files_for(head.features));
    };
  }
  if (keep_raw_ == "safe") options.keep_raw = anonymize::KeepRaw::kSafe;
  options.salvage = salvage_;
  const bool to_pipe = output_ == "-";
  options.container = to_pipe ? perfdata::Container::kPipe : perfdata::Container::kFile;
  TRY_ASSIGN(const anonymize::Outcome outcome,
             anonymize::Anonymize(recording, *output, key, options));
  if (!no_verify_) {
    const std::unique_ptr<FileSource> source = output->Source();
    anonymize::VerifyOptions how = HowToVerify();
    how.level = options.level;
    how.publics = options.publics;
    how.must_be_marked = true;
    TRY_ASSIGN(how.unwound, unwound.Chains());
    TRY_ASSIGN(const anonymize::Verdict verdict,
               VerifyRecordings(recording, anonymize::RereadableRecording(*source), how,
                                FilesOf(global), global.threads));
    if (!verdict.clean()) {
      Print(stderr, "{}stackreel: error: {} was not made: what was to be it is not clean\n",
            VerdictText(verdict, output_, options.level), output_);
      return kExitCheckSaidNo;
    }
  }
  TRY(output->Commit());
  if (!report_.empty()) {
    const anonymize::Report& report = outcome.report;
    Print(to_pipe ? stderr : stdout, "{}",
          report_ == "json" ? report.Json(options.level) : report.Text(options.level));
  }
  return Tell(outcome, global);
}

int AnonymizeCommand::Tell(const anonymize::Outcome& outcome, const GlobalOptions& global) {
  const auto warn = [](const std::string& text) {
    Print(stderr, "stackreel: warning: {}\n", text);
  };
  if (global.verbose > 0 && !global.quiet) {
    for (const auto& [name, count] : outcome.report.counters.values()) {
      Print(stderr, "{}: {}\n", name, count);
    }
  }
  for (const auto& [what, dropped] : outcome.report.dropped()) {
    if (global.quiet || what.second != anonymize::kWhyDamaged) continue;
    warn(fmt::format("{}: {} damaged, {} bytes, left out", what.first, dropped.count,
                     dropped.bytes));
  }
  const uint64_t left_out = outcome.report.counters.Get("perfdata.feature_not_for_pipes");
  if (left_out != 0 && !global.quiet) {
    warn(
        fmt::format("{} features are too large for a pipe, and left out: write to a file to keep "
                    "them",
                    left_out));
  }
  WarnOfUnfinished(outcome.read.unfinished, global);
  if (outcome.read.damage) {
    warn(fmt::format("{}; {} read and anonymised", outcome.read.damage->ToString(),
                     PluralWere(outcome.samples, "sample")));
  }
  const bool whole = outcome.read.complete && outcome.bad_records == 0;
  return whole ? kExitDone : kExitDamagedInput;
}

}  // namespace

std::unique_ptr<Command> MakeAnonymizeCommand() { return std::make_unique<AnonymizeCommand>(); }
std::unique_ptr<Command> MakeInjectCommand() { return std::make_unique<InjectCommand>(); }

}  // namespace stackreel::cli
