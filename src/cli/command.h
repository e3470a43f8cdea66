// What a command is. The program's help, its man pages and its completion all come from the option
// tree that the commands build, so they cannot drift.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/error.h"

namespace stackreel::cli {

// What they mean to users: docs/exit-codes.md.
enum ExitCode : int {
  kExitDone = 0,
  kExitFailed = 1,
  kExitUsage = 2,
  kExitCheckSaidNo = 3,
  kExitDamagedInput = 4,
  kExitCannotMeasure = 125,
  kExitNotRunnable = 126,
  kExitNotFound = 127,
};

enum class ColorWhen : uint8_t { kAuto, kAlways, kNever };

// Options every command has.
struct GlobalOptions {
  ColorWhen color = ColorWhen::kAuto;
  bool no_progress = false;
  bool quiet = false;
  int verbose = 0;
  size_t threads = 0;                // 0: all CPUs
  std::vector<std::string> cmdline;  // the program's own arguments, all of them
};

// One subcommand: adds itself to `app`, and is run if it was the one given.
class Command {
 public:
  virtual ~Command() = default;
  [[nodiscard]] virtual const char* name() const = 0;
  [[nodiscard]] virtual const char* summary() const = 0;
  // Shown first in the help: one example a line, "command  # what it does".
  [[nodiscard]] virtual std::vector<std::string> examples() const = 0;
  virtual void AddOptions(CLI::App& app) = 0;
  // Returns the exit code. Errors it could not deal with come back and are printed by main.
  virtual Result<int> Run(const GlobalOptions& global) = 0;
};

std::vector<std::unique_ptr<Command>> AllCommands();
std::unique_ptr<Command> MakeRecordCommand();
std::unique_ptr<Command> MakeReportCommand();
std::unique_ptr<Command> MakeScriptCommand();
std::unique_ptr<Command> MakeFlamegraphCommand();
std::unique_ptr<Command> MakeDumpCommand();
std::unique_ptr<Command> MakeAnonymizeCommand();
std::unique_ptr<Command> MakeInjectCommand();
std::unique_ptr<Command> MakeDoctorCommand();
std::unique_ptr<Command> MakeCompletionCommand();

// Prints "stackreel: error: …" with the cure, and gives the exit code of its kind.
int PrintError(const Error& error, const GlobalOptions& global);

}  // namespace stackreel::cli
