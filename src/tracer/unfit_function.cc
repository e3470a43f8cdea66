#include "tracer/unfit_function.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <system_error>

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
constexpr std::string_view kV8Runtime = "iPmPNS0_7IsolateE";

bool IsV8Callee(std::string_view name) {
  if (!name.starts_with("_Z")) return false;
  const bool is_runtime = name.starts_with("_ZN2v88internal") && name.ends_with(kV8Runtime) &&
                          name[name.size() - kV8Runtime.size() - 1] == 'E';
  // In v8:: itself and, by another substitution, elsewhere.
  const bool is_callback =
      name.contains("20FunctionCallbackInfoI") || name.contains("20PropertyCallbackInfoI");
  const bool is_guard = name.contains("MacroAssembler") && name.contains("20CheckStackGuardStateE");
  return is_runtime || is_callback || is_guard;
}

// What follows the name in _Z[L]<length><name> or _ZN([L]<length><name>)*E; nothing for others,
// which templates and operators are among: where the parameters begin is not as plain there.
std::optional<std::string_view> ParametersOf(std::string_view mangled) {
  if (!mangled.starts_with("_Z")) return std::nullopt;
  mangled.remove_prefix(2);
  const bool nested = mangled.starts_with('N');
  if (nested) mangled.remove_prefix(1);
  do {
    if (mangled.starts_with('L')) mangled.remove_prefix(1);
    size_t length = 0;
    const auto [end, error] =
        std::from_chars(mangled.data(), mangled.data() + mangled.size(), length);
    mangled.remove_prefix(static_cast<size_t>(end - mangled.data()));
    if (error != std::errc() || length > mangled.size()) return std::nullopt;
    mangled.remove_prefix(length);
  } while (nested && !mangled.empty() && mangled[0] != 'E');
  if (nested && mangled.empty()) return std::nullopt;
  if (nested) mangled.remove_prefix(1);
  return mangled;
}

}  // namespace

const char* WhyUnfitName(std::string_view name) {
  const auto* const at = std::ranges::find(kUnfit, WithoutCopy(name), &UnfitName::name);
  if (at != kUnfit.end()) return at->why;
  if (name.starts_with("Builtins_")) return kV8Code;
  return IsV8Callee(name) && !MustKeepReturnAddress(name) ? kV8Callee : nullptr;
}

bool MustKeepReturnAddress(std::string_view name) {
  if (!IsV8Callee(name)) return false;
  auto rest = ParametersOf(name);
  if (!rest) return false;
  if (*rest == kV8Runtime) return true;
  // A reference to v8::FunctionCallbackInfo<v8::Value>: v8 itself is S_ within v8::, and elsewhere
  // S0_ to SZ_ at its second mention.
  constexpr std::string_view kInfo = "20FunctionCallbackInfoINS", kValue = "_5ValueEEE";
  for (const std::string_view v8 : {"RKN2v8", "RKNS_"}) {
    if (!rest->starts_with(v8)) continue;
    rest->remove_prefix(v8.size());
    return rest->starts_with(kInfo) && rest->ends_with(kValue) &&
           rest->size() <= kInfo.size() + 1 + kValue.size();
  }
  return false;
}

}  // namespace stackreel::tracer
