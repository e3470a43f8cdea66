// Event texts, as given to -e, to attrs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "perfdata/attr.h"

namespace stackreel::record {

// Where the kernel lists its events; tests have folders of their own.
struct EventFolders {
  std::string pmus = "/sys/bus/event_source/devices";
  // The first of these that is there.
  std::vector<std::string> tracefs = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
};

// The first of the tracefs folders that is there; "" if none.
std::string FindTracefs(const EventFolders& folders);

// One event: type, config, exclude_* and precise_ip are set; the name is `text`. kUsage if the text
// makes no sense, kNotFound if there is no such event; both name the nearest there is.
//   NAME                 a hardware, software or cache event: cycles, cs, L1-dcache-load-misses
//   rHEX                 a raw hardware event
//   SYSTEM:NAME          a tracepoint
//   mem:ADDR[/LEN][:rwx] a breakpoint, see breakpoint_event.h
//   PMU/TERM[=N],…/      terms of the PMU's format folder, its named events, config, config1,
//                        config2, period, freq, name
// Each may end with modifiers, behind ":" or the last "/": u user, k kernel, h hypervisor,
// G guest, H host, p precise (up to ppp), P the most precise there is, D pinned, e exclusive,
// I not when idle, S with counts in each sample (PERF_SAMPLE_READ). `more_modifiers`, as they
// stand behind the brace of a group, are added to its own.
Result<perfdata::Event> ParseEventIn(const EventFolders& folders, const std::string& text,
                                     const std::string& more_modifiers = "");

// "sched:sched_*" → the tracepoints that match, as fnmatch(3) has it, with the text's modifiers;
// any other text → itself. kNotFound if none matches.
Result<std::vector<std::string>> ExpandTracepoints(const EventFolders& folders,
                                                   const std::string& text);

// Every name that ParseEventIn knows without a file: for help and for nearest names.
std::vector<std::string> BuiltinEventNames();

// The up to `count` names that are nearest to `text`, best first; none that is too far.
std::vector<std::string> NearestNames(const std::string& text,
                                      const std::vector<std::string>& names, size_t count);

}  // namespace stackreel::record
