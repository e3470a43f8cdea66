// stackreel report: where the time went, by function.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "cli/analysis_input.h"
#include "cli/command.h"
#include "cli/event_choice.h"
#include "cli/number_range.h"
#include "cli/terminal.h"
#include "cli/text_output.h"
#include "views/text_report.h"

namespace stackreel::cli {
namespace {

class ReportCommand : public Command {
 public:
  [[nodiscard]] const char* name() const override { return "report"; }
  [[nodiscard]] const char* summary() const override {
    return "Show where the time went, by function, with callers and callees";
  }
  [[nodiscard]] std::vector<std::string> examples() const override {
    return {"stackreel report                              # perf.data of this folder",
            "stackreel report --no-children -g none        # a flat list by own time",
            "stackreel report --no-children -g callee      # who calls the hot functions",
            "stackreel report --sort dso                   # by binary",
            "stackreel report --comm node --time 12.5,13   # one program, half a second",
            "stackreel report --format=json -o report.json # for other programs"};
  }
  void AddOptions(CLI::App& app) override;
  Result<int> Run(const GlobalOptions& global) override;

 private:
  Result<views::ReportOptions> MakeOptions(const profile::Profile& profile,
                                           const GlobalOptions& global) const;
  [[nodiscard]] Status CheckRowFilters(const std::vector<profile::SortKey>& keys) const;

  AnalysisInput input_{NameFilters::kCommand};
  std::vector<std::string> comms_, dsos_, symbols_, containing_, events_;
  std::string sort_ = "comm,dso,sym";
  bool children_ = false, no_children_ = false;
  std::string graph_;
  double percent_limit_ = 0.5, graph_limit_ = 0.5;
  size_t rows_ = 0;
  std::string percentage_ = "absolute";
  bool header_ = false, stats_ = false;
  std::string format_ = "text";
  std::string output_ = "-";
  size_t width_ = 0;
  CLI::Option* width_option_ = nullptr;
};

void ReportCommand::AddOptions(CLI::App& app) {
  input_.AddOptions(app);
  app.add_option("--comm", comms_, "Only samples of these commands; * stands for any text")
      ->type_name("COMM")
      ->delimiter(',');
  app.add_option("--dso", dsos_, "Only rows of these binaries; * stands for any text")
      ->type_name("DSO")
      ->delimiter(',');
  app.add_option("--symbol", symbols_, "Only rows of these functions; * stands for any text")
      ->type_name("SYMBOL");
  app.add_option("--containing", containing_,
                 "Only samples with one of these functions anywhere in their stack")
      ->type_name("SYMBOL");
  app.add_option("--event", events_, "Only these events; * stands for any text")
      ->type_name("EVENT");
  app.add_option("-s,--sort", sort_, "Rows differ in: comm, dso, sym, pid, tid, cpu, srcline")
      ->type_name("KEYS")
      ->capture_default_str();
  CLI::Option* children =
      app.add_flag("--children", children_, "Sort by time with callees (the default)");
  app.add_flag("--no-children", no_children_, "Sort by own time")->excludes(children);
  app.add_option("-g,--call-graph", graph_,
                 "Below each row: its callees (caller, the default), its callers (callee, the "
                 "default with --no-children), or nothing (none)")
      ->type_name("ORDER")
      ->check(CLI::IsMember({"caller", "callee", "none"}));
  app.add_option("--percent-limit", percent_limit_, "Leave out rows below this percentage")
      ->type_name("PERCENT")
      ->capture_default_str()
      ->check(Number(0, 100));
  app.add_option("--graph-limit", graph_limit_, "Leave out branches below this percentage")
      ->type_name("PERCENT")
      ->capture_default_str()
      ->check(Number(0, 100));
  app.add_option("--rows", rows_, "Show N rows at most; 0: all")
      ->type_name("N")
      ->capture_default_str()
      ->check(WholeNumber(0, 1'000'000'000));
  app.add_option("--percentage", percentage_,
                 "Percentages are of all samples (absolute) or of the rows shown (relative)")
      ->capture_default_str()
      ->check(CLI::IsMember({"absolute", "relative"}));
  app.add_flag("--header", header_, "Show what the recording says of machine and command");
  app.add_flag("--stats", stats_, "Show counts of all that was lost, bad or guessed");
  app.add_option("--format", format_, "How to write it")
      ->capture_default_str()
      ->check(CLI::IsMember({"text", "json", "csv"}));
  app.add_option("-o,--output", output_, "Write to FILE; - is standard output")
      ->type_name("FILE")
      ->capture_default_str();
  width_option_ = app.add_option("-w,--width", width_,
                                 "Cut lines at N columns; 0: never. By default the terminal's")
                      ->type_name("N")
                      ->check(WholeNumber(0, 1'000'000));
}

Status ReportCommand::CheckRowFilters(const std::vector<profile::SortKey>& keys) const {
  const auto missing = [&](profile::SortKey key, bool wanted) {
    return wanted && std::find(keys.begin(), keys.end(), key) == keys.end();
  };
  for (const auto& [key, wanted] : {std::pair(profile::SortKey::kDso, !dsos_.empty()),
                                    std::pair(profile::SortKey::kSym, !symbols_.empty())}) {
    if (!missing(key, wanted)) continue;
    const char* option = key == profile::SortKey::kDso ? "--dso" : "--symbol";
    return Fail(
        Error(ErrorKind::kUsage, fmt::format("{} chooses rows, but rows do not differ by {}",
                                             option, SortKeyName(key)))
            .WithCure(fmt::format("--sort {},{}", sort_, SortKeyName(key))));
  }
  return {};
}

// Whether any sample has more than the sampled function.
bool HasChains(const profile::Profile& profile) {
  for (const profile::StackNode& node : profile.stacks()) {
    if (node.caller != profile::kEmptyStack && !profile.frames()[node.frame].inlined) return true;
  }
  return false;
}

Result<views::ReportOptions> ReportCommand::MakeOptions(const profile::Profile& profile,
                                                        const GlobalOptions& global) const {
  views::ReportOptions options;
  TRY_ASSIGN(options.keys, profile::ParseSortKeys(sort_));
  TRY_ASSIGN(options.filter.events, ChooseEvents(profile, events_));
  options.filter.comms = comms_;
  options.filter.symbols = containing_;
  options.row_dsos = dsos_;
  options.row_symbols = symbols_;
  options.percentage_of_rows = percentage_ == "relative";
  const bool chains = HasChains(profile);
  options.children = !no_children_ && (children_ || chains);
  options.graph = options.children ? views::CallGraph::kCaller : views::CallGraph::kCallee;
  if (graph_ == "caller") options.graph = views::CallGraph::kCaller;
  if (graph_ == "callee") options.graph = views::CallGraph::kCallee;
  if (graph_ == "none" || !chains) options.graph = views::CallGraph::kNone;
  options.percent_limit = percent_limit_;
  options.graph_percent_limit = graph_limit_;
  options.max_rows = rows_;
  options.header = header_;
  options.stats = stats_;
  if (output_ == "-") {
    options.color = UseColor(global.color, STDOUT_FILENO);
    options.width = TerminalWidth(STDOUT_FILENO);
  }
  if (width_option_->count() > 0) options.width = width_;
  return options;
}

Result<int> ReportCommand::Run(const GlobalOptions& global) {
  TRY_ASSIGN(const std::vector<profile::SortKey> keys, profile::ParseSortKeys(sort_));
  TRY(CheckRowFilters(keys));
  analyze::AnalysisOptions analysis;
  analysis.symbols.inlines = true;
  analysis.symbols.lines =
      std::find(keys.begin(), keys.end(), profile::SortKey::kSrcline) != keys.end();
  TRY(input_.Open(global, analysis));
  analyze::ProfileOptions profile_options;
  profile_options.lines = analysis.symbols.lines;
  TRY_ASSIGN(const profile::Profile profile, input_.MakeProfile(profile_options));
  TRY_ASSIGN(const views::ReportOptions options, MakeOptions(profile, global));
  std::string text;
  if (format_ == "json") {
    text = JsonReport(profile, options);
  } else if (format_ == "csv") {
    text = CsvReport(profile, options);
  } else {
    text = TextReport(profile, options);
  }
  TRY_ASSIGN(const std::unique_ptr<os::OutputFile> out, CreateTextOutput(output_));
  TRY(out->Write(AsBytes(text)));
  TRY(out->Commit());
  return WarnOfLoss(profile, global);
}

}  // namespace

std::unique_ptr<Command> MakeReportCommand() { return std::make_unique<ReportCommand>(); }

}  // namespace stackreel::cli
