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

class SectionText {
 public:
  SectionText(std::string& out, const Profile& profile, const ReportSection& section,
              const ReportOptions& options)
      : out_(out), profile_(profile), section_(section), options_(options) {
    MakeCells();
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
  void MakeCells() {
    for (SortKey key : options_.keys) widths_.push_back(DisplayWidth(ColumnTitle(key)));
    for (uint32_t index : section_.shown) {
      std::vector<std::string> row;
      for (size_t k = 0; k < options_.keys.size(); ++k) {
        row.push_back(Printable(
            RowText(profile_, section_.table, section_.table.rows[index], options_.keys[k])));
        widths_[k] = std::max(widths_[k], DisplayWidth(row.back()));
      }
      cells_.push_back(std::move(row));
    }
    if (options_.width == 0) return;
    // Only so wide that the last column, often the symbol, keeps half of the line.
    const size_t most = std::max<size_t>(options_.width / 5, 8);
    size_t used = options_.children ? 20 : 10;
    for (size_t k = 0; k + 1 < widths_.size(); ++k) {
      widths_[k] = std::min(widths_[k], most);
      used += 2 + widths_[k];
    }
    const size_t rest = options_.width - std::min(options_.width, used + 2);
    widths_.back() = std::min(widths_.back(), std::max<size_t>(rest, 1));
  }

  void Line(std::string line, size_t invisible = 0) {
    while (!line.empty() && line.back() == ' ') line.pop_back();
    out_ += options_.width == 0 ? line : CutTo(line, options_.width + invisible);
    out_ += '\n';
  }

  std::string Cell(size_t k, const std::string& text) const {
    const std::string cut = CutTo(text, widths_[k]);
    const std::string pad(widths_[k] - DisplayWidth(cut), ' ');
    if (IsNumber(options_.keys[k])) return pad + cut;
    return k + 1 == options_.keys.size() ? text : cut + pad;
  }

  void AppendTitles() {
    std::string titles = options_.children ? "# Children      Self" : "# Overhead";
    std::string dots = options_.children ? "# ........  ........" : "# ........";
    for (size_t k = 0; k < options_.keys.size(); ++k) {
      titles += "  " + Cell(k, ColumnTitle(options_.keys[k]));
      dots += "  " + std::string(widths_[k], '.');
    }
    Line(titles);
    Line(dots);
    out_ += "#\n";
  }

  std::string PercentCell(uint64_t weight, size_t& invisible) const {
    const double percent = Percent(weight, section_.denominator);
    const std::string text = fmt::format("{:>9.2f}%", percent);
    const std::string colored = Colored(text, percent, options_.color);
    invisible += colored.size() - text.size();
    return colored;
  }

  void AppendRow(size_t i) {
    const FlatRow& row = section_.table.rows[section_.shown[i]];
    size_t invisible = 0;
    std::string line;
    if (options_.children) line += PercentCell(row.children.weight, invisible) + " ";
    line += PercentCell(row.self.weight, invisible);
    for (size_t k = 0; k < options_.keys.size(); ++k) line += "  " + Cell(k, cells_[i][k]);
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
  std::vector<std::vector<std::string>> cells_;
  std::vector<size_t> widths_;
};

void AppendComments(std::string& out, const std::vector<std::string>& lines, size_t width) {
  for (const std::string& line : lines) {
    const std::string text = line.empty() ? "#" : "# " + line;
    out += (width == 0 ? text : CutTo(text, width)) + "\n";
  }
}

}  // namespace

std::string TextReport(const Profile& profile, const ReportOptions& options) {
  std::string out;
  if (options.header) {
    std::vector<std::string> lines;
    lines.reserve(profile.facts.header.size());
    for (const std::string& line : profile.facts.header) lines.push_back(Printable(line));
    AppendComments(out, lines, 0);
    out += "#\n";
  }
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
