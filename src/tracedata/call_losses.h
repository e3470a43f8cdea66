// Calls that are known not to have been recorded: one count of them for all who tell of it.
#pragma once

#include <cstdint>
#include <numeric>

#include "tracedata/call_event.h"
#include "tracedata/loss_reason.h"
#include "tracedata/trace_source.h"

namespace stackreel::tracedata {

struct CallLosses {
  LostCalls calls = {};
  uint64_t places = 0;  // where it is not known how many

  // What an event of a thread tells of losses; nothing, if it is of a call.
  void Add(const OrderedEvent& event) {
    if (event.kind() != EventKind::kLost) return;
    if (event.detail == 0) {
      ++places;
    } else {
      calls.at(event.function()) += event.detail;
    }
  }
  // What facts tell, of calls that no chunk was free for.
  void AddFacts(const TraceTables& tables) {
    for (const TraceLoss& loss : tables.losses) {
      if (const auto reason = LossReasonOf(loss.reason)) {
        calls.at(static_cast<size_t>(*reason)) += loss.calls;
      }
    }
  }
  [[nodiscard]] uint64_t total() const {
    return std::accumulate(calls.begin(), calls.end(), uint64_t{0});
  }
};

}  // namespace stackreel::tracedata
