#include "record/event_choice.h"

#include <errno.h>

#include <algorithm>
#include <array>

#include "os/perf_event.h"
#include "record/event_list.h"

namespace stackreel::record {

namespace {

bool SomeAreNotInherited(const std::vector<perfdata::Event>& events) {
  return std::ranges::any_of(
      events, [](const perfdata::Event& event) { return !event.attr.Has(perfdata::kAttrInherit); });
}

struct Candidate {
  const char* name;
  const char* fallback;  // what to tell if it is the one
};
constexpr std::array<Candidate, 4> kDefaults = {{
    {"cycles", ""},
    {"cycles:u", "the kernel may not be recorded here: recorded cycles:u"},
    {"cpu-clock", "no hardware counter here: recorded cpu-clock"},
    {"cpu-clock:u",
     "no hardware counter here, and the kernel may not be recorded: recorded cpu-clock:u"},
}};

}  // namespace

Result<ChosenEvents> ChooseEvents(const std::vector<std::string>& texts,
                                  const EventSettings& settings, int pid, int cpu,
                                  const std::function<void(const std::string&)>& notice) {
  ChosenEvents chosen;
  if (!texts.empty()) {
    TRY_ASSIGN(const EventList parsed, ParseEventList(EventFolders(), texts));
    chosen.list = ConfigureEvents(parsed, settings);
    TRY(FitToKernel(chosen.list, pid, cpu, notice));
    if (pid != -1 && settings.inherit && SomeAreNotInherited(chosen.list.events)) {
      notice(
          "events with :S, as in perf, leave out children and threads that start later: the kernel "
          "reads no group across tasks");
    }
    return chosen;
  }
  Error refusal;
  for (size_t i = 0; i < kDefaults.size(); ++i) {
    TRY_ASSIGN(const perfdata::Event event, ParseEvent(kDefaults[i].name));
    chosen.list = ConfigureEvents({{event}, {}}, settings);
    chosen.fallback = kDefaults[i].fallback;
    const Status fits = FitToKernel(chosen.list, pid, cpu, notice);
    if (fits) return chosen;
    // Of several refusals the one that says what is forbidden helps; that there is no counter does
    // only if nothing else came after it.
    const bool is_hardware = i < 2;
    if (i == 0 || !is_hardware) refusal = fits.error();
    if (fits.error().kind != ErrorKind::kPermission && !is_hardware) break;
    if (settings.call_graph == CallGraph::kLbr && is_hardware &&
        fits.error().kind == ErrorKind::kUnsupported) {
      return Fail(fits.error());
    }
  }
  return Fail(std::move(refusal));
}

}  // namespace stackreel::record
