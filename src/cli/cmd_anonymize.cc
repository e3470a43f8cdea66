// stackreel anonymize: a recording that can be given away.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "analyze/chain_step.h"
#include "anonymize/anonymize.h"
#include "cli/command.h"
#include "cli/file_search.h"
#include "cli/print.h"
#include "cli/recording_input.h"
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
    return {"stackreel anonymize perf.data -o public.data   # hide where everything lay in memory",
            "stackreel anonymize perf.data -o public.data --report   # and say what was changed"};
  }
  void AddOptions(CLI::App& app) override;
  Result<int> Run(const GlobalOptions& global) override;

 private:
  [[nodiscard]] Result<anonymize::Key> ReadKey() const;

  std::string input_;
  std::string output_;
  bool addresses_ = false;
  std::string key_file_;
  std::string report_;
  FileSearch search_;
};

void AnonymizeCommand::AddOptions(CLI::App& app) {
  app.add_option("IN", input_, "The recording; - is standard input")->required();
  app.add_option("-o,--output", output_, "Where to write it; - is standard output, as a pipe")
      ->type_name("FILE")
      ->required();
  app.add_flag("--addresses", addresses_,
               "Hide where the kernel and processes lie in memory, and what was in it (default)");
  app.add_option("--key", key_file_,
                 "A file with a secret, 16 bytes or more: equal keys give equal outputs; without "
                 "it a random key is made and thrown away")
      ->type_name("FILE");
  app.add_flag("--report{text}", report_,
               "Print what was changed, dropped and kept, by record and field; =json: as JSON")
      ->check(CLI::IsMember({"text", "json"}));
  search_.AddOptions(app, FileUse::kUnwind);
}

Result<anonymize::Key> AnonymizeCommand::ReadKey() const {
  if (key_file_.empty()) return anonymize::Key::Random();
  TRY_ASSIGN(const std::string secret, os::ReadTextFile(key_file_));
  return anonymize::Key::FromSecret(AsBytes(secret));
}

Result<int> AnonymizeCommand::Run(const GlobalOptions& global) {
  TRY(search_.Check());
  TRY_ASSIGN(const anonymize::Key key, ReadKey());
  TRY_ASSIGN(const RecordingFiles files, OpenRereadableFiles(input_));
  const anonymize::RereadableRecording recording(*files.sources.front(), files.parts());
  TRY_ASSIGN(const std::unique_ptr<os::OutputFile> output, os::OutputFile::Create(output_));

  const std::unique_ptr<Executor> executor = os::MakeThreadPool(global.threads);
  std::unique_ptr<symbolize::ModuleFileProvider> module_files;
  anonymize::Options options;
  options.unwind = [&](const anonymize::RecordingHead& head, perfdata::TimedSink& next) {
    module_files = search_.MakeProvider(global, head.features);
    return analyze::MakeChainStep(head, next, *module_files, *executor);
  };
  const bool to_pipe = output_ == "-";
  options.container = to_pipe ? perfdata::Container::kPipe : perfdata::Container::kFile;
  TRY_ASSIGN(const anonymize::Outcome outcome,
             anonymize::Anonymize(recording, *output, key, options));
  TRY(output->Commit());
  if (!report_.empty()) {
    const anonymize::Report& report = outcome.report;
    Print(to_pipe ? stderr : stdout, "{}",
          report_ == "json" ? report.Json(options.level) : report.Text(options.level));
  }
  if (!global.quiet) {
    for (const auto& [name, count] : outcome.report.counters.values()) {
      if (global.verbose > 0) Print(stderr, "{}: {}\n", name, count);
    }
  }
  return kExitDone;
}

}  // namespace

std::unique_ptr<Command> MakeAnonymizeCommand() { return std::make_unique<AnonymizeCommand>(); }

}  // namespace stackreel::cli
