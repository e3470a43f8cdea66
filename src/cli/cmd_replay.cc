// stackreel replay: the calls of a trace, in order of time.
#include <memory>
#include <string>
#include <vector>

#include "cli/samples_of_trace.h"
#include "cli/text_output.h"
#include "cli/trace_commands.h"
#include "cli/trace_input.h"
#include "os/file.h"
#include "views/replay_text.h"

namespace stackreel::cli {
namespace {

class ReplayCommand : public Command {
 public:
  [[nodiscard]] const char* name() const override { return "replay"; }
  [[nodiscard]] const char* summary() const override {
    return "Show the calls of a trace in order of time, with their durations";
  }
  [[nodiscard]] std::vector<std::string> examples() const override {
    return {"stackreel replay | less                # stackreel.trace of this folder",
            "stackreel replay -F main -D 3          # three levels of what main calls",
            "stackreel replay -t 1ms                # what took a millisecond or more",
            "stackreel replay -C 'malloc*' --tid 12 # how one thread comes to malloc",
            "stackreel replay -i uftrace.data -f elapsed,duration,tid"};
  }
  void AddOptions(CLI::App& app) override {
    input_.AddInput(app);
    input_.AddFilters(app, ShortNames::kYes);
    input_.AddTids(app);
    app.add_option("-f,--fields", fields_,
                   "Columns before the calls: time, elapsed, duration, pid, tid, comm; or none")
        ->type_name("FIELDS")
        ->capture_default_str();
    app.add_flag("--module", options_.module_names, "Show the module of each function");
    app.add_flag("--no-merge", no_merge_, "Show entry and end of calls that call nothing, too");
    app.add_flag("--no-args", no_args_, "Show no arguments and return values");
    app.add_flag("--no-comment", no_comment_, "Show no comments: names at ends, losses");
    app.add_flag("--samples", with_samples_,
                 "Show the samples that were recorded beside the trace, as comments");
    app.add_option("-o,--output", output_, "Write to FILE; - is standard output")
        ->type_name("FILE")
        ->capture_default_str();
  }
  Result<int> Run(const GlobalOptions& global) override {
    TRY_ASSIGN(options_.fields, views::ParseReplayFields(fields_));
    options_.merge_leaves = !no_merge_;
    options_.values = !no_args_;
    options_.comments = !no_comment_;
    TRY(input_.Open());
    std::vector<analyze::TimedSample> samples;
    if (with_samples_) {
      TRY_ASSIGN(samples, ReadTimedSamples(input_.input(), global));
      options_.samples = samples;
    }
    TRY_ASSIGN(const std::unique_ptr<os::OutputFile> out, CreateTextOutput(output_));
    TRY(ReplayText(input_.calls(), options_, *out));
    TRY(out->Commit());
    return input_.Report(global);
  }

 private:
  TraceInput input_;
  views::ReplayOptions options_;
  std::string fields_ = "duration,tid";
  bool no_merge_ = false, no_args_ = false, no_comment_ = false;
  bool with_samples_ = false;
  std::string output_ = "-";
};

}  // namespace

std::unique_ptr<Command> MakeReplayCommand() { return std::make_unique<ReplayCommand>(); }

}  // namespace stackreel::cli
