#include "tracer/needed_functions.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace stackreel::tracer {
namespace {

using agent::StubKind;

ModuleFunction Function(std::string_view name, std::vector<std::string_view> others = {}) {
  ModuleFunction function;
  function.name = name;
  function.others = std::move(others);
  return function;
}

bool MayHaveNeededIn(std::string path, bool is_program = false) {
  TargetModule module;
  module.path = std::move(path);
  module.is_program = is_program;
  return MayHaveNeeded(module);
}

TEST(NeededFunctions, EachHasItsStub) {
  EXPECT_EQ(StubNeededAt(Function("longjmp")), StubKind::kBeforeUnwind);
  EXPECT_EQ(StubNeededAt(Function("__cxa_begin_catch")), StubKind::kAfterCatch);
  EXPECT_EQ(StubNeededAt(Function("_exit")), StubKind::kBeforeEnd);
  EXPECT_EQ(StubNeededAt(Function("execve")), StubKind::kBeforeExec);
  EXPECT_EQ(StubNeededAt(Function("exit")), std::nullopt);
}

TEST(NeededFunctions, SomeAreOnlyForSomeTraces) {
  constexpr NeededFor kTraps{.traps = true};
  EXPECT_EQ(StubNeededAt(Function("sigaction")), std::nullopt);
  EXPECT_EQ(StubNeededAt(Function("__sigaction", {"sigaction"}), kTraps),
            StubKind::kBeforeSigaction);
  EXPECT_EQ(StubNeededAt(Function("pthread_sigmask")), std::nullopt);
  EXPECT_EQ(StubNeededAt(Function("pthread_sigmask"), kTraps), StubKind::kBeforeSigmask);
}

TEST(NeededFunctions, WhatMayLimitTheAgentsOwnSystemCallsAlwaysIs) {
  EXPECT_EQ(StubNeededAt(Function("prctl")), StubKind::kBeforePrctl);
  EXPECT_EQ(StubNeededAt(Function("syscall")), StubKind::kBeforeSyscall);
}

TEST(NeededFunctions, EveryNameCounts) {
  EXPECT_EQ(StubNeededAt(Function("__libc_siglongjmp", {"_longjmp", "longjmp"})),
            StubKind::kBeforeUnwind);
}

TEST(NeededFunctions, AreInTheProgramAndTheRuntimesLibraries) {
  for (const char* const path :
       {"/lib/libc.so.6", "/lib/libc-2.31.so", "/lib/libgcc_s.so.1", "/lib/ld-musl-x86_64.so.1"}) {
    EXPECT_TRUE(MayHaveNeededIn(path)) << path;
  }
  EXPECT_TRUE(MayHaveNeededIn("/bin/anything", /*is_program=*/true));
  for (const char* const path : {"/lib/libcrypto.so.3", "/lib/libc", "/libc.so/libm.so.6"}) {
    EXPECT_FALSE(MayHaveNeededIn(path)) << path;
  }
}

}  // namespace
}  // namespace stackreel::tracer
