#include "tracedata/loss_reason.h"

namespace stackreel::tracedata {

std::string_view LossReasonText(uint32_t reason) {
  switch (static_cast<LossReason>(reason)) {
    case LossReason::kInterrupted:
      return "made by a signal handler while another call was recorded";
    case LossReason::kTooDeep:
      return "too many calls inside each other";
    case LossReason::kNoThread:
      return "too many threads";
    case LossReason::kNoSpace:
      return "no space to record them";
  }
  return "for an unknown reason";
}

std::optional<LossReason> LossReasonOf(std::string_view text) {
  for (uint8_t reason = 0; reason < kLossReasons; ++reason) {
    if (LossReasonText(reason) == text) return static_cast<LossReason>(reason);
  }
  return std::nullopt;
}

}  // namespace stackreel::tracedata
