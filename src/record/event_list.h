// Lists of events, as given to -e: single events and groups, {a,b}.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "perfdata/attr.h"
#include "perfdata/event_groups.h"
#include "record/event_parse.h"

namespace stackreel::record {

// Events, and which of them are on a CPU only together.
struct EventList {
  std::vector<perfdata::Event> events;
  // Of two events and more; a group's events follow its leader.
  std::vector<perfdata::EventGroup> groups;

  // The group that the event is in; null if it is by itself.
  [[nodiscard]] const perfdata::EventGroup* GroupOf(size_t event) const;
  // The index of the event that leads its group; its own if it is by itself.
  [[nodiscard]] size_t LeaderOf(size_t event) const;
  // In a group whose leader alone samples: its count is in the leader's samples.
  [[nodiscard]] bool IsOnlyCounted(size_t event) const;
};

// What stands between the commas outside of braces.
struct EventListItem {
  std::vector<std::string> events;  // one, unless in braces
  bool in_braces = false;
  std::string group_name;  // before the brace; mostly empty
  std::string modifiers;   // behind the brace's ":"
};

// "cycles,cpu/event=0x3c,umask=0/u" → its events. kUsage if slashes do not match or a name is
// missing.
Result<std::vector<std::string>> SplitEventList(std::string_view text);
// "{cpu-clock,faults}:S,cs" → its groups and single events. kUsage if braces do not match, are
// nested or empty, or as SplitEventList.
Result<std::vector<EventListItem>> SplitGroups(std::string_view text);

// `texts`, each as -e takes it, → events, tracepoints with * expanded. Modifiers behind a brace are
// those of each member too, D and e the leader's only. Events with S have kSampleRead, all of a
// group or none. Errors as those of ParseEventIn, and kUsage for what a group cannot have.
Result<EventList> ParseEventList(const EventFolders& folders,
                                 const std::vector<std::string>& texts);

}  // namespace stackreel::record
