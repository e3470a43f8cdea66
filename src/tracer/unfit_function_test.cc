#include "tracer/unfit_function.h"

#include <gtest/gtest.h>

namespace stackreel::tracer {
namespace {

TEST(UnfitFunction, OrdinaryFunctionsAreFit) {
  for (const char* const name :
       {"", "main", "malloc", "uw_update_context.isra.0", "builtins", "Builtins",
        "_ZN2v88internal7Isolate4InitEv", "_ZN2v88internal9LogEventsEiPmPNS0_4HeapE",
        "_ZN4node3fs4OpenEiPmPNS0_7IsolateE"}) {
    EXPECT_EQ(WhyUnfitName(name), nullptr) << name;
  }
}

TEST(UnfitFunction, FunctionsThatReturnTwiceOrLookAtTheirCaller) {
  for (const char* const name :
       {"setjmp", "vfork", "_start", "dlsym", "__fentry__", "uw_init_context_1.constprop.0",
        "__unw_getcontext", "dl_iterate_phdr"}) {
    EXPECT_NE(WhyUnfitName(name), nullptr) << name;
  }
}

// Names from Node.js 20: with one of these patched it ended by SIGILL.
TEST(UnfitFunction, WhatV8FindsOnTheStack) {
  for (const char* const name :
       {"Builtins_CEntry_Return1_ArgvOnStack_NoBuiltinExit",
        "_ZN2v88internal18Runtime_StackGuardEiPmPNS0_7IsolateE",
        "_ZN2v88internal21Builtin_HandleApiCallEiPmPNS0_7IsolateE",
        "_ZN4node2fsL4OpenERKN2v820FunctionCallbackInfoINS1_5ValueEEE",
        "_ZN4nodeL9EnvGetterEN2v85LocalINS0_4NameEEERKNS0_20PropertyCallbackInfoINS0_5ValueEEE",
        "_ZN2v88internal23RegExpMacroAssemblerX6420CheckStackGuardStateEPmmm"}) {
    EXPECT_NE(WhyUnfitName(name), nullptr) << name;
  }
}

}  // namespace
}  // namespace stackreel::tracer
