// The option tree of one command as data: what help, man pages and completion are made from.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/command.h"

namespace stackreel::cli {

struct OptionDoc {
  std::vector<std::string> names;  // "-o", "--output", as typed
  std::string value;               // "FILE"; empty for a flag
  std::string description;
  std::string group;
  std::vector<std::string> choices;  // of a value that is one of a few words
};

struct PositionalDoc {
  std::string name;
  std::string description;
  bool required = false;
  bool repeated = false;
};

struct CommandDoc {
  std::string name;
  std::string summary;
  std::string usage;
  std::vector<std::string> examples;
  std::vector<PositionalDoc> positionals;
  std::vector<OptionDoc> options;         // the command's own
  std::vector<OptionDoc> global_options;  // of every command
};

// Reads the tree that `command.AddOptions` built in `app`, whose parent has the global options.
CommandDoc DescribeCommand(const Command& command, const CLI::App& app);

}  // namespace stackreel::cli
