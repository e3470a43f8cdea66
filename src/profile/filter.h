// Which samples of a profile count.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "profile/profile.h"

namespace stackreel::profile {

// Empty lists let all pass. Names are patterns, in which '*' stands for any text.
struct Filter {
  std::vector<std::string> comms;
  // A stack passes if one of its frames is in one of `dsos` and named as one of `symbols`.
  std::vector<std::string> dsos, symbols;
  std::vector<uint32_t> pids, tids, cpus;
  std::vector<uint32_t> events;
  // Nanoseconds, both ends included. Only for profiles that keep the times of their samples.
  uint64_t time_start = 0, time_end = UINT64_MAX;
};

// Whether `text` is as `pattern` says; '*' stands for any text, all else for itself.
bool MatchesPattern(std::string_view text, std::string_view pattern);
// Whether one of the patterns does; an empty list matches nothing.
bool MatchesAny(std::string_view text, const std::vector<std::string>& patterns);

// The indices of the samples that pass, ascending.
std::vector<uint32_t> SelectSamples(const Profile& profile, const Filter& filter);

}  // namespace stackreel::profile
