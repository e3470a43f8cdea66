#include "cli/trace_control.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "os/proc.h"
#include "tracedata/loss_reason.h"

namespace stackreel::cli {

namespace {

using tracedata::ControlAnswer;
using tracedata::ControlRequest;

void DescribeFilters(const tracer::TraceSession& session, ControlAnswer& answer) {
  const tracer::CallFilters& filters = session.filters();
  for (size_t i = 0; i < filters.options.size(); ++i) {
    if (!tracedata::IsOfFunctions(filters.options[i].kind)) continue;
    answer.Add("filters", tracedata::ToText(filters.options[i]), session.filter_matches()[i]);
  }
  if (filters.levels != tracedata::kLevels) answer.Add("limits", "levels (-D)", filters.levels);
  if (filters.least_nanoseconds != 0) {
    answer.Add("limits", "nanoseconds (-t)", filters.least_nanoseconds);
  }
}

Result<ControlAnswer> Change(tracer::TraceSession& session, const ControlRequest& request) {
  std::vector<tracer::PatternChoice> patterns;
  for (const tracedata::ControlPattern& pattern : request.patterns) {
    TRY_ASSIGN(tracer::FunctionPattern parsed, tracer::FunctionPattern::Parse(pattern.text));
    patterns.push_back(
        {std::move(parsed), pattern.patch ? tracer::Choice::kPatch : tracer::Choice::kUnpatch});
  }
  TRY_ASSIGN(const tracer::PatchCounts counts, session.Apply(patterns));
  if (!counts.error.empty()) return Fail(ErrorKind::kIo, counts.error);
  ControlAnswer answer;
  answer.Add("functions", "matched", counts.matched);
  answer.Add("functions", "patched", counts.patched);
  answer.Add("functions", "unpatched", counts.unpatched);
  answer.Add("functions", "deferred", counts.deferred);
  for (const auto& [reason, count] : counts.refused) answer.Add("refused", reason, count);
  return answer;
}

Result<ControlAnswer> Filter(tracer::TraceSession& session, const ControlRequest& request) {
  TRY_ASSIGN(const tracer::PatchCounts counts, session.SetFilters(request.filters));
  if (!counts.error.empty()) return Fail(ErrorKind::kIo, counts.error);
  ControlAnswer answer;
  DescribeFilters(session, answer);
  answer.Add("functions", "deferred", counts.deferred);
  for (const auto& [reason, count] : counts.refused) answer.Add("refused", reason, count);
  return answer;
}

ControlAnswer DescribeStatus(tracer::TraceSession& session) {
  ControlAnswer answer;
  const tracer::SiteCounts sites = session.CountSites();
  const tracer::CollectedCounts collected = session.collected();
  answer.Add("process", "pid", session.pid());
  answer.Add("process", "tracer", static_cast<uint64_t>(getpid()));
  answer.Add("process", "threads", os::ListThreads(session.pid()).size());
  if (session.followed() != 0) answer.Add("process", "followed children", session.followed());
  answer.Add("functions", "named", sites.functions);
  answer.Add("functions", "modified by others", session.CountForeign());
  for (const auto& [state, count] : sites.by_state) answer.Add("sites", state, count);
  for (const auto& [kind, count] : sites.by_kind) answer.Add("patched by", kind, count);
  for (const auto& [reason, count] : sites.refused) answer.Add("refused", reason, count);
  DescribeFilters(session, answer);
  answer.Add("recorded", "tracing is on", session.IsTracing() ? 1 : 0);
  answer.Add("recorded", "calls", collected.calls);
  answer.Add("recorded", "threads", collected.threads);
  answer.Add("recorded", "bytes", collected.bytes);
  const tracedata::LostCalls lost = session.lost();
  for (uint32_t i = 0; i < lost.size(); ++i) {
    if (lost[i] != 0) answer.Add("lost", std::string(tracedata::LossReasonText(i)), lost[i]);
  }
  if (collected.unwritten != 0) answer.Add("lost", "could not be written", collected.unwritten);
  return answer;
}

}  // namespace

ControlAnswer AnswerRequest(tracer::TraceSession& session, const ControlRequest& request) {
  if (request.kind == ControlRequest::Kind::kStatus) return DescribeStatus(session);
  Result<ControlAnswer> answer = request.kind == ControlRequest::Kind::kFilter
                                     ? Filter(session, request)
                                     : Change(session, request);
  if (answer) return std::move(*answer);
  ControlAnswer failed;
  failed.error = std::move(answer.error());
  return failed;
}

ControlAnswer AnswerDetached(const tracer::TraceSummary& summary) {
  ControlAnswer answer;
  answer.Add("left", "return addresses", summary.put_back);
  answer.Add("left", "busy threads", summary.busy);
  answer.Add("left", "sites not as they were", summary.modified);
  answer.Add("left", "whole", summary.detached && summary.modified == 0 ? 1 : 0);
  return answer;
}

}  // namespace stackreel::cli
