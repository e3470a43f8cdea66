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

// Names from Node.js 20: with one of these patched as others are it ended by SIGILL.
TEST(UnfitFunction, WhatV8FindsOnTheStack) {
  for (const char* const name :
       {"Builtins_CEntry_Return1_ArgvOnStack_NoBuiltinExit",
        "_ZN4nodeL9EnvGetterEN2v85LocalINS0_4NameEEERKNS0_20PropertyCallbackInfoINS0_5ValueEEE",
        "_ZN2v88internal23RegExpMacroAssemblerX6420CheckStackGuardStateEPmmm",
        // What more is handed over to them may be on the stack.
        "_ZN2v88internal8IteratorE9ArgumentsEiPmPNS0_7IsolateE",
        "_ZN4node6crypto7GetSizeERKN2v820FunctionCallbackInfoINS1_5ValueEEEi",
        "_ZN4node6crypto4SignIiEEvRKN2v820FunctionCallbackInfoINS1_5ValueEEE",
        "_ZN4node3GetEN2v85LocalINS0_4NameEEERKNS0_20FunctionCallbackInfoINS0_5ValueEEE"}) {
    EXPECT_NE(WhyUnfitName(name), nullptr) << name;
    EXPECT_FALSE(MustKeepReturnAddress(name)) << name;
  }
}

TEST(UnfitFunction, WhatV8FindsAndMayBeLeftThere) {
  for (const char* const name :
       {"_ZN2v88internal18Runtime_StackGuardEiPmPNS0_7IsolateE",
        "_ZN2v88internalL21Builtin_HandleApiCallEiPmPNS0_7IsolateE",
        "_ZN4node2fsL4OpenERKN2v820FunctionCallbackInfoINS1_5ValueEEE",
        "_ZN2v818WebAssemblyCompileERKNS_20FunctionCallbackInfoINS_5ValueEEE",
        "_ZL4ReadRKN2v820FunctionCallbackInfoINS_5ValueEEE"}) {
    EXPECT_EQ(WhyUnfitName(name), nullptr) << name;
    EXPECT_TRUE(MustKeepReturnAddress(name)) << name;
  }
  for (const char* const name : {"", "_Z", "_ZN", "_ZN9", "_Z99main", "main", "_ZN2v88internalE"}) {
    EXPECT_FALSE(MustKeepReturnAddress(name)) << name;
  }
}

}  // namespace
}  // namespace stackreel::tracer
