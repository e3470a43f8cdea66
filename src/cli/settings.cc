#include <fmt/format.h>

#include <cctype>
#include <cstdlib>
#include <sstream>

#include "cli/argument_check.h"
#include "cli/program.h"

namespace stackreel::cli {

namespace {

std::string EnvironmentName(const std::string& command, const std::string& option) {
  std::string name =
      command.empty() ? "STACKREEL_" + option : "STACKREEL_" + command + "_" + option;
  for (char& c : name) {
    c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

// Gives `option` the values as if they had been typed.
Status SetOption(CLI::Option& option, const std::vector<std::string>& values,
                 const std::string& where) {
  if (option.get_items_expected_max() != 0) {
    for (const std::string& value : values) TRY(CheckGiven(option, value, where));
  }
  try {
    if (option.get_items_expected_max() == 0) {  // a flag
      const int64_t count = CLI::detail::to_flag_value(values.empty() ? "true" : values[0]);
      if (count <= 0) return {};
      for (int64_t i = 0; i < count; ++i) option.add_result("true");
    } else {
      for (const std::string& value : values) option.add_result(value);
    }
    option.run_callback();
  } catch (const std::exception& error) {
    return Fail(ErrorKind::kUsage, fmt::format("{}: {}", where, error.what()));
  }
  return {};
}

Status ApplyEnvironment(CLI::App& app, const std::string& command) {
  for (CLI::Option* option : app.get_options()) {
    if (option->count() != 0 || option->get_lnames().empty()) continue;
    const std::string name = EnvironmentName(command, option->get_lnames()[0]);
    const char* value = std::getenv(name.c_str());
    if (value == nullptr || *value == '\0' || option->get_lnames()[0] == "help") continue;
    TRY(SetOption(*option, {value}, name));
  }
  return {};
}

}  // namespace

std::string ConfigPath() {
  if (const char* config = std::getenv("XDG_CONFIG_HOME"); config != nullptr && *config != '\0') {
    return std::string(config) + "/stackreel/config.toml";
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') {
    return std::string(home) + "/.config/stackreel/config.toml";
  }
  return "";
}

Status ApplySettings(CLI::App& app, const std::string& config_text,
                     const std::string& config_name) {
  CLI::App* parent = app.get_parent();
  TRY(ApplyEnvironment(app, app.get_name()));
  if (parent != nullptr) TRY(ApplyEnvironment(*parent, ""));
  std::vector<CLI::ConfigItem> items;
  try {
    std::istringstream text(config_text);
    items = CLI::ConfigTOML().from_config(text);
  } catch (const std::exception& error) {
    return Fail(Error(ErrorKind::kUsage, error.what()).At(config_name));
  }
  for (const CLI::ConfigItem& item : items) {
    if (item.name == "++" || item.name == "--") continue;  // a table begins or ends
    if (item.parents.size() > 1 ||
        (item.parents.size() == 1 && item.parents[0] != app.get_name())) {
      continue;  // another command's
    }
    CLI::App* owner = item.parents.empty() && parent != nullptr ? parent : &app;
    CLI::Option* option = owner->get_option_no_throw("--" + item.name);
    if (option == nullptr) {
      return Fail(Error(ErrorKind::kUsage, fmt::format("there is no option '{}'", item.fullname()))
                      .At(config_name)
                      .WithCure("stackreel help " + app.get_name()));
    }
    if (option->count() == 0) {
      TRY(SetOption(*option, item.inputs, config_name + ": " + item.fullname()));
    }
  }
  return {};
}

}  // namespace stackreel::cli
