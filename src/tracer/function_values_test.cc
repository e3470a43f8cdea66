#include "tracer/function_values.h"

#include <gtest/gtest.h>

#include <utility>

namespace stackreel::tracer {
namespace {

// The module is stripped: what -P names by its place, -A and -R do too.
TEST(FunctionValues, MatchesAFunctionWithoutASymbolByItsPlace) {
  auto choice = ParseValueChoice("func_1139@arg1/i32", /*results=*/false);
  ASSERT_TRUE(choice.has_value());
  ValueOptions options;
  options.choices.push_back(std::move(*choice));
  const FunctionValues values(options, [](const tracedata::TraceFact&) { return Status(); });
  TargetModule program;
  program.is_program = true;
  ModuleFunction function;
  function.start = Svma(0x1139);
  EXPECT_TRUE(values.Matches(0, program, function));
  function.start = Svma(0x1140);
  EXPECT_FALSE(values.Matches(0, program, function));
}

}  // namespace
}  // namespace stackreel::tracer
