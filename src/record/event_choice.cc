#include "record/event_choice.h"

#include <errno.h>

#include <array>

#include "os/perf_event.h"
#include "record/event_parse.h"

namespace stackreel::record {

namespace {

Result<std::vector<perfdata::Event>> ParseAll(const std::vector<std::string>& texts) {
  std::vector<perfdata::Event> events;
  for (const std::string& text : texts) {
    TRY_ASSIGN(const std::vector<std::string> names, SplitEventList(text));
    for (const std::string& name : names) {
      TRY_ASSIGN(const std::vector<std::string> matches, ExpandTracepoints(EventFolders(), name));
      for (const std::string& match : matches) {
        TRY_ASSIGN(perfdata::Event event, ParseEvent(match));
        events.push_back(std::move(event));
      }
    }
  }
  return events;
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
    TRY_ASSIGN(const std::vector<perfdata::Event> parsed, ParseAll(texts));
    chosen.events = ConfigureEvents(parsed, settings);
    TRY(FitToKernel(chosen.events, pid, cpu, notice));
    return chosen;
  }
  Error refusal;
  for (size_t i = 0; i < kDefaults.size(); ++i) {
    TRY_ASSIGN(const perfdata::Event event, ParseEvent(kDefaults[i].name));
    chosen.events = ConfigureEvents({event}, settings);
    chosen.fallback = kDefaults[i].fallback;
    const Status fits = FitToKernel(chosen.events, pid, cpu, notice);
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
