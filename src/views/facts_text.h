// What every report states about the recording itself.
#pragma once

#include <string>
#include <vector>

#include "profile/profile.h"

namespace stackreel::views {

// Samples, lost ones, complete stacks, unresolved frames and why, damage: lines without a mark in
// front.
std::vector<std::string> FactsLines(const profile::Profile::Facts& facts);
// "name  count" of every counter.
std::vector<std::string> CounterLines(const Counters& counters);

}  // namespace stackreel::views
