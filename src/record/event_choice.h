// Which events a recording takes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "perfdata/attr.h"
#include "record/event_set.h"

namespace stackreel::record {

// What was chosen, ready to open.
struct ChosenEvents {
  EventList list;
  std::string fallback;  // why it is not what one would expect; else empty
};

// The events of `texts` (each as -e takes them), or "cycles"; where there is no hardware counter
// "cpu-clock", and where the kernel may not be recorded ":u" of it. Tried out on (pid, cpu). Errors
// are those of parsing, or the kernel's refusal, explained.
Result<ChosenEvents> ChooseEvents(const std::vector<std::string>& texts,
                                  const EventSettings& settings, int pid, int cpu,
                                  const std::function<void(const std::string&)>& notice);

}  // namespace stackreel::record
