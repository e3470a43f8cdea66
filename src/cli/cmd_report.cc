// stackreel report: where the time went, by function.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "analyze/trace_table.h"
#include "cli/analysis_input.h"
#include "cli/call_graph_choice.h"
#include "cli/command.h"
#include "cli/event_choice.h"
#include "cli/number_range.h"
#include "cli/recording_input.h"
#include "cli/terminal.h"
#include "cli/text_output.h"
#include "cli/trace_input.h"
#include "views/text_report.h"
#include "views/trace_report.h"

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
            "stackreel report -F overhead,sample,sym       # these columns",
            "stackreel report --comm node --time 12.5,13   # one program, half a second",
            "stackreel report -i stackreel.trace -s self   # of a trace: calls and their times",
            "stackreel report --format=json -o report.json # for other programs"};
  }
  void AddOptions(CLI::App& app) override;
  Result<int> Run(const GlobalOptions& global) override;

 private:
  Result<views::ReportOptions> MakeOptions(const profile::Profile& profile,
                                           const std::vector<profile::SortKey>& keys,
                                           const GlobalOptions& global) const;
  Result<std::vector<profile::SortKey>> ChooseColumns();
  Result<int> PrintHeader() const;
  Result<int> RunOnTrace(const std::string& trace, const GlobalOptions& global);
  [[nodiscard]] Status CheckRowFilters(const std::vector<profile::SortKey>& keys) const;

  AnalysisInput input_{NameFilters::kCommand};
  TraceInput trace_;
  const CLI::App* app_ = nullptr;
  std::vector<std::string> comms_, dsos_, symbols_, containing_, events_;
  std::string sort_ = "comm,dso,sym";
  CLI::Option* sort_option_ = nullptr;
  std::string fields_;
  std::vector<views::ReportColumn> columns_;  // of fields_
  bool show_samples_ = false;
  bool stdio_ = false;  // nothing else is known here
  bool children_ = false, no_children_ = false;
  std::string graph_;
  CallGraphChoice graph_choice_;
  bool inverted_ = false;
  double percent_limit_ = 0.5, graph_limit_ = 0.5;
  size_t rows_ = 0;
  std::string percentage_ = "absolute";
  bool header_ = false, header_only_ = false, stats_ = false;
  std::string format_ = "text";
  std::string output_ = "-";
  size_t width_ = 0;
  CLI::Option* width_option_ = nullptr;
};

void ReportCommand::AddOptions(CLI::App& app) {
  app_ = &app;
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
  sort_option_ =
      app.add_option("-s,--sort", sort_,
                     "Rows differ in: comm, dso, sym, pid, tid, cpu, srcline. Of a trace: what "
                     "rows are sorted by: total, self, calls, avg, min, max, p50, p90, p99, func")
          ->type_name("KEYS")
          ->capture_default_str();
  app.add_option("-F,--fields", fields_,
                 "Columns, in this order: overhead_children, overhead, sample, period, and keys of "
                 "--sort, which rows then differ in")
      ->type_name("COLUMNS");
  app.add_flag("-n,--show-nr-samples", show_samples_, "Show how many samples each row has");
  CLI::Option* children =
      app.add_flag("--children", children_, "Sort by time with callees (the default)");
  app.add_flag("--no-children", no_children_, "Sort by own time")->excludes(children);
  CLI::Option* graph =
      app.add_option("-g,--call-graph", graph_,
                     "Below each row: its callees (caller, the default), its callers (callee, the "
                     "default with --no-children), or nothing (none); perf's graph,0.5,caller too")
          ->type_name("ORDER")
          ->expected(0, 1);
  app.add_flag("-G,--inverted", inverted_, "The same as -g caller")->excludes(graph);
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
  app.add_flag("--header-only", header_only_, "Show that and nothing else");
  app.add_flag("--stdio", stdio_, "Write text to standard output, as is done without it");
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
  trace_.AddFilters(app, ShortNames::kNo);
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
            .WithCure(fields_.empty() ? fmt::format("--sort {},{}", sort_, SortKeyName(key))
                                      : fmt::format("-F {},{}", fields_, SortKeyName(key))));
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

// The sort keys; and columns_, where those are not the usual ones.
Result<std::vector<profile::SortKey>> ReportCommand::ChooseColumns() {
  using Kind = views::ReportColumn::Kind;
  if (fields_.empty()) {
    TRY_ASSIGN(std::vector<profile::SortKey> keys, profile::ParseSortKeys(sort_));
    if (!show_samples_) return keys;
    columns_ = {{.kind = Kind::kChildren}, {.kind = Kind::kSelf}, {.kind = Kind::kSamples}};
    for (const profile::SortKey key : keys) columns_.push_back({.kind = Kind::kKey, .key = key});
    return keys;
  }
  TRY_ASSIGN(columns_, views::ParseReportColumns(fields_));
  const auto add = [this](const views::ReportColumn& column) {
    if (std::ranges::find(columns_, column) == columns_.end()) columns_.push_back(column);
  };
  if (show_samples_) add({.kind = Kind::kSamples});
  if (sort_option_->count() > 0) {
    TRY_ASSIGN(const std::vector<profile::SortKey> more, profile::ParseSortKeys(sort_));
    for (const profile::SortKey key : more) add({.kind = Kind::kKey, .key = key});
  }
  std::vector<profile::SortKey> keys;
  for (const views::ReportColumn& column : columns_) {
    if (column.kind == Kind::kKey) keys.push_back(column.key);
  }
  return keys;
}

Result<views::ReportOptions> ReportCommand::MakeOptions(const profile::Profile& profile,
                                                        const std::vector<profile::SortKey>& keys,
                                                        const GlobalOptions& global) const {
  using Kind = views::ReportColumn::Kind;
  views::ReportOptions options;
  options.keys = keys;
  TRY_ASSIGN(options.filter.events, ChooseEvents(profile, events_));
  options.filter.comms = comms_;
  options.filter.symbols = containing_;
  options.row_dsos = dsos_;
  options.row_symbols = symbols_;
  options.percentage_of_rows = percentage_ == "relative";
  const bool chains = HasChains(profile);
  const auto has_children =
      std::ranges::find(columns_, Kind::kChildren, &views::ReportColumn::kind) != columns_.end();
  options.children = fields_.empty() ? !no_children_ && (children_ || chains) : has_children;
  options.columns = columns_;
  if (!options.children) {
    std::erase_if(options.columns,
                  [](const auto& column) { return column.kind == Kind::kChildren; });
  }
  options.graph = options.children ? views::CallGraph::kCaller : views::CallGraph::kCallee;
  if (inverted_) options.graph = views::CallGraph::kCaller;
  options.percent_limit = percent_limit_;
  options.graph_percent_limit = graph_limit_;
  options.graph = graph_choice_.order.value_or(options.graph);
  options.graph_percent_limit = graph_choice_.limit.value_or(graph_limit_);
  if (!chains) options.graph = views::CallGraph::kNone;
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

Result<int> ReportCommand::PrintHeader() const {
  TRY_ASSIGN(const std::vector<std::string> lines, ReadHeaderLines(input_.input()));
  TRY_ASSIGN(const std::unique_ptr<os::OutputFile> out, CreateTextOutput(output_));
  TRY(out->Write(AsBytes(views::HeaderText(lines))));
  TRY(out->Commit());
  return kExitDone;
}

// A trace has calls instead of samples: another table.
Result<int> ReportCommand::RunOnTrace(const std::string& trace, const GlobalOptions& global) {
  std::vector<std::string> names = TraceFilterNames();
  for (const char* name : {"input", "sort", "rows", "format", "output", "tid", "stdio"}) {
    names.emplace_back(name);
  }
  TRY(RefuseOthers(*app_, global, names, "is for recordings of samples; " + trace + " is a trace"));
  views::TraceReportOptions options;
  if (sort_option_->count() > 0) {
    TRY_ASSIGN(options.sort, views::ParseTraceColumn(sort_));
  }
  options.max_rows = rows_;
  trace_.set_input(trace);
  trace_.set_tids(input_.tids());
  TRY(trace_.Open());
  TRY_ASSIGN(const analyze::TraceTable table, analyze::MakeTraceTable(trace_.calls()));
  const std::string text = format_ == "json"  ? TraceReportJson(trace_.calls(), table, options)
                           : format_ == "csv" ? TraceReportCsv(trace_.calls(), table, options)
                                              : TraceReportText(trace_.calls(), table, options);
  TRY_ASSIGN(const std::unique_ptr<os::OutputFile> out, CreateTextOutput(output_));
  TRY(out->Write(AsBytes(text)));
  TRY(out->Commit());
  return trace_.Report(global);
}

Result<int> ReportCommand::Run(const GlobalOptions& global) {
  TRY_ASSIGN(const std::string input, input_.Choose(*app_));
  if (IsTrace(input)) return RunOnTrace(input, global);
  TRY(RefuseThese(*app_, global, TraceFilterNames(),
                  "is for traces; " + input + " is a recording of samples"));
  if (format_ != "text" && (show_samples_ || header_only_ || !fields_.empty())) {
    return Fail(Error(ErrorKind::kUsage,
                      fmt::format("{} is of the text; {} has all columns, and {} the header",
                                  header_only_      ? "--header-only"
                                  : fields_.empty() ? "-n"
                                                    : "-F",
                                  format_, format_ == "json" ? "with --header" : "never"))
                    .WithCure("leave out --format"));
  }
  if (format_ == "csv") {
    TRY(RefuseThese(*app_, global,
                    {"header", "stats", "call-graph", "inverted", "graph-limit", "width"},
                    "is of the text; csv is a flat table"));
  }
  if (header_only_) return PrintHeader();
  // "-g" alone gives no text; CLI11 then has a flag's value.
  if (!graph_.empty() && graph_ != "true") {
    TRY_ASSIGN(graph_choice_, ParseCallGraphChoice(graph_));
  }
  TRY_ASSIGN(const std::vector<profile::SortKey> keys, ChooseColumns());
  TRY(CheckRowFilters(keys));
  analyze::AnalysisOptions analysis;
  analysis.symbols.inlines = true;
  analysis.symbols.lines =
      std::find(keys.begin(), keys.end(), profile::SortKey::kSrcline) != keys.end();
  TRY(input_.Open(global, analysis));
  analyze::ProfileOptions profile_options;
  profile_options.lines = analysis.symbols.lines;
  TRY_ASSIGN(const profile::Profile profile, input_.MakeProfile(profile_options));
  TRY_ASSIGN(const views::ReportOptions options, MakeOptions(profile, keys, global));
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
