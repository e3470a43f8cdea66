#include "record/event_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "record/breakpoint_event.h"

namespace stackreel::record {

namespace {

using perfdata::Event;
using perfdata::EventGroup;

Error BadList(std::string_view text, std::string_view why) {
  return Error(ErrorKind::kUsage, fmt::format("'{}': {}", text, why));
}

std::string Trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(' ') + 1 - first));
}

// At the commas that are neither between the slashes of a PMU's terms nor in braces.
Result<std::vector<std::string>> SplitAtCommas(std::string_view text) {
  std::vector<std::string> parts;
  std::string current, event;  // `event`: since the last comma or brace
  bool in_terms = false, in_braces = false;
  for (const char c : text) {
    if (!in_terms && c == '{') {
      if (in_braces) return Fail(BadList(text, "a group, {…}, cannot be in another"));
      in_braces = true;
    } else if (!in_terms && c == '}') {
      if (!in_braces) return Fail(BadList(text, "a '}' without its '{'"));
      in_braces = false;
    }
    // A breakpoint's slash comes alone.
    if (c == '/' && !IsBreakpoint(Trimmed(event))) in_terms = !in_terms;
    if (c == ',' && !in_terms && !in_braces) {
      parts.push_back(std::exchange(current, {}));
      event.clear();
      continue;
    }
    current += c;
    event = !in_terms && (c == '{' || c == '}' || c == ',') ? "" : event + c;
  }
  if (in_terms) return Fail(BadList(text, "a '/' is missing at the end"));
  if (in_braces) return Fail(BadList(text, "a '}' is missing at the end of a group"));
  parts.push_back(std::move(current));
  for (std::string& part : parts) part = Trimmed(part);
  if (std::ranges::any_of(parts, &std::string::empty)) {
    return Fail(BadList(text, "an event's name is missing"));
  }
  return parts;
}

// "name{a,b}:mods".
Result<EventListItem> SplitGroup(const std::string& text) {
  const size_t open = text.find('{');
  const size_t close = text.rfind('}');
  EventListItem group;
  group.in_braces = true;
  group.group_name = Trimmed(text.substr(0, open));
  if (group.group_name.find_first_of(":/") != std::string::npos) {
    return Fail(BadList(text, "a ',' is missing before a group"));
  }
  const std::string inside = Trimmed(text.substr(open + 1, close - open - 1));
  if (inside.empty()) return Fail(BadList(text, "a group without events"));
  if (inside.find('}') != std::string::npos) {
    return Fail(BadList(text, "a ',' is missing between groups"));
  }
  TRY_ASSIGN(group.events, SplitEventList(inside));
  const std::string after = text.substr(close + 1);
  if (after.empty()) return group;
  group.modifiers = after.substr(1);
  if (after[0] != ':' || group.modifiers.empty() ||
      group.modifiers.find(':') != std::string::npos) {
    return Fail(BadList(text, "behind a group only modifiers may stand, as in {cycles,faults}:S"));
  }
  return group;
}

constexpr uint64_t kOfLeaderOnly = perfdata::kAttrPinned | perfdata::kAttrExclusive;

Result<Event> ParseMember(const EventFolders& folders, const std::string& text,
                          const std::string& modifiers, bool leads) {
  std::string more;
  std::ranges::copy_if(modifiers, std::back_inserter(more),
                       [&](char c) { return c != 'S' && (leads || (c != 'D' && c != 'e')); });
  TRY_ASSIGN(Event event, ParseEventIn(folders, text, more));
  if ((event.attr.sample_type & perfdata::kSampleRead) != 0) {
    return Fail(BadList(text, "S stands behind the brace: it is of the whole group"));
  }
  if (!leads && (event.attr.flags & kOfLeaderOnly) != 0) {
    return Fail(BadList(text, "of a group only the first can be pinned (D) or exclusive (e)"));
  }
  // Members go by their own names, as perf has it; but those that may be opened less precise are
  // known by their P.
  if (more.find('P') != std::string::npos && event.name == text) {
    event.name += (text.find_first_of(":/") == std::string::npos ? ":" : "") + more;
  }
  if (modifiers.find('S') != std::string::npos) event.attr.sample_type |= perfdata::kSampleRead;
  return event;
}

Status AddItem(const EventFolders& folders, const EventListItem& item, EventList& list) {
  const size_t first = list.events.size();
  for (const std::string& text : item.events) {
    TRY_ASSIGN(const std::vector<std::string> matches, ExpandTracepoints(folders, text));
    for (const std::string& match : matches) {
      auto event = item.in_braces ? ParseMember(folders, match, item.modifiers,
                                                /*leads=*/list.events.size() == first)
                                  : ParseEventIn(folders, match);
      if (!event) return Fail(std::move(event.error()));
      list.events.push_back(std::move(*event));
    }
  }
  const size_t count = list.events.size() - first;
  if (item.in_braces && count > 1) {
    list.groups.push_back(
        {item.group_name, static_cast<uint32_t>(first), static_cast<uint32_t>(count)});
  }
  return {};
}

}  // namespace

const EventGroup* EventList::GroupOf(size_t event) const {
  const auto group = std::ranges::find_if(groups, [event](const EventGroup& g) {
    return event >= g.leader && event - g.leader < g.members;
  });
  return group == groups.end() ? nullptr : &*group;
}

size_t EventList::LeaderOf(size_t event) const {
  const EventGroup* group = GroupOf(event);
  return group == nullptr ? event : group->leader;
}

bool EventList::IsOnlyCounted(size_t event) const {
  return LeaderOf(event) != event && (events[event].attr.sample_type & perfdata::kSampleRead) != 0;
}

Result<std::vector<std::string>> SplitEventList(std::string_view text) {
  return SplitAtCommas(text);
}

Result<std::vector<EventListItem>> SplitGroups(std::string_view text) {
  TRY_ASSIGN(const std::vector<std::string> parts, SplitAtCommas(text));
  std::vector<EventListItem> items;
  for (const std::string& part : parts) {
    EventListItem item;
    if (part.find_first_of("{}") != std::string::npos) {
      TRY_ASSIGN(item, SplitGroup(part));
    } else {
      item.events = {part};
    }
    items.push_back(std::move(item));
  }
  return items;
}

Result<EventList> ParseEventList(const EventFolders& folders,
                                 const std::vector<std::string>& texts) {
  EventList list;
  for (const std::string& text : texts) {
    TRY_ASSIGN(const std::vector<EventListItem> items, SplitGroups(text));
    for (const EventListItem& item : items) TRY(AddItem(folders, item, list));
  }
  return list;
}

}  // namespace stackreel::record
