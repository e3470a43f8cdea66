// The program: its command tree, its settings, and what main() does.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/option_tree.h"

namespace stackreel::cli {

// All commands with their option tree, in the order in which help lists them.
class Program {
 public:
  Program();
  // Parses and runs; returns the exit code.
  int Run(int argc, const char* const* argv);
  [[nodiscard]] std::vector<CommandDoc> Docs() const;

 private:
  struct Entry {
    std::unique_ptr<Command> command;
    CLI::App* app = nullptr;  // owned by app_
  };
  [[nodiscard]] int RunHelp(const std::vector<std::string>& args) const;
  [[nodiscard]] int UsageError(const std::string& message, const std::string& command) const;
  [[nodiscard]] std::string NearestCommand(const std::string& word) const;
  int RunArguments(int argc, const char* const* argv);
  int RunCommand(Entry& entry);

  CLI::App app_;
  GlobalOptions global_;
  std::string color_ = "auto";
  std::vector<Entry> commands_;
};

// What operator new calls where there is no memory left: says so and ends the program, on whichever
// thread it is. A recording is left as a killed one is, readable up to the last round.
[[noreturn]] void EndOutOfMemory();

// Fills options of `app` that were not given: first from the environment (STACKREEL_COMMAND_OPTION
// in capitals, '-' as '_'; one that is empty counts as not set), then from `config_text`, TOML with
// a table for each command. kUsage if a value does not fit or the table names an option that is not
// there.
Status ApplySettings(CLI::App& app, const std::string& config_text, const std::string& config_name);
// $XDG_CONFIG_HOME/stackreel/config.toml, else ~/.config/…; "" if neither variable is set.
std::string ConfigPath();

}  // namespace stackreel::cli
