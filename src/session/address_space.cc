#include "session/address_space.h"

#include <algorithm>
#include <atomic>

namespace stackreel::session {

uint64_t AddressSpace::NextVersion() {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

void AddressSpace::Assign(Avma start, Avma end, const Mapping& mapping) {
  version_ = NextVersion();
  map_.Assign(start.value, end.value, mapping);
  if (mapping.executable && start < end) {
    highest_executable_end_ = std::max(highest_executable_end_, end);
  } else if (end >= highest_executable_end_) {
    UpdateHighestExecutableEnd();
  }
}

void AddressSpace::Erase(Avma start, Avma end) {
  version_ = NextVersion();
  map_.Erase(start.value, end.value);
  UpdateHighestExecutableEnd();
}

void AddressSpace::UpdateHighestExecutableEnd() {
  highest_executable_end_ = Avma(0);
  const std::vector<Entry>& all = map_.entries();
  for (auto it = all.rbegin(); it != all.rend(); ++it) {
    if (!it->value.executable) continue;
    highest_executable_end_ = Avma(it->end);
    break;
  }
}

}  // namespace stackreel::session
