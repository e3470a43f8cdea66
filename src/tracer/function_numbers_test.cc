#include "tracer/function_numbers.h"

#include <gtest/gtest.h>

namespace stackreel::tracer {
namespace {

TEST(FunctionNumbers, AreOfTheFileNotOfThePlace) {
  FunctionNumbers numbers;
  const BuildId none;
  EXPECT_EQ(numbers.OfModule("/a.so", 1, none).number, 0U);
  EXPECT_FALSE(numbers.OfModule("/a.so", 1, none).is_new);
  EXPECT_TRUE(numbers.OfModule("/a.so", 2, none).is_new) << "a file that took its place";
  EXPECT_EQ(numbers.OfModule("/b.so", 1, none).number, 2U);
  EXPECT_EQ(numbers.OfFunction(0, Svma(16)).number, 1U) << "0 is no function";
  EXPECT_FALSE(numbers.OfFunction(0, Svma(16)).is_new);
  EXPECT_EQ(numbers.OfFunction(2, Svma(16)).number, 2U);
}

}  // namespace
}  // namespace stackreel::tracer
