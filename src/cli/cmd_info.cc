// stackreel info: what a trace is.
#include <memory>
#include <string>
#include <vector>

#include "cli/samples_of_trace.h"
#include "cli/text_output.h"
#include "cli/trace_commands.h"
#include "cli/trace_input.h"
#include "os/file.h"
#include "views/trace_dump.h"

namespace stackreel::cli {
namespace {

class InfoCommand : public Command {
 public:
  [[nodiscard]] const char* name() const override { return "info"; }
  [[nodiscard]] const char* summary() const override {
    return "Show what a trace says of program, machine, patches and losses";
  }
  [[nodiscard]] std::vector<std::string> examples() const override {
    return {"stackreel info                 # stackreel.trace of this folder",
            "stackreel info -i uftrace.data # a recording of uftrace",
            "stackreel info --format=json   # for other programs"};
  }
  void AddOptions(CLI::App& app) override {
    input_.AddInput(app);
    app.add_option("--format", format_, "How to write it")
        ->capture_default_str()
        ->check(CLI::IsMember({"text", "json"}));
  }
  Result<int> Run(const GlobalOptions& global) override {
    TRY(input_.Open());
    TRY_ASSIGN(const tracedata::CallLosses losses, analyze::CountLosses(input_.calls().source()));
    TRY_ASSIGN(const auto samples, DescribeSamplesOfTrace(input_.input()));
    const std::string text = format_ == "json"
                                 ? views::TraceInfoJson(input_.calls(), losses, samples)
                                 : views::TraceInfoText(input_.calls(), losses, samples);
    TRY_ASSIGN(const std::unique_ptr<os::OutputFile> out, CreateTextOutput("-"));
    TRY(out->Write(AsBytes(text)));
    TRY(out->Commit());
    return input_.Report(global, losses);
  }

 private:
  TraceInput input_;
  std::string format_ = "text";
};

}  // namespace

std::unique_ptr<Command> MakeInfoCommand() { return std::make_unique<InfoCommand>(); }

}  // namespace stackreel::cli
