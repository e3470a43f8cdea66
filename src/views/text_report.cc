#include "views/text_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "views/call_graph_text.h"
#include "views/facts_text.h"
#include "views/report_section.h"
#include "views/text_escape.h"

namespace stackreel::views {
namespace {

using profile::FlatRow;
using profile::Profile;
using profile::SortKey;

const char* ColumnTitle(SortKey key) {
  switch (key) {
    case SortKey::kComm:
      return "Command";
    case SortKey::kDso:
      return "Shared Object";
    case SortKey::kSym:
      return "Symbol";
    case SortKey::kPid:
      return "Pid";
    case SortKey::kTid:
      return "Tid";
    case SortKey::kCpu:
      return "CPU";
    case SortKey::kSrcline:
      return "Source:Line";
  }
  return "";
}

bool IsNumber(SortKey key) {
  return key == SortKey::kPid || key == SortKey::kTid || key == SortKey::kCpu;
}

// perf's colours: from 5 % red, from 0.5 % green.
std::string Colored(const std::string& text, double percent, bool color) {
  if (!color || percent < 0.5) return text;
  return fmt::format("\x1b[{}m{}\x1b[0m", percent >= 5 ? "31" : "32", text);
}

using Kind = ReportColumn::Kind;

// What one column shows, and how wide.
struct ColumnText {
  ReportColumn column;
  std::string title;
  size_t width = 0;
  std::vector<std::string> cells;  // of a key, by row
  [[nodiscard]] bool is_key() const { return column.kind == Kind::kKey; }
};

ColumnText MakeColumn(const ReportColumn& column) {
  constexpr size_t kPercentWidth = 8, kCountWidth = 10;
  switch (column.kind) {
    case Kind::kChildren:
      return {column, "Children", kPercentWidth, {}};
    case Kind::kSelf:
      return {column, "Self", kPercentWidth, {}};
    case Kind::kSamples:
      return {column, "Samples", kCountWidth, {}};
    case Kind::kWeight:
      return {column, "Period", kCountWidth, {}};
    case Kind::kKey:
      return {column, ColumnTitle(column.key), DisplayWidth(ColumnTitle(column.key)), {}};
  }
  return {};
}

class SectionText {
 public:
  SectionText(std::string& out, const Profile& profile, const ReportSection& section,
              const ReportOptions& options)
      : out_(out), profile_(profile), section_(section), options_(options) {
    MakeColumns();
    FitToWidth();
  }

  void Append() {
    out_ += fmt::format("# Samples: {} of event '{}'\n", Grouped(section_.total.samples),
                        Printable(section_.event_name));
    out_ += fmt::format("# Event count (approx.): {}\n#\n", section_.total.weight);
    AppendTitles();
    for (size_t i = 0; i < section_.shown.size(); ++i) AppendRow(i);
    AppendHidden();
  }

 private:
  // The texts of all cells, and from them the widths of the columns.
  void MakeColumns() {
    std::vector<ReportColumn> columns = options_.columns;
    if (columns.empty()) {
      if (options_.children) columns.push_back({.kind = Kind::kChildren});
      columns.push_back({.kind = Kind::kSelf});
      for (const SortKey key : options_.keys) columns.push_back({.kind = Kind::kKey, .key = key});
    }
    const bool both =
        std::ranges::find(columns, Kind::kChildren, &ReportColumn::kind) != columns.end();
    for (const ReportColumn& column : columns) {
      ColumnText text = MakeColumn(column);
      if (column.kind == Kind::kSelf && !both) text.title = "Overhead";
      if (text.is_key()) {
        for (const uint32_t index : section_.shown) {
          text.cells.push_back(
              Printable(RowText(profile_, section_.table, section_.table.rows[index], column.key)));
          text.width = std::max(text.width, DisplayWidth(text.cells.back()));
        }
      }
      columns_.push_back(std::move(text));
    }
  }

  // Only so wide that the last column, often the symbol, keeps half of the line.
  void FitToWidth() {
    if (options_.width == 0 || !columns_.back().is_key()) return;
    const size_t most = std::max<size_t>(options_.width / 5, 8);
    size_t used = 0;
    for (size_t c = 0; c + 1 < columns_.size(); ++c) {
      ColumnText& column = columns_[c];
      if (column.is_key()) column.width = std::min(column.width, most);
      used += 2 + column.width;
    }
    const size_t rest = options_.width - std::min(options_.width, used + 2);
    columns_.back().width = std::min(columns_.back().width, std::max<size_t>(rest, 1));
  }

  void Line(std::string line, size_t invisible = 0) {
    while (!line.empty() && line.back() == ' ') line.pop_back();
    out_ += options_.width == 0 ? line : CutTo(line, options_.width + invisible);
    out_ += '\n';
  }

  [[nodiscard]] std::string Cell(const ColumnText& column, const std::string& text) const {
    const std::string cut = CutTo(text, column.width);
    const std::string pad(column.width - DisplayWidth(cut), ' ');
    if (!column.is_key() || IsNumber(column.column.key)) return pad + cut;
    return &column == &columns_.back() ? text : cut + pad;
  }

  void AppendTitles() {
    std::string titles = "#";
    std::string dots = "#";
    for (size_t c = 0; c < columns_.size(); ++c) {
      const std::string_view gap = c == 0 ? " " : "  ";
      titles.append(gap).append(Cell(columns_[c], columns_[c].title));
      dots.append(gap).append(columns_[c].width, '.');
    }
    Line(titles);
    Line(dots);
    out_ += "#\n";
  }

  [[nodiscard]] std::string PercentCell(uint64_t weight, size_t& invisible) const {
    const double percent = Percent(weight, section_.denominator);
    const std::string text = fmt::format("{:>9.2f}%", percent);
    const std::string colored = Colored(text, percent, options_.color);
    invisible += colored.size() - text.size();
    return colored;
  }

  // With what stands before it.
  [[nodiscard]] std::string RowCell(size_t c, size_t i, const FlatRow& row,
                                    size_t& invisible) const {
    const ColumnText& column = columns_[c];
    switch (column.column.kind) {
      case Kind::kChildren:
      case Kind::kSelf:
        return (c == 0 ? "" : " ") + PercentCell(column.column.kind == Kind::kSelf
                                                     ? row.self.weight
                                                     : row.children.weight,
                                                 invisible);
      case Kind::kSamples:
        return "  " + Cell(column, std::to_string(row.self.samples));
      case Kind::kWeight:
        return "  " + Cell(column, std::to_string(row.self.weight));
      case Kind::kKey:
        return "  " + Cell(column, column.cells[i]);
    }
    return "";
  }

  void AppendRow(size_t i) {
    const FlatRow& row = section_.table.rows[section_.shown[i]];
    size_t invisible = 0;
    std::string line;
    for (size_t c = 0; c < columns_.size(); ++c) line += RowCell(c, i, row, invisible);
    Line(line, invisible);
    if (i >= section_.trees.size()) return;
    CallGraphTextOptions graph;
    graph.whole = section_.denominator;
    graph.min_weight = static_cast<uint64_t>(
        std::ceil(options_.graph_percent_limit / 100 * static_cast<double>(section_.denominator)));
    graph.width = options_.width;
    graph.row_is_function =
        std::find(options_.keys.begin(), options_.keys.end(), SortKey::kSym) != options_.keys.end();
    AppendCallGraph(out_, profile_, section_.trees[i], graph);
  }

  void AppendHidden() {
    if (section_.shown.empty() && section_.hidden_rows == 0) Line("# No row passes the filters.");
    if (section_.hidden_rows == 0) return;
    Line(fmt::format("# {} more rows not shown, {} of self together (--percent-limit, --rows)",
                     Grouped(section_.hidden_rows),
                     PercentText(section_.hidden_self, section_.denominator)));
  }

  std::string& out_;
  const Profile& profile_;
  const ReportSection& section_;
  const ReportOptions& options_;
  std::vector<ColumnText> columns_;
};

void AppendComments(std::string& out, const std::vector<std::string>& lines, size_t width) {
  for (const std::string& line : lines) {
    const std::string text = line.empty() ? "#" : "# " + line;
    out += (width == 0 ? text : CutTo(text, width)) + "\n";
  }
}

}  // namespace

Result<std::vector<ReportColumn>> ParseReportColumns(std::string_view text) {
  std::vector<ReportColumn> columns;
  while (true) {
    const size_t comma = text.find(',');
    const std::string_view word = text.substr(0, comma);
    ReportColumn column;
    if (word == "overhead_children") {
      column.kind = Kind::kChildren;
    } else if (word == "overhead") {
      column.kind = Kind::kSelf;
    } else if (word == "sample") {
      column.kind = Kind::kSamples;
    } else if (word == "period") {
      column.kind = Kind::kWeight;
    } else if (const auto keys = profile::ParseSortKeys(word)) {
      column = {.kind = Kind::kKey, .key = keys->front()};
    } else {
      return Fail(Error(ErrorKind::kUsage, fmt::format("\"{}\" is no column", word))
                      .WithCure("use some of overhead_children, overhead, sample, period, comm, "
                                "dso, sym, pid, tid, cpu, srcline"));
    }
    if (std::ranges::find(columns, column) == columns.end()) columns.push_back(column);
    if (comma == std::string_view::npos) return columns;
    text.remove_prefix(comma + 1);
  }
}

std::string HeaderText(const std::vector<std::string>& lines) {
  std::vector<std::string> printable;
  printable.reserve(lines.size());
  for (const std::string& line : lines) printable.push_back(Printable(line));
  std::string out;
  AppendComments(out, printable, 0);
  return out;
}

std::string TextReport(const Profile& profile, const ReportOptions& options) {
  std::string out;
  if (options.header) out += HeaderText(profile.facts.header) + "#\n";
  AppendComments(out, FactsLines(profile.facts), 0);
  out += "#\n";
  if (options.stats) {
    AppendComments(out, CounterLines(profile.facts.counters), 0);
    out += "#\n";
  }
  const std::vector<ReportSection> sections = MakeSections(profile, options);
  if (sections.empty()) {
    out += profile.samples().empty() ? "# No samples.\n" : "# No samples pass the filters.\n";
  }
  for (size_t i = 0; i < sections.size(); ++i) {
    if (i > 0) out += "\n\n";
    SectionText(out, profile, sections[i], options).Append();
  }
  return out;
}

}  // namespace stackreel::views
