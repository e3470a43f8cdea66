// stackreel filter: changes the filters and triggers of a process that is traced.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "base/plural.h"
#include "cli/filter_options.h"
#include "cli/print.h"
#include "cli/trace_control.h"
#include "cli/trace_question.h"
#include "tracer/call_filters.h"

namespace stackreel::cli {
namespace {

using tracedata::ControlAnswer;
using tracedata::ControlRequest;

class FilterCommand : public Command {
 public:
  [[nodiscard]] const char* name() const override { return "filter"; }
  [[nodiscard]] const char* summary() const override {
    return "Change which calls of a process that is traced are recorded";
  }
  [[nodiscard]] std::vector<std::string> examples() const override {
    return {"stackreel filter -p 1234 -F handle_request -D 3   # instead of what was in force",
            "stackreel filter -p 1234 -N 'log_*' -t 10us",
            "stackreel filter -p 1234 -T 'parse@time=1ms,depth=2'",
            "stackreel filter -p 1234 --tracing off            # and keep what is in force",
            "stackreel filter -p 1234 --none                   # record every call again"};
  }
  void AddOptions(CLI::App& app) override {
    AddPidOption(app, pid_);
    filters_.Add(app);
    app.add_flag("--none", none_, "No filters and triggers any more, and tracing on");
  }
  Result<int> Run(const GlobalOptions& global) override {
    if (none_ != filters_.given().empty()) {
      return Fail(Error(ErrorKind::kUsage, none_ ? "--none and filters exclude each other"
                                                 : "which filters are to be in force?")
                      .WithCure("stackreel filter -p PID -F PATTERN\n"
                                "none: stackreel filter -p PID --none\n"
                                "what is in force: stackreel status -p PID"));
    }
    // Told of here, where it was typed.
    TRY(tracer::CallFilters::Parse(filters_.given()));
    const ControlRequest request = {.kind = ControlRequest::Kind::kFilter,
                                    .filters = filters_.given()};
    TRY_ASSIGN(const ControlAnswer answer, AskTraceOf(pid_, request));
    if (global.quiet) return kExitDone;
    if (none_) Print(stdout, "no filters in force\n");
    if (tracedata::OnlySwitchTracing(filters_.given())) {
      Print(stdout, "tracing is {}; filters are as they were\n", filters_.given().back().text);
      return kExitDone;
    }
    for (const tracedata::FilterOption& filter : filters_.given()) {
      const std::string text = tracedata::ToText(filter);
      if (tracedata::IsOfFunctions(filter.kind)) {
        Print(stdout, "{}: {}\n", text, Plural(answer.Find("filters", text), "function"));
      } else {
        Print(stdout, "{}\n", text);
      }
    }
    for (const tracedata::ControlCount& count : answer.counts) {
      if (count.group != "refused") continue;
      Print(stdout, "{} refused: {}\n", Plural(count.value, "function"), count.name);
    }
    if (const uint64_t deferred = answer.Find("functions", "deferred"); deferred != 0) {
      Print(stdout, "{} deferred: a thread is inside\n", Plural(deferred, "function"));
    }
    return kExitDone;
  }

 private:
  uint32_t pid_ = 0;
  FilterOptions filters_;
  bool none_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeFilterCommand() { return std::make_unique<FilterCommand>(); }

}  // namespace stackreel::cli
