#include "unwind/x86_64/code_bytes.h"

#include <algorithm>
#include <array>

namespace stackreel::unwind::x86_64 {
namespace {

bool StartsWith(ByteView bytes, std::initializer_list<uint8_t> prefix) {
  return bytes.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), bytes.begin());
}

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

std::optional<unsigned> ReturnAddressOffset(ByteView code, ByteView before, unsigned word_size) {
  // mov %rsp,%rbp in its two forms, behind push %rbp.
  ByteView plain = code;
  if (word_size == 8 && StartsWith(code, {0x48})) plain = code.subspan(1);
  const bool sets_frame = StartsWith(plain, {0x89, 0xe5}) || StartsWith(plain, {0x8b, 0xec});
  if (sets_frame && !before.empty() && before.back() == 0x55) return word_size;

  if (StartsWith(code, {0xf3, 0x0f, 0x1e, 0xfa}) || StartsWith(code, {0xf3, 0x0f, 0x1e, 0xfb})) {
    return 0;  // endbr: an entry
  }
  if (StartsWith(code, {0x55}) || StartsWith(code, {0xc3})) return 0;  // push %rbp; ret
  if (StartsWith(code, {0xf2})) code = code.subspan(1);                // bnd
  // ff /4 with a 32-bit displacement: rip-relative or absolute, or from %ebx (32-bit PIC).
  if (StartsWith(code, {0xff, 0x25}) || StartsWith(code, {0xff, 0xa3})) return 0;
  return std::nullopt;
}

}  // namespace stackreel::unwind::x86_64
