// Functions that must not be recorded, whatever their code looks like: a recorded function is
// called from a stub, and another return address stands on the stack meanwhile.
#pragma once

#include <string_view>

namespace stackreel::tracer {

inline constexpr const char* kNotCalled = "it is not called as functions are";

// Why the function of this name (as in the symbol table) cannot be recorded; null if it can.
[[nodiscard]] const char* WhyUnfitName(std::string_view name);

// Whether its caller, or who walks its caller's stack, looks for the return address where the call
// has put it: agent::StubKind::kInnerCall leaves it there. All of its arguments are in registers.
[[nodiscard]] bool MustKeepReturnAddress(std::string_view name);

}  // namespace stackreel::tracer
