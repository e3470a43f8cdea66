#include "base/plural.h"

#include <gtest/gtest.h>

namespace stackreel {
namespace {

TEST(Plural, OneIsNotMany) {
  EXPECT_EQ(Plural(0, "call"), "0 calls");
  EXPECT_EQ(Plural(1, "call"), "1 call");
  EXPECT_EQ(Plural(2, "call"), "2 calls");
  EXPECT_EQ(PluralWere(1, "call"), "1 call was");
  EXPECT_EQ(PluralWere(0, "call"), "0 calls were");
}

}  // namespace
}  // namespace stackreel
