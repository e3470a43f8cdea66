// Two profiles side by side.
#pragma once

#include <cstdint>
#include <vector>

#include "profile/profile.h"

namespace stackreel::profile {

// One profile with the samples of both: those of `before` as event 0, those of `after` as event 1.
// Frames are told apart by function and module, not by line or address: binaries may differ.
Profile JoinForDiff(const Profile& before, const std::vector<uint32_t>& before_samples,
                    const Profile& after, const std::vector<uint32_t>& after_samples);

}  // namespace stackreel::profile
