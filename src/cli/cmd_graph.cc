// stackreel graph: the merged call graph of a trace.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "analyze/trace_profile.h"
#include "cli/number_range.h"
#include "cli/text_output.h"
#include "cli/trace_commands.h"
#include "cli/trace_input.h"
#include "os/file.h"
#include "views/flame_graph.h"
#include "views/trace_graph.h"

namespace stackreel::cli {
namespace {

class GraphCommand : public Command {
 public:
  [[nodiscard]] const char* name() const override { return "graph"; }
  [[nodiscard]] const char* summary() const override {
    return "Show the merged call graph of a trace, with calls and times";
  }
  [[nodiscard]] std::vector<std::string> examples() const override {
    return {"stackreel graph                   # stackreel.trace of this folder",
            "stackreel graph parse             # what parse calls, wherever it is called",
            "stackreel graph -C malloc         # the ways to malloc",
            "stackreel graph --percent-limit 1 # without what takes less than a hundredth",
            "stackreel graph --format=folded | flamegraph.pl > trace.svg"};
  }
  void AddOptions(CLI::App& app) override {
    app.add_option("FUNCTION", roots_, "The functions to begin at; as -F");
    input_.AddInput(app);
    input_.AddFilters(app, ShortNames::kYes);
    input_.AddTids(app);
    app.add_option("--percent-limit", options_.min_percent,
                   "Leave out what takes less of the whole time")
        ->type_name("PERCENT")
        ->capture_default_str()
        ->check(Number(0, 100));
    app.add_option("--format", format_, "How to write it")
        ->capture_default_str()
        ->check(CLI::IsMember({"text", "json", "folded"}));
    app.add_option("-o,--output", output_, "Write to FILE; - is standard output")
        ->type_name("FILE")
        ->capture_default_str();
  }
  Result<int> Run(const GlobalOptions& global) override {
    input_.AddFunctions(roots_);
    TRY(input_.Open());
    TRY_ASSIGN(const profile::Profile profile, analyze::MakeTraceProfile(input_.calls()));
    TRY_ASSIGN(const std::unique_ptr<os::OutputFile> out, CreateTextOutput(output_));
    if (format_ == "json") {
      TRY(TraceGraphJson(profile, options_, *out));
    } else if (format_ == "folded") {
      TRY(out->Write(AsBytes(views::Folded(profile, {}))));
    } else {
      TRY(TraceGraphText(profile, options_, *out));
    }
    TRY(out->Commit());
    return input_.Report(global);
  }

 private:
  TraceInput input_;
  std::vector<std::string> roots_;
  views::TraceGraphOptions options_;
  std::string format_ = "text";
  std::string output_ = "-";
};

}  // namespace

std::unique_ptr<Command> MakeGraphCommand() { return std::make_unique<GraphCommand>(); }

}  // namespace stackreel::cli
