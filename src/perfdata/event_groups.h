// Groups of events: the GROUP_DESC feature.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace stackreel::perfdata {

// Events that count together or not at all. GROUP_DESC has those of two events and more.
struct EventGroup {
  std::string name;                  // mostly empty
  uint32_t leader = 0, members = 0;  // index of the leader among the events; how many with it
};

std::vector<uint8_t> EncodeGroupDesc(const std::vector<EventGroup>& groups, Endian endian);

}  // namespace stackreel::perfdata
