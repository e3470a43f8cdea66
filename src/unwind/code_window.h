// The bytes of code around an address, as far as files give them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "unwind/unwind.h"

namespace stackreel::unwind {

// Bytes of code in front of `avma`, as many as are known up to `size`.
ByteView CodeBefore(const UnwindMaps& maps, uint64_t avma, size_t size);

// The code of the module's segment from at most 1024 bytes before `svma` to its end; `at` is where
// `svma` is in it. Empty if svma is in no executable segment of the file.
struct CodeWindow {
  ByteView code;
  size_t at = 0;
};
CodeWindow CodeAround(const UnwindModule& module, Svma svma);

}  // namespace stackreel::unwind
