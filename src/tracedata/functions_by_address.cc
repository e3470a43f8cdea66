#include "tracedata/functions_by_address.h"

namespace stackreel::tracedata {

std::optional<uint32_t> FunctionsByAddress::RowAt(Avma avma) {
  for (; known_ < tables_.functions.size(); ++known_) {
    const TraceFunction& function = tables_.functions[known_];
    rows_.try_emplace({function.module, function.svma.value}, known_);
  }
  for (const ModuleLoad& load : tables_.loads) {
    if (avma.value < load.start.value || avma.value >= load.end.value) continue;
    const auto at = rows_.find({load.module, avma.value - load.bias});
    if (at != rows_.end()) return at->second;
  }
  return std::nullopt;
}

}  // namespace stackreel::tracedata
