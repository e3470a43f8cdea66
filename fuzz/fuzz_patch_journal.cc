// Any bytes as a list of patch sites: what is read is whole, can be planned with, and is written as
// it was read.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "patch/journal.h"
#include "patch/plan.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace patch = stackreel::patch;
  const auto decoded = patch::DecodeSites({data, size});
  if (!decoded) return 0;
  std::vector<const patch::Site*> sites;
  for (const patch::Site& site : *decoded) {
    CHECK(patch::CheckSite(site));
    sites.push_back(&site);
  }
  for (const patch::Direction direction : {patch::Direction::kPatch, patch::Direction::kUnpatch}) {
    for (const patch::SwitchMode mode : {patch::SwitchMode::kTrap, patch::SwitchMode::kStopped}) {
      const patch::Plan plan = patch::MakePlan(sites, direction, mode);
      CHECK(!patch::ToString(plan, sites).empty());
    }
  }
  const auto again = patch::DecodeSites(patch::EncodeSites(sites));
  CHECK(again && *again == *decoded);
  return 0;
}
