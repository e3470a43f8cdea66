#include "analyze/chain_splice.h"

#include <gtest/gtest.h>

#include <vector>

namespace stackreel::analyze {
namespace {

using Chain = std::vector<uint64_t>;

// The whole chain, after splicing.
Chain Spliced(Chain unwound, const Chain& chain) {
  const auto splice = FindSplice(unwound, chain);
  if (!splice) return unwound;
  unwound.resize(splice->keep);
  unwound.insert(unwound.end(), chain.begin() + static_cast<std::ptrdiff_t>(splice->from),
                 chain.end());
  return unwound;
}

TEST(FindSplice, GoesOnBehindTheOutermostFrameThatBothHave) {
  EXPECT_EQ(Spliced({0x10, 0x20, 0x30, 0x40}, {0x10, 0x30, 0x40, 0x50, 0x60}),
            (Chain{0x10, 0x20, 0x30, 0x40, 0x50, 0x60}));
  EXPECT_EQ(Spliced({0x10, 0x20, 0x40, 0x77}, {0x10, 0x30, 0x40, 0x50}),
            (Chain{0x10, 0x20, 0x40, 0x50}));
}

TEST(FindSplice, FramesOfARecursionAreCounted) {
  EXPECT_EQ(Spliced({0x10, 0x20, 0x30, 0x30, 0x30}, {0x10, 0x30, 0x30, 0x30, 0x30, 0x30, 0x50}),
            (Chain{0x10, 0x20, 0x30, 0x30, 0x30, 0x30, 0x30, 0x50}));
  // Two functions by turns.
  EXPECT_EQ(Spliced({0x10, 0x30, 0x40, 0x30}, {0x10, 0x30, 0x40, 0x30, 0x40, 0x50}),
            (Chain{0x10, 0x30, 0x40, 0x30, 0x40, 0x50}));
  // The chain lacks one of them: it goes on behind those it has.
  EXPECT_EQ(Spliced({0x10, 0x30, 0x30, 0x30}, {0x10, 0x30, 0x30, 0x50}),
            (Chain{0x10, 0x30, 0x30, 0x50}));
}

TEST(FindSplice, NothingToAdd) {
  EXPECT_FALSE(FindSplice(Chain{0x10, 0x20}, Chain{0x10, 0x91, 0x92}));  // only the sampled pc
  EXPECT_FALSE(FindSplice(Chain{0x10, 0x20}, Chain{0x10, 0x20}));
  EXPECT_FALSE(FindSplice(Chain{0x10, 0x20}, Chain{}));
  EXPECT_FALSE(FindSplice(Chain{}, Chain{0x10}));
}

}  // namespace
}  // namespace stackreel::analyze
