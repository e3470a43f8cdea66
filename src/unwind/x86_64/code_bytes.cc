#include "unwind/x86_64/code_bytes.h"

#include <algorithm>

namespace stackreel::unwind::x86_64 {
namespace {

// Bytes of `ff /2` with this ModRM (and SIB, which follows it): 0 if it is no near call.
size_t IndirectCallSize(uint8_t modrm, uint8_t sib) {
  if ((modrm & 0x38) != 0x10) return 0;
  const unsigned mod = modrm >> 6;
  const unsigned rm = modrm & 7;
  if (mod == 3) return 2;
  size_t size = rm == 4 ? 3 : 2;
  if (mod == 1) size += 1;
  const bool wide_base = mod == 0 && (rm == 5 || (rm == 4 && (sib & 7) == 5));
  if (mod == 2 || wide_base) size += 4;
  return size;
}

}  // namespace

bool IsAfterCall(ByteView before) {
  const size_t n = before.size();
  if (n < 2) return true;
  if (n >= 5 && before[n - 5] == 0xe8) return true;  // call rel32
  for (size_t size = 2; size <= std::min(n, kLongestCall); ++size) {
    const uint8_t* p = before.data() + (n - size);
    if (p[0] == 0xff && IndirectCallSize(p[1], size > 2 ? p[2] : 0) == size) return true;
  }
  return n < kLongestCall && n < 5;
}

}  // namespace stackreel::unwind::x86_64
