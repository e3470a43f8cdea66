// Which events of a profile are meant, and what its user must be told.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/command.h"
#include "profile/profile.h"

namespace stackreel::cli {

// Indices of the events whose names match one of `patterns` ("cycles" also matches "cycles:u");
// none given: none chosen, which a Filter takes as all. kNotFound names the events there are.
Result<std::vector<uint32_t>> ChooseEvents(const profile::Profile& profile,
                                           const std::vector<std::string>& patterns);

// Says on stderr that the recorder did not end.
void WarnOfUnfinished(bool unfinished, const GlobalOptions& global);

// "4 records were lost while recording; 106 samples are here".
std::string LossWarning(uint64_t lost, uint64_t samples);
// Says on stderr what was lost or damaged; gives the exit code.
int WarnOfLoss(const profile::Profile& profile, const GlobalOptions& global);

}  // namespace stackreel::cli
