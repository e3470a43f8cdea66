#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace stackreel {

void CheckFailed(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "stackreel: broken invariant: %s (%s:%d)\n", expression, file, line);
  std::abort();
}

}  // namespace stackreel
