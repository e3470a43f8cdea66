#include "tracer/function_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>
#include <utility>

namespace stackreel::tracer {
namespace {

PatternChoice Named(std::string_view text, Choice choice) {
  auto pattern = FunctionPattern::Parse(text);
  EXPECT_TRUE(pattern.has_value()) << text;
  return {std::move(*pattern), choice};
}

TargetModule Module(std::string path, bool is_program) {
  TargetModule module;
  module.path = std::move(path);
  module.is_program = is_program;
  return module;
}

ModuleFunction Function(std::string_view name, std::vector<std::string_view> others = {}) {
  return {.start = Svma(0x1139),
          .code = {},
          .before = {},
          .after = {},
          .name = name,
          .others = std::move(others)};
}

class ChoiceOfTest : public testing::Test {
 protected:
  Choice Of(const ModuleFunction& function, const TargetModule& module = Module("/bin/p", true)) {
    matched_.resize(patterns_.size());
    return ChoiceOf(patterns_, PatternsFor(patterns_, module), function, matched_);
  }
  std::vector<PatternChoice> patterns_;
  std::vector<bool> matched_;
};

TEST_F(ChoiceOfTest, TheLastPatternThatMatchesDecides) {
  patterns_ = {Named(".", Choice::kPatch), Named("debug_*", Choice::kUnpatch),
               Named("debug_dump", Choice::kPatch)};
  EXPECT_EQ(Of(Function("work")), Choice::kPatch);
  EXPECT_EQ(Of(Function("debug_log")), Choice::kUnpatch);
  EXPECT_EQ(Of(Function("debug_dump")), Choice::kPatch);
  EXPECT_EQ(Of(Function("work"), Module("/lib/libc.so.6", false)), Choice::kNotNamed);
}

TEST_F(ChoiceOfTest, PatternsToUnpatchPatchNothing) {
  patterns_ = {Named("debug_*", Choice::kUnpatch)};
  EXPECT_EQ(Of(Function("work")), Choice::kNotNamed);
}

TEST_F(ChoiceOfTest, WhatIsOverruledHasMatched) {
  patterns_ = {Named("work", Choice::kPatch), Named("play", Choice::kPatch),
               Named(".", Choice::kUnpatch)};
  EXPECT_EQ(Of(Function("work")), Choice::kUnpatch);
  EXPECT_THAT(matched_, testing::ElementsAre(true, false, true));
}

TEST_F(ChoiceOfTest, EveryNameCounts) {
  patterns_ = {Named("malloc", Choice::kPatch)};
  EXPECT_EQ(Of(Function("__libc_malloc", {"__malloc", "malloc"})), Choice::kPatch);
}

TEST_F(ChoiceOfTest, WithoutASymbolThePlaceIsTheName) {
  patterns_ = {Named("func_1139", Choice::kPatch)};
  EXPECT_EQ(Of(Function("")), Choice::kPatch);
}

TEST(TraceName, IsTheOneMeantForOthers) {
  EXPECT_EQ(TraceName(Function("__libc_malloc", {"__malloc", "malloc@@GLIBC_2.2.5"})), "malloc");
  EXPECT_EQ(TraceName(Function("_ZN1a1fEv", {"f"})), "_ZN1a1fEv");
  EXPECT_EQ(TraceName(Function("")), "func_1139");
}

TEST(TraceName, IsTheOneThatThePatternMatches) {
  const ModuleFunction open = Function("open64", {"__open64", "__open", "open@@GLIBC_2.2.5"});
  EXPECT_EQ(TraceName(open), "open");
  const auto name_of = [](const ModuleFunction& function, std::string_view text) {
    const PatternChoice named = Named(text, Choice::kPatch);
    return TraceName(function, &named.pattern);
  };
  EXPECT_EQ(name_of(open, "open"), "open");
  EXPECT_EQ(name_of(open, "open64"), "open64");
  EXPECT_EQ(name_of(open, "__open*"), "__open");
  EXPECT_EQ(name_of(open, "*"), "open");
  EXPECT_EQ(name_of(Function("bcmp", {"memcmp"}), "memc*"), "memcmp");
}

TEST(NothingMatches, NamesTheModulesThereAre) {
  auto pattern = FunctionPattern::Parse("f@libm");
  std::vector<TargetModule> modules;
  modules.push_back(Module("/bin/p", true));
  modules.push_back(Module("/lib/libc.so.6", false));
  modules.push_back(Module("/lib/gone.so", false));
  modules.back().is_mapped = false;
  const Error error = NothingMatches(*pattern, modules);
  EXPECT_EQ(error.kind, ErrorKind::kNotFound);
  EXPECT_EQ(error.message, "pattern 'f@libm': no module of that name is mapped");
  EXPECT_EQ(error.cure, "modules there are: p libc.so.6");
}

}  // namespace
}  // namespace stackreel::tracer
