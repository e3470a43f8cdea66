#include "analyze/chain_splice.h"

#include <algorithm>

namespace stackreel::analyze {
namespace {

// The index of the n-th (from 1) `value`, or nothing.
std::optional<size_t> FindNth(std::span<const uint64_t> values, uint64_t value, size_t n) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] == value && --n == 0) return i;
  }
  return std::nullopt;
}

}  // namespace

std::optional<ChainSplice> FindSplice(std::span<const uint64_t> unwound,
                                      std::span<const uint64_t> chain) {
  for (size_t keep = unwound.size(); keep > 1; --keep) {
    const uint64_t address = unwound[keep - 1];
    const auto nth = std::ranges::count(unwound.first(keep), address);
    const auto same = FindNth(chain, address, static_cast<size_t>(nth));
    if (!same) continue;
    if (*same + 1 == chain.size()) return std::nullopt;
    return ChainSplice{keep, *same + 1};
  }
  return std::nullopt;
}

}  // namespace stackreel::analyze
