#include "cli/program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string_view>

#include "cli/argument_check.h"
#include "cli/help.h"
#include "cli/number_range.h"
#include "cli/print.h"
#include "cli/trace_commands.h"
#include "cli/trace_control.h"
#include "os/file.h"
#include "os/unfinished_output.h"

namespace stackreel::cli {

namespace {
constexpr int kMaxThreads = 1024;  // more is a typing error
}  // namespace

std::vector<std::unique_ptr<Command>> AllCommands() {
  std::vector<std::unique_ptr<Command>> commands;
  commands.push_back(MakeRecordCommand());
  commands.push_back(MakeReportCommand());
  commands.push_back(MakeFlamegraphCommand());
  commands.push_back(MakeScriptCommand());
  commands.push_back(MakeDumpCommand());
  commands.push_back(MakeReplayCommand());
  commands.push_back(MakeGraphCommand());
  commands.push_back(MakeInfoCommand());
  commands.push_back(MakeConvertCommand());
  commands.push_back(MakeAnonymizeCommand());
  commands.push_back(MakeInjectCommand());
  commands.push_back(MakeTraceCommand());
  commands.push_back(MakePatchCommand());
  commands.push_back(MakeUnpatchCommand());
  commands.push_back(MakeFilterCommand());
  commands.push_back(MakeStatusCommand());
  commands.push_back(MakeDetachCommand());
  commands.push_back(MakeDoctorCommand());
  commands.push_back(MakeCompletionCommand());
  return commands;
}

int ExitCodeOf(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUsage:
      return kExitUsage;
    case ErrorKind::kDamaged:
    case ErrorKind::kNotFound:
    case ErrorKind::kPermission:
    case ErrorKind::kUnsupported:
    case ErrorKind::kIo:
    case ErrorKind::kInterrupted:
      return kExitFailed;
  }
  return kExitFailed;
}

int PrintError(const Error& error, const GlobalOptions& global) {
  const bool color = global.color == ColorWhen::kAlways ||
                     (global.color == ColorWhen::kAuto && isatty(STDERR_FILENO) != 0 &&
                      getenv("NO_COLOR") == nullptr);
  Print(stderr, "{}stackreel: error:{} {}\n", color ? "\x1b[1;31m" : "", color ? "\x1b[0m" : "",
        error.ToString());
  if (!error.cure.empty()) {
    std::string cure = error.cure;
    for (size_t at = 0; (at = cure.find('\n', at)) != std::string::npos; at += 8) {
      cure.replace(at, 1, "\n       ");
    }
    Print(stderr, "  try: {}\n", cure);
  }
  return ExitCodeOf(error.kind);
}

void EndOutOfMemory() {
  constexpr std::string_view kMessage =
      "stackreel: error: out of memory\n  try: fewer --threads, or a higher limit (ulimit -v)\n";
  os::RemoveUnfinishedOutputs();
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kMessage.data(), kMessage.size());
  _exit(kExitFailed);
}

Program::Program() : app_("profiler and tracer for native Linux programs", "stackreel") {
  app_.set_help_flag("-h,--help", "Show the help of a command");
  app_.set_version_flag("--version", "stackreel " STACKREEL_VERSION, "Show the version");
  app_.add_option("--color", color_, "Colour the output; auto: on a terminal, unless NO_COLOR")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "always", "never"}));
  app_.add_flag("--no-progress", global_.no_progress, "Show no progress on a terminal");
  app_.add_flag("-q,--quiet", global_.quiet, "Print only the answer and errors");
  app_.add_flag("-v,--verbose", global_.verbose, "Say more; twice: much more");
  app_.add_option("--threads", global_.threads, "Use N threads; 0: all CPUs")
      ->type_name("N")
      ->capture_default_str()
      ->check(WholeNumber(0, kMaxThreads));
  app_.require_subcommand(0, 1);
  app_.fallthrough();
  for (std::unique_ptr<Command>& command : AllCommands()) {
    CLI::App* sub = app_.add_subcommand(command->name(), command->summary());
    sub->set_help_flag("-h,--help")->group("");
    sub->fallthrough();
    command->AddOptions(*sub);
    for (CLI::Option* option : sub->get_options()) {
      // A list takes one value each time it is given, so that FILE may follow it.
      if (!option->get_lnames().empty()) option->allow_extra_args(false);
    }
    commands_.push_back(Entry{std::move(command), sub});
  }
}

std::vector<CommandDoc> Program::Docs() const {
  std::vector<CommandDoc> docs;
  docs.reserve(commands_.size());
  for (const Entry& entry : commands_) {
    docs.push_back(DescribeCommand(*entry.command, *entry.app));
  }
  return docs;
}

std::string Program::NearestCommand(const std::string& word) const {
  std::vector<std::string> words = {"help"};
  for (const Entry& entry : commands_) words.emplace_back(entry.command->name());
  return Nearest(word, words);
}

int Program::UsageError(const std::string& message, const std::string& command) const {
  Error error(ErrorKind::kUsage, message);
  error.cure = command.empty() ? "stackreel help" : "stackreel help " + command;
  return PrintError(error, global_);
}

int Program::RunHelp(const std::vector<std::string>& args) const {
  const std::vector<CommandDoc> docs = Docs();
  bool man = false;
  std::string name;
  for (const std::string& arg : args) {
    if (arg == "--man") {
      man = true;
    } else if (name.empty() && !arg.starts_with("-")) {
      name = arg;
    } else {
      return UsageError("help: unexpected argument '" + arg + "'", "");
    }
  }
  const CommandDoc* found = nullptr;
  for (const CommandDoc& doc : docs) {
    if (doc.name == name) found = &doc;
  }
  if (found == nullptr && !name.empty()) {
    const std::string near = NearestCommand(name);
    return UsageError(fmt::format("there is no command '{}'{}", name,
                                  near.empty() ? "" : "; did you mean '" + near + "'?"),
                      "");
  }
  if (man) {
    Print(stdout, "{}", ManPage(found, docs));
  } else {
    Print(stdout, "{}", found != nullptr ? HelpText(*found) : ProgramHelpText(docs));
  }
  return kExitDone;
}

int Program::RunCommand(Entry& entry) {
  std::string config_text;
  const std::string config = ConfigPath();
  if (!config.empty() && access(config.c_str(), F_OK) == 0) {
    Result<std::string> text = os::ReadTextFile(config);
    if (!text) return PrintError(text.error(), global_);
    config_text = std::move(*text);
  }
  if (Status status = ApplySettings(*entry.app, config_text, config); !status) {
    return PrintError(status.error(), global_);
  }
  global_.color = color_ == "always"  ? ColorWhen::kAlways
                  : color_ == "never" ? ColorWhen::kNever
                                      : ColorWhen::kAuto;
  Result<int> code = entry.command->Run(global_);
  return code ? *code : PrintError(code.error(), global_);
}

int Program::Run(int argc, const char* const* argv) {
  const int code = RunArguments(argc, argv);
  // Help and the version are answers too.
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    return PrintError(Error(ErrorKind::kIo, "cannot write to standard output"), global_);
  }
  return code;
}

int Program::RunArguments(int argc, const char* const* argv) {
  const std::vector<std::string> args(argv + (argc > 0 ? 1 : 0), argv + argc);
  if (args.empty()) {
    Print(stderr, "{}", ProgramHelpText(Docs()));
    return kExitUsage;
  }
  if (args[0] == "help") return RunHelp({args.begin() + 1, args.end()});
  const bool known = std::any_of(commands_.begin(), commands_.end(), [&](const Entry& entry) {
    return args[0] == entry.command->name();
  });
  if (!args[0].starts_with("-") && !known) return RunHelp({args[0]});  // says which is near
  global_.cmdline.assign(argv, argv + argc);
  if (const Status status = CheckArguments(app_, args); !status) {
    return PrintError(status.error(), global_);
  }
  std::string command;
  try {
    app_.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    for (const Entry& entry : commands_) {
      if (entry.app->parsed() || args[0] == entry.command->name()) {
        return RunHelp({entry.command->name()});
      }
    }
    return RunHelp({});
  } catch (const CLI::CallForVersion&) {
    Print(stdout, "stackreel {}\n", STACKREEL_VERSION);
    return kExitDone;
  } catch (const CLI::ParseError& error) {
    for (const Entry& entry : commands_) {
      if (entry.app->parsed() || args[0] == entry.command->name()) command = entry.command->name();
    }
    const std::string message = error.what();
    return UsageError(command.empty() ? message : command + ": " + message, command);
  }
  for (Entry& entry : commands_) {
    if (entry.app->parsed()) return RunCommand(entry);
  }
  return UsageError("no command given", "");
}

}  // namespace stackreel::cli
