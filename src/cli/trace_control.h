// The words of a running trace: what patch, unpatch, status and detach ask, and what it answers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cli/command.h"
#include "tracedata/control_message.h"
#include "tracer/patched_functions.h"
#include "tracer/trace_session.h"

namespace stackreel::cli {

std::unique_ptr<Command> MakeTraceCommand();
std::unique_ptr<Command> MakePatchCommand();
std::unique_ptr<Command> MakeUnpatchCommand();
std::unique_ptr<Command> MakeFilterCommand();
std::unique_ptr<Command> MakeStatusCommand();
std::unique_ptr<Command> MakeDetachCommand();

// Answers all but the request to detach.
tracedata::ControlAnswer AnswerRequest(tracer::TraceSession& session,
                                       const tracedata::ControlRequest& request);
tracedata::ControlAnswer AnswerDetached(const tracer::TraceSummary& summary);

}  // namespace stackreel::cli
