// stackreel patch, unpatch, status, detach: speak to a running trace.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/plural.h"
#include "cli/command.h"
#include "cli/print.h"
#include "cli/trace_control.h"
#include "cli/trace_question.h"
#include "tracedata/control_message.h"
#include "tracer/recover.h"

namespace stackreel::cli {
namespace {

using tracedata::ControlAnswer;
using tracedata::ControlRequest;

class ChangeCommand : public Command {
 public:
  explicit ChangeCommand(bool patch) : patch_(patch) {}
  [[nodiscard]] const char* name() const override { return patch_ ? "patch" : "unpatch"; }
  [[nodiscard]] const char* summary() const override {
    return patch_ ? "Record more functions of a process that is traced"
                  : "Record fewer functions of a process that is traced";
  }
  [[nodiscard]] std::vector<std::string> examples() const override {
    if (patch_) {
      return {"stackreel patch -p 1234 'parse_*' handle_request",
              "stackreel patch -p 1234 'malloc@libc'          # of a library"};
    }
    return {"stackreel unpatch -p 1234 'parse_*'",
            "stackreel unpatch -p 1234 '*@*'                 # all that is patched"};
  }
  void AddOptions(CLI::App& app) override {
    app.positionals_at_end();
    app.add_option("pattern", patterns_, "NAME[@MODULE], a glob or a regular expression")
        ->type_name("PATTERN")
        ->required();
    AddPidOption(app, pid_);
  }
  Result<int> Run(const GlobalOptions& global) override {
    ControlRequest request;
    request.kind = ControlRequest::Kind::kChange;
    for (const std::string& text : patterns_) {
      // Told of here, where it was typed.
      TRY(tracer::FunctionPattern::Parse(text));
      request.patterns.push_back({patch_, text});
    }
    TRY_ASSIGN(const ControlAnswer answer, AskTraceOf(pid_, request));
    if (global.quiet) return kExitDone;
    Print(stdout, "{}\n",
          Plural(answer.Find("functions", patch_ ? "patched" : "unpatched"), "function") +
              (patch_ ? " patched" : " unpatched"));
    if (const uint64_t deferred = answer.Find("functions", "deferred"); deferred != 0) {
      Print(stdout, "{} deferred: a thread is inside\n", Plural(deferred, "function"));
    }
    for (const tracedata::ControlCount& count : answer.counts) {
      if (count.group != "refused") continue;
      Print(stdout, "{} refused: {}\n", Plural(count.value, "function"), count.name);
    }
    return kExitDone;
  }

 private:
  bool patch_;
  uint32_t pid_ = 0;
  std::vector<std::string> patterns_;
};

class StatusCommand : public Command {
 public:
  [[nodiscard]] const char* name() const override { return "status"; }
  [[nodiscard]] const char* summary() const override {
    return "Show what is patched and recorded of a process that is traced";
  }
  [[nodiscard]] std::vector<std::string> examples() const override {
    return {"stackreel status -p 1234", "stackreel status -p 1234 --json"};
  }
  void AddOptions(CLI::App& app) override {
    AddPidOption(app, pid_);
    app.add_flag("--json", json_, "One JSON object, for programs");
  }
  Result<int> Run(const GlobalOptions&) override {
    TRY_ASSIGN(const ControlAnswer answer,
               AskTraceOf(pid_, {.kind = ControlRequest::Kind::kStatus}));
    if (json_) {
      nlohmann::ordered_json object = {{"schema", "stackreel-status-1"}};
      for (const tracedata::ControlCount& count : answer.counts) {
        object[count.group][count.name] = count.value;
      }
      Print(stdout, "{}\n",
            object.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
      return kExitDone;
    }
    std::string group;
    for (const tracedata::ControlCount& count : answer.counts) {
      if (count.group != group) Print(stdout, "{}\n", count.group);
      group = count.group;
      Print(stdout, "  {:<40} {}\n", count.name, count.value);
    }
    return kExitDone;
  }

 private:
  uint32_t pid_ = 0;
  bool json_ = false;
};

class DetachCommand : public Command {
 public:
  [[nodiscard]] const char* name() const override { return "detach"; }
  [[nodiscard]] const char* summary() const override {
    return "End the trace of a process, or put back what a killed tracer has left in one";
  }
  [[nodiscard]] std::vector<std::string> examples() const override {
    return {"stackreel detach -p 1234"};
  }
  void AddOptions(CLI::App& app) override { AddPidOption(app, pid_); }
  Result<int> Run(const GlobalOptions& global) override {
    // First whether somebody is there: who was killed does not answer, and is cleaned up after.
    TRY_ASSIGN(const auto target, tracer::Target::Open(pid_));
    TRY_ASSIGN(const auto found, tracer::FindAgent(*target));
    if (!found || found->tracer_pid == 0 || found->tracer_alive) {
      TRY_ASSIGN(const ControlAnswer answer,
                 AskTraceOf(pid_, {.kind = ControlRequest::Kind::kDetach}));
      return Report(answer.Find("left", "whole") == 1, answer.Find("left", "return addresses"),
                    answer.Find("left", "busy threads"), global);
    }
    tracer::UntoldCalls open;
    TRY_ASSIGN(const tracer::RecoverOutcome outcome, tracer::Recover(*target, found->place, open));
    if (!global.quiet) {
      Print(stdout, "{} of {} that process {} had left are as they were\n", outcome.restored,
            Plural(outcome.sites, "site"), found->tracer_pid);
    }
    return Report(outcome.left, outcome.put_back, outcome.busy, global);
  }

 private:
  Result<int> Report(bool whole, uint64_t put_back, uint64_t busy,
                     const GlobalOptions& global) const {
    if (!whole) {
      return Fail(Error(ErrorKind::kIo, fmt::format("process {} could not be left whole: {} busy",
                                                    pid_, Plural(busy, "thread")))
                      .WithCure(fmt::format("try again: stackreel detach -p {}", pid_)));
    }
    if (!global.quiet) {
      Print(stdout, "process {} is as it was: every byte, and {} put back\n", pid_,
            put_back == 1 ? "1 return address" : fmt::format("{} return addresses", put_back));
    }
    return kExitDone;
  }

  uint32_t pid_ = 0;
};

}  // namespace

std::unique_ptr<Command> MakePatchCommand() { return std::make_unique<ChangeCommand>(true); }
std::unique_ptr<Command> MakeUnpatchCommand() { return std::make_unique<ChangeCommand>(false); }
std::unique_ptr<Command> MakeStatusCommand() { return std::make_unique<StatusCommand>(); }
std::unique_ptr<Command> MakeDetachCommand() { return std::make_unique<DetachCommand>(); }

}  // namespace stackreel::cli
