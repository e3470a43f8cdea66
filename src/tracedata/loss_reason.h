// What is said of calls that were not recorded.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tracedata/call_event.h"

namespace stackreel::tracedata {

// As a kLost has it; "for an unknown reason" of others. The text is also TraceLoss::reason.
std::string_view LossReasonText(uint32_t reason);
std::optional<LossReason> LossReasonOf(std::string_view text);

}  // namespace stackreel::tracedata
