// What every report states about the recording itself.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "profile/profile.h"

namespace stackreel::views {

// Of a recording whose recorder did not end.
inline constexpr std::string_view kUnfinishedText =
    "Unfinished recording: its recorder was killed or the machine went down, the last moments are "
    "missing";

// Samples, lost ones, complete stacks, unresolved frames and why, damage: lines without a mark in
// front.
std::vector<std::string> FactsLines(const profile::Profile::Facts& facts);
// "name  count" of every counter.
std::vector<std::string> CounterLines(const Counters& counters);

}  // namespace stackreel::views
