#include "cli/trace_question.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "cli/number_range.h"
#include "tracer/control_socket.h"
#include "tracer/installed_agent.h"

namespace stackreel::cli {
namespace {

// The agent that a trace which does not answer has left.
Result<std::optional<tracer::FoundAgent>> FindLeftAgent(uint32_t pid) {
  TRY_ASSIGN(const auto target, tracer::Target::Open(pid));
  TRY_ASSIGN(auto found, tracer::FindAgent(*target));
  if (found && found->tracer_pid == 0) found.reset();
  return found;
}

// What to say where nobody answers.
Error NotTraced(uint32_t pid, Error error) {
  if (error.kind != ErrorKind::kNotFound) return error;
  const auto found = FindLeftAgent(pid);
  if (!found) return found.error();
  if (!*found) return error;
  if ((*found)->tracer_alive) {
    return Error(
               ErrorKind::kPermission,
               fmt::format("process {} is traced by process {}, whose control socket is not where "
                           "this user looks",
                           pid, (*found)->tracer_pid))
        .WithCure("ask as the user who traces it, with the same XDG_RUNTIME_DIR");
  }
  return Error(ErrorKind::kNotFound,
               fmt::format("process {} was traced by process {}, which has ended without detaching",
                           pid, (*found)->tracer_pid))
      .WithCure(fmt::format("put it back as it was: stackreel detach -p {}", pid));
}

}  // namespace

using tracedata::ControlAnswer;
using tracedata::ControlRequest;

Result<ControlAnswer> AskTraceOf(uint32_t pid, const ControlRequest& request) {
  const auto bytes = tracer::AskTrace(pid, tracedata::Encode(request));
  if (!bytes) return Fail(NotTraced(pid, bytes.error()));
  TRY_ASSIGN(ControlAnswer answer, tracedata::DecodeAnswer(*bytes));
  if (answer.error) return Fail(std::move(*answer.error));
  return answer;
}

void AddPidOption(CLI::App& app, uint32_t& pid) {
  app.add_option("-p,--pid", pid, "The process that is traced")
      ->type_name("PID")
      ->required()
      ->check(WholeNumber(1, INT32_MAX));
}

}  // namespace stackreel::cli
