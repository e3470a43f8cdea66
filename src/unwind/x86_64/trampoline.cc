#include "unwind/x86_64/trampoline.h"

#include <algorithm>
#include <initializer_list>

namespace stackreel::unwind::x86_64 {
namespace {

bool StartsWith(ByteView bytes, std::initializer_list<uint8_t> prefix) {
  return bytes.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), bytes.begin());
}

// asm/ucontext.h: uc_flags 8, uc_link 8, uc_stack 24, then r8-r15, rdi, rsi, rbp, rbx, rdx, rax,
// rcx, rsp, rip, 8 bytes each.
constexpr SavedRegisters<Cpu64> Layout64() {
  constexpr int kContext = 40;
  constexpr int kOrder[] = {13, 12, 14, 11, 9, 8, 10, 15, 0, 1, 2, 3, 4, 5, 6, 7, 16};
  SavedRegisters<Cpu64> layout{};
  for (unsigned reg = 0; reg < layout.size(); ++reg) {
    layout[reg] = static_cast<int16_t>(kContext + 8 * kOrder[reg]);
  }
  return layout;
}

// asm/sigcontext.h, struct sigcontext_32: gs, fs, es, ds (4 each), di, si, bp, sp, bx, dx, cx, ax,
// trapno, err, ip.
constexpr SavedRegisters<Cpu32> Layout32(int context) {
  constexpr int kOffsets[] = {44, 40, 36, 32, 28, 24, 20, 16, 56};
  SavedRegisters<Cpu32> layout{};
  for (unsigned reg = 0; reg < layout.size(); ++reg) {
    layout[reg] = static_cast<int16_t>(context + kOffsets[reg]);
  }
  return layout;
}

constexpr auto kRt64 = Layout64();
// sig 4, &info 4, &uc 4, siginfo 128; ucontext: uc_flags 4, uc_link 4, uc_stack 12.
constexpr auto kRt32 = Layout32(12 + 128 + 20);
constexpr auto kOld32 = Layout32(4);  // sig 4, then the context
constexpr auto kOld32Popped = Layout32(0);

}  // namespace

template <>
const SavedRegisters<Cpu64>* FindTrampoline<Cpu64>(ByteView code) {
  const bool found = StartsWith(code, {0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05}) ||
                     StartsWith(code, {0xb8, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05});
  return found ? &kRt64 : nullptr;
}

template <>
const SavedRegisters<Cpu32>* FindTrampoline<Cpu32>(ByteView code) {
  if (StartsWith(code, {0xb8, 0xad, 0x00, 0x00, 0x00, 0xcd, 0x80})) return &kRt32;
  if (StartsWith(code, {0x58, 0xb8, 0x77, 0x00, 0x00, 0x00, 0xcd, 0x80})) return &kOld32;
  if (StartsWith(code, {0xb8, 0x77, 0x00, 0x00, 0x00, 0xcd, 0x80})) return &kOld32Popped;
  return nullptr;
}

}  // namespace stackreel::unwind::x86_64
