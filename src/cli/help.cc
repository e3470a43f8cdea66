#include "cli/help.h"

#include <fmt/format.h>

#include <algorithm>

namespace stackreel::cli {

namespace {

constexpr size_t kWidth = 80;
constexpr size_t kTextColumn = 26;

std::string OptionSyntax(const OptionDoc& option) {
  std::string out;
  for (const std::string& name : option.names) out += (out.empty() ? "" : ", ") + name;
  if (!option.value.empty()) {
    const bool is_long = option.names.back().starts_with("--");
    out += (is_long ? "=" : " ") + option.value;
  }
  return out;
}

// `left` in a column, `text` wrapped beside it.
void AppendEntry(const std::string& left, const std::string& text, std::string& out) {
  std::string line = "  " + left;
  if (line.size() + 2 > kTextColumn) {
    out += line + "\n";
    line.assign(kTextColumn, ' ');
  } else {
    line.resize(kTextColumn, ' ');
  }
  size_t at = 0;
  bool first_word = true;
  while (at < text.size()) {
    size_t end = text.find(' ', at);
    if (end == std::string::npos) end = text.size();
    const std::string word = text.substr(at, end - at);
    if (!first_word && line.size() + 1 + word.size() > kWidth) {
      out += line + "\n";
      line.assign(kTextColumn, ' ');
      first_word = true;
    }
    if (!first_word) line += ' ';
    line += word;
    first_word = false;
    at = end + 1;
  }
  out += line + "\n";
}

void AppendExamples(const CommandDoc& doc, std::string& out) {
  if (doc.examples.empty()) return;
  out += "Examples:\n";
  for (const std::string& example : doc.examples) out += "  " + example + "\n";
  out += "\n";
}

void AppendOptions(const std::vector<OptionDoc>& options, const std::string& title,
                   std::string& out) {
  std::vector<std::string> groups;
  for (const OptionDoc& option : options) {
    if (std::find(groups.begin(), groups.end(), option.group) == groups.end()) {
      groups.push_back(option.group);
    }
  }
  for (const std::string& group : groups) {
    out += "\n" + (group.empty() ? title : group) + ":\n";
    for (const OptionDoc& option : options) {
      if (option.group == group) AppendEntry(OptionSyntax(option), option.description, out);
    }
  }
}

size_t EditDistance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string HelpText(const CommandDoc& doc) {
  std::string out = doc.name + ": " + doc.summary + "\n\n";
  AppendExamples(doc, out);
  out += "Usage: " + doc.usage + "\n";
  if (!doc.positionals.empty()) out += "\nArguments:\n";
  for (const PositionalDoc& positional : doc.positionals) {
    AppendEntry(positional.name, positional.description, out);
  }
  AppendOptions(doc.options, "Options", out);
  AppendOptions(doc.global_options, "Options of every command", out);
  return out;
}

std::string ProgramHelpText(const std::vector<CommandDoc>& docs) {
  std::string out =
      "stackreel: profiler and tracer for native Linux programs\n\n"
      "Examples:\n"
      "  stackreel record -- ./prog      # record a program\n"
      "  stackreel report                # where its time went\n"
      "  stackreel flamegraph            # the same as a picture, flamegraph.svg\n"
      "  stackreel doctor                # what this machine allows\n\n"
      "Usage: stackreel COMMAND [options] [arguments]\n\nCommands:\n";
  for (const CommandDoc& doc : docs) AppendEntry(doc.name, doc.summary, out);
  AppendEntry("help", "Show the help of a command; --man: as a man page", out);
  AppendOptions(docs.front().global_options, "Options of every command", out);
  out +=
      "\nEvery option can also be given by the environment (STACKREEL_REPORT_SORT for\n"
      "report --sort) or in $XDG_CONFIG_HOME/stackreel/config.toml, under [report].\n";
  return out;
}

std::string Nearest(const std::string& text, const std::vector<std::string>& words) {
  std::string best;
  size_t best_distance = std::max<size_t>(1, text.size() / 3) + 1;
  for (const std::string& word : words) {
    const size_t distance = EditDistance(text, word);
    if (distance < best_distance) {
      best = word;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace stackreel::cli
