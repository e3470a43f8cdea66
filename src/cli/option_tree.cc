#include "cli/option_tree.h"

#include <fmt/format.h>

namespace stackreel::cli {

namespace {

// "{a,b,c}" in an option's type name, as CLI::IsMember writes it, as words.
std::vector<std::string> ChoicesOf(const std::string& type_name) {
  std::vector<std::string> choices;
  const size_t open = type_name.find('{');
  const size_t close = type_name.find('}', open);
  if (open == std::string::npos || close == std::string::npos) return choices;
  std::string word;
  for (const char c : type_name.substr(open + 1, close - open - 1)) {
    if (c == ',') {
      choices.push_back(std::move(word));
      word.clear();
    } else if (c != ' ') {
      word += c;
    }
  }
  choices.push_back(std::move(word));
  return choices;
}

std::string ValueName(const CLI::Option& option, const std::vector<std::string>& choices) {
  if (option.get_items_expected_max() == 0) return "";  // a flag
  if (!choices.empty()) {
    std::string out;
    for (const std::string& choice : choices) out += (out.empty() ? "" : "|") + choice;
    return out;
  }
  std::string name = option.get_type_name();
  if (const size_t colon = name.find(':'); colon != std::string::npos) name.resize(colon);
  if (name == "TEXT" || name.empty()) return "TEXT";
  if (name == "UINT" || name == "INT" || name == "FLOAT") return "N";
  return name;
}

OptionDoc DescribeOption(const CLI::Option& option) {
  OptionDoc doc;
  for (const std::string& name : option.get_snames()) doc.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) doc.names.push_back("--" + name);
  doc.choices = ChoicesOf(option.get_type_name());
  doc.value = ValueName(option, doc.choices);
  doc.description = option.get_description();
  std::string usual = option.get_default_str();
  if (usual.starts_with('[') && usual.ends_with(']')) usual = usual.substr(1, usual.size() - 2);
  if (!doc.value.empty() && !usual.empty()) {
    doc.description += fmt::format(" (default: {})", usual);
  }
  doc.group = option.get_group() == "Options" ? "" : option.get_group();
  return doc;
}

std::vector<OptionDoc> DescribeOptions(const CLI::App& app) {
  std::vector<OptionDoc> docs;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional() || option->get_group().empty()) continue;
    docs.push_back(DescribeOption(*option));
  }
  return docs;
}

}  // namespace

CommandDoc DescribeCommand(const Command& command, const CLI::App& app) {
  CommandDoc doc;
  doc.name = command.name();
  doc.summary = command.summary();
  doc.examples = command.examples();
  doc.usage = "stackreel " + doc.name + " [options]";
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional() || option->get_group().empty()) continue;
    PositionalDoc positional;
    positional.name = option->get_name(true);
    positional.description = option->get_description();
    positional.required = option->get_required();
    positional.repeated = option->get_items_expected_max() > 1;
    std::string shown = positional.name + (positional.repeated ? "..." : "");
    doc.usage += positional.required ? " " + shown : " [" + shown + "]";
    doc.positionals.push_back(std::move(positional));
  }
  doc.options = DescribeOptions(app);
  if (app.get_parent() != nullptr) doc.global_options = DescribeOptions(*app.get_parent());
  return doc;
}

}  // namespace stackreel::cli
