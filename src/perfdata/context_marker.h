// The markers in a call chain that say whose the addresses behind them are.
#pragma once

#include <cstdint>
#include <optional>

#include "perfdata/record.h"

namespace stackreel::perfdata {

// The mode that a marker (PERF_CONTEXT_* of linux/perf_event.h) begins; nothing if it is none that
// we know. Behind kContextUserDeferred comes a cookie, no address.
inline std::optional<CpuMode> ModeOfMarker(uint64_t marker) {
  switch (marker) {
    case kContextHv:
      return CpuMode::kHypervisor;
    case kContextKernel:
      return CpuMode::kKernel;
    case kContextUser:
    case kContextUserDeferred:
      return CpuMode::kUser;
    case kContextGuest:
    case kContextGuestUser:
      return CpuMode::kGuestUser;
    case kContextGuestKernel:
      return CpuMode::kGuestKernel;
    default:
      return std::nullopt;
  }
}

}  // namespace stackreel::perfdata
