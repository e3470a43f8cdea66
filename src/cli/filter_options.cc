#include "cli/filter_options.h"

namespace stackreel::cli {

void FilterOptions::AddOne(CLI::App& app, const std::string& names,
                           tracedata::FilterOption::Kind kind, const std::string& type,
                           const std::string& help) {
  app.add_option_function<std::vector<std::string>>(
         names,
         [this, kind](const std::vector<std::string>& texts) {
           for (const std::string& text : texts) given_.push_back({kind, text});
         },
         help)
      ->type_name(type)
      ->allow_extra_args(false);
}

void FilterOptions::Add(CLI::App& app) {
  using Kind = tracedata::FilterOption::Kind;
  AddOne(app, "-F,--filter", Kind::kBegin, "PATTERN",
         "Record only within calls of these functions, them included");
  AddOne(app, "-N,--notrace", Kind::kEnd, "PATTERN",
         "Record neither these functions nor what they call");
  AddOne(app, "-C,--caller-filter", Kind::kCaller, "PATTERN",
         "Record only the calls that lead to these functions, them included");
  AddOne(app, "-D,--depth", Kind::kDepth, "N",
         "Record only N levels of calls, counted from where recording begins");
  AddOne(app, "-t,--time-filter", Kind::kTime, "TIME",
         "Leave out calls shorter than TIME: 10us, 2ms, 1s, or ns");
  AddOne(app, "-T,--trigger", Kind::kTrigger, "TRIGGER",
         "Have functions do something where they are called: PATTERN@ACTION[,ACTION...] with "
         "depth=N, filter, notrace, time=TIME, trace, trace_off, trace_on");
  AddOne(
      app, "--tracing", Kind::kTracing, "STATE",
      "off: record nothing until a trace_on, or until `filter --tracing on`, which keeps the other "
      "filters in force");
}

}  // namespace stackreel::cli
