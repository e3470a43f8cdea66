// stackreel flamegraph: an SVG of where the time went, or folded stacks.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "analyze/trace_profile.h"
#include "base/plural.h"
#include "cli/analysis_input.h"
#include "cli/command.h"
#include "cli/event_choice.h"
#include "cli/number_range.h"
#include "cli/print.h"
#include "cli/text_output.h"
#include "cli/trace_input.h"
#include "views/flame_graph.h"

namespace stackreel::cli {
namespace {

class FlamegraphCommand : public Command {
 public:
  [[nodiscard]] const char* name() const override { return "flamegraph"; }
  [[nodiscard]] const char* summary() const override {
    return "Draw a flame graph, or the difference of two recordings";
  }
  [[nodiscard]] std::vector<std::string> examples() const override {
    return {"stackreel flamegraph                        # perf.data → flamegraph.svg",
            "stackreel flamegraph --diff old.data new.data -o diff.svg # what changed",
            "stackreel flamegraph --comm node -o node.svg # one program",
            "stackreel flamegraph -i stackreel.trace      # of a trace: time by calls",
            "stackreel flamegraph --format=folded | flamegraph.pl > other.svg"};
  }
  void AddOptions(CLI::App& app) override;
  Result<int> Run(const GlobalOptions& global) override;

 private:
  Result<profile::Profile> Read(const std::string& input, const GlobalOptions& global);
  [[nodiscard]] Result<std::vector<uint32_t>> ChooseEvent(const profile::Profile& profile,
                                                          const std::string& like,
                                                          const GlobalOptions& global) const;
  Status Write(const std::string& text, const std::string& what, const GlobalOptions& global);

  AnalysisInput input_{NameFilters::kCommand};
  TraceInput trace_;
  const CLI::App* app_ = nullptr;
  std::string diff_;
  std::vector<std::string> comms_, dsos_, symbols_;
  std::string event_;
  views::FlameGraphOptions options_;
  std::string title_;
  std::string format_ = "svg";
  std::string output_;
};

void FlamegraphCommand::AddOptions(CLI::App& app) {
  app_ = &app;
  input_.AddOptions(app);
  app.add_option("--comm", comms_, "Only samples of these commands; * stands for any text")
      ->type_name("COMM")
      ->delimiter(',');
  app.add_option("--dso", dsos_, "Only stacks with a frame in these binaries (* as above)")
      ->type_name("DSO")
      ->delimiter(',');
  app.add_option("--symbol", symbols_, "Only stacks with one of these functions (* as above)")
      ->type_name("SYMBOL");
  app.add_option("--event", event_, "The event to draw; by default the first that has samples")
      ->type_name("EVENT");
  app.add_option("--diff", diff_, "Draw what changed from this recording to the other")
      ->type_name("BEFORE");
  app.add_flag("--inverted", options_.inverted, "The root on top");
  app.add_flag("--reverse", options_.reversed, "Merge stacks from the innermost function up");
  app.add_option("--title", title_, "The title of the picture")->type_name("TEXT");
  app.add_option("--min-percent", options_.min_percent, "Leave out boxes narrower than this")
      ->type_name("PERCENT")
      ->capture_default_str()
      ->check(Number(0, 100));
  app.add_option("--width", options_.width,
                 "Pixels across, where the picture cannot follow the "
                 "window")
      ->type_name("N")
      ->capture_default_str()
      ->check(WholeNumber(200, 20'000));
  app.add_option("--format", format_,
                 "A picture, or stacks as other flame-graph programs read them")
      ->capture_default_str()
      ->check(CLI::IsMember({"svg", "folded"}));
  app.add_option("-o,--output", output_,
                 "Write to FILE; - is standard output. By default flamegraph.svg, or standard "
                 "output for folded stacks")
      ->type_name("FILE");
  trace_.AddFilters(app, ShortNames::kNo);
}

Result<profile::Profile> FlamegraphCommand::Read(const std::string& input,
                                                 const GlobalOptions& global) {
  if (IsTrace(input)) {
    std::vector<std::string> names = TraceFilterNames();
    for (const char* name :
         {"input", "diff", "inverted", "reverse", "title", "min-percent", "width", "format",
          "output", "tid", "comm", "dso", "symbol", "event"}) {
      names.emplace_back(name);
    }
    TRY(RefuseOthers(*app_, global, names,
                     "is for recordings of samples; " + input + " is a trace"));
    trace_.set_input(input);
    trace_.set_tids(input_.tids());
    TRY(trace_.Open());
    return analyze::MakeTraceProfile(trace_.calls());
  }
  TRY(RefuseThese(*app_, global, TraceFilterNames(),
                  "is for traces; " + input + " is a recording of samples"));
  analyze::AnalysisOptions analysis;
  analysis.symbols.inlines = true;
  input_.set_input(input);
  TRY(input_.Open(global, analysis));
  return input_.MakeProfile({});
}

// The event asked for, else `like` where the recording has it, else the first with samples.
Result<std::vector<uint32_t>> FlamegraphCommand::ChooseEvent(const profile::Profile& profile,
                                                             const std::string& like,
                                                             const GlobalOptions& global) const {
  if (!event_.empty()) return ChooseEvents(profile, {event_});
  const std::vector<std::string>& events = profile.facts.events;
  if (const auto it = std::find(events.begin(), events.end(), like); it != events.end()) {
    return std::vector<uint32_t>{static_cast<uint32_t>(it - events.begin())};
  }
  std::vector<bool> has_samples(events.size());
  for (const profile::ProfileSample& sample : profile.samples()) {
    if (sample.event < events.size()) has_samples[sample.event] = true;
  }
  std::vector<std::string> others;
  std::vector<uint32_t> chosen;
  for (uint32_t i = 0; i < events.size(); ++i) {
    if (!has_samples[i]) continue;
    if (chosen.empty()) {
      chosen.push_back(i);
    } else {
      others.push_back(events[i]);
    }
  }
  if (!others.empty() && !global.quiet) {
    Print(stderr, "stackreel: drawing event {}; choose another with --event: {}\n",
          events[chosen[0]], fmt::join(others, ", "));
  }
  return chosen;
}

Status FlamegraphCommand::Write(const std::string& text, const std::string& what,
                                const GlobalOptions& global) {
  std::string output = output_;
  if (output.empty()) output = format_ == "svg" ? "flamegraph.svg" : "-";
  TRY_ASSIGN(const std::unique_ptr<os::OutputFile> out, CreateTextOutput(output));
  TRY(out->Write(AsBytes(text)));
  TRY(out->Commit());
  if (output != "-" && !global.quiet) {
    Print(stderr, "stackreel: wrote {} ({})\n", output, what);
  }
  return {};
}

Result<int> FlamegraphCommand::Run(const GlobalOptions& global) {
  if (!diff_.empty() && format_ == "folded") {
    return Fail(Error(ErrorKind::kUsage, "--diff draws a picture; folded stacks have no difference")
                    .WithCure("leave out --format=folded"));
  }
  if (format_ == "folded") {
    TRY(RefuseThese(*app_, global, {"inverted", "reverse", "title", "min-percent", "width"},
                    "is of the picture; folded stacks are text, and all of them"));
  }
  TRY_ASSIGN(const std::string input, input_.Choose(*app_));
  options_.filter.comms = comms_;
  options_.filter.dsos = dsos_;
  options_.filter.symbols = symbols_;
  TRY_ASSIGN(const profile::Profile profile, Read(input, global));
  TRY_ASSIGN(options_.filter.events, ChooseEvent(profile, "", global));
  int code = WarnOfLoss(profile, global);
  options_.title = title_.empty() ? "Flame graph of " + input : title_;
  const std::string samples = Plural(profile.facts.samples, IsTrace(input) ? "call" : "sample");
  if (format_ == "folded") {
    TRY(Write(views::Folded(profile, options_.filter), samples, global));
    return code;
  }
  if (diff_.empty()) {
    TRY(Write(FlameGraphSvg(profile, options_), samples, global));
    return code;
  }
  TRY_ASSIGN(const profile::Profile before, Read(diff_, global));
  code = std::max(code, WarnOfLoss(before, global));
  const std::vector<uint32_t>& after_events = options_.filter.events;
  const std::string like = after_events.empty() ? "" : profile.facts.events[after_events[0]];
  TRY_ASSIGN(const std::vector<uint32_t> before_events, ChooseEvent(before, like, global));
  if (title_.empty()) options_.title = fmt::format("What changed from {} to {}", diff_, input);
  TRY(Write(DiffFlameGraphSvg(before, before_events, profile, options_),
            fmt::format("{} and {}", before.facts.samples, samples), global));
  return code;
}

}  // namespace

std::unique_ptr<Command> MakeFlamegraphCommand() { return std::make_unique<FlamegraphCommand>(); }

}  // namespace stackreel::cli
