#include "tracer/unfit_function.h"

#include <algorithm>
#include <array>

namespace stackreel::tracer {
namespace {

// Functions that cannot be called from a stub, which is what happens to a function that is
// recorded.
struct UnfitName {
  std::string_view name;
  const char* why;
};
constexpr const char* kTwice = "it returns twice";
constexpr const char* kV8Code = "V8 runs it as code of its own";
constexpr const char* kV8Callee = "V8 looks for its return address";
constexpr const char* kLooksAtCaller = "it looks at its caller's address";
constexpr std::array kUnfit = std::to_array<UnfitName>({
    // The second return would find the first one's call.
    {"setjmp", kTwice},
    {"_setjmp", kTwice},
    {"sigsetjmp", kTwice},
    {"__sigsetjmp", kTwice},
    {"getcontext", kTwice},
    {"__getcontext", kTwice},
    {"swapcontext", kTwice},
    {"__swapcontext", kTwice},
    {"vfork", kTwice},
    {"__vfork", kTwice},
    {"__libc_vfork", kTwice},
    {"clone", kTwice},
    {"__clone", kTwice},
    {"__clone_internal", kTwice},
    {"clone3", kTwice},
    {"__clone3", kTwice},
    // No return address is at the top of the stack.
    {"_start", kNotCalled},
    {"_dl_start", kNotCalled},
    {"_dl_start_user", kNotCalled},
    {"__restore_rt", kNotCalled},
    {"__start_context", kNotCalled},
    {"__longjmp", kNotCalled},
    {"_dl_runtime_resolve", kNotCalled},
    {"_dl_runtime_resolve_fxsave", kNotCalled},
    {"_dl_runtime_resolve_xsave", kNotCalled},
    {"_dl_runtime_resolve_xsavec", kNotCalled},
    {"_dl_runtime_profile_sse", kNotCalled},
    {"_dl_runtime_profile_avx", kNotCalled},
    {"_dl_runtime_profile_avx512", kNotCalled},
    {"mcount", kLooksAtCaller},
    {"_mcount", kLooksAtCaller},
    {"__fentry__", kLooksAtCaller},
    {"uw_init_context", kLooksAtCaller},
    {"uw_init_context_1", kLooksAtCaller},
    {"dlsym", kLooksAtCaller},
    {"dlvsym", kLooksAtCaller},
    {"dlopen", kLooksAtCaller},
    {"dlmopen", kLooksAtCaller},
    {"dl_iterate_phdr", kLooksAtCaller},
    {"_dl_iterate_phdr", kLooksAtCaller},
    {"__dl_iterate_phdr", kLooksAtCaller},
    // What LLVM's unwinder and libunwind begin with: where they were called from, and the registers
    // there.
    {"unw_getcontext", kLooksAtCaller},
    {"__unw_getcontext", kLooksAtCaller},
    {"_Ux86_64_getcontext", kLooksAtCaller},
    {"_x86_64_getcontext", kLooksAtCaller},
    // They take all registers from a context, and go on there.
    {"__libunwind_Registers_x86_64_jumpto", kNotCalled},
    {"_Ux86_64_setcontext", kNotCalled},
    {"_x86_64_setcontext", kNotCalled},
    {"__morestack", kNotCalled},
    {"__morestack_non_split", kNotCalled},
});

// A copy that a compiler made for some of the callers does what the function does.
std::string_view WithoutCopy(std::string_view name) {
  for (const std::string_view mark : {".constprop.", ".isra.", ".part.", ".lto_priv."}) {
    name = name.substr(0, name.find(mark));
  }
  return name;
}

// V8 (Node.js, Chromium) walks the frames of JavaScript itself, to collect garbage and to throw. It
// takes a frame's code from its return address, and ends the program where that is not its own.
// - Builtins_*: its compiled code. It keeps no stack by the ABI, and the return addresses of calls
//   from JavaScript are among those looked for.
// - What that code calls, so that the return address ends a frame of it: builtins and runtime
//   functions in C++, (int, Address*, Isolate*); callbacks of the embedder, which take a
//   FunctionCallbackInfo<> or PropertyCallbackInfo<>; and the guard of compiled regular
//   expressions, which is given the place of its own return address.
const char* WhyUnfitForV8(std::string_view name) {
  if (name.starts_with("Builtins_")) return kV8Code;
  if (!name.starts_with("_Z")) return nullptr;
  const bool is_runtime =
      name.starts_with("_ZN2v88internal") && name.ends_with("EiPmPNS0_7IsolateE");
  // In v8:: itself and, by another substitution, elsewhere.
  const bool is_callback =
      name.contains("20FunctionCallbackInfoI") || name.contains("20PropertyCallbackInfoI");
  const bool is_guard = name.contains("MacroAssembler") && name.contains("20CheckStackGuardStateE");
  return is_runtime || is_callback || is_guard ? kV8Callee : nullptr;
}

}  // namespace

const char* WhyUnfitName(std::string_view name) {
  const auto* const at = std::ranges::find(kUnfit, WithoutCopy(name), &UnfitName::name);
  return at != kUnfit.end() ? at->why : WhyUnfitForV8(name);
}

}  // namespace stackreel::tracer
