// CHECK: an invariant of ours. Input must never be able to reach a failing one.
#pragma once

namespace stackreel {
[[noreturn]] void CheckFailed(const char* expression, const char* file, int line);
}  // namespace stackreel

#define CHECK(expression) \
  ((expression) ? (void)0 : ::stackreel::CheckFailed(#expression, __FILE__, __LINE__))
