#include "unwind/x86_64/trampoline.h"

#include <array>
#include <string_view>

namespace stackreel::unwind::x86_64 {
namespace {

using namespace std::string_view_literals;

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

// A trampoline's code, and where in it its instructions (and its end) are.
struct Pattern {
  std::string_view code;
  std::array<uint8_t, 3> places;
};
constexpr Pattern kRt64Long = {"\x48\xc7\xc0\x0f\0\0\0\x0f\x05"sv, {0, 7, 9}};
constexpr Pattern kRt64Short = {"\xb8\x0f\0\0\0\x0f\x05"sv, {0, 5, 7}};
constexpr Pattern kRt32Code = {"\xb8\xad\0\0\0\xcd\x80"sv, {0, 5, 7}};
constexpr Pattern kOld32Pop = {"\x58\xb8\x77\0\0\0\xcd\x80"sv, {0, 0, 0}};
constexpr Pattern kOld32Code = {"\xb8\x77\0\0\0\xcd\x80"sv, {0, 5, 7}};

bool IsAt(const Pattern& pattern, const UnwindModule& module, Svma pc, bool exact) {
  for (const uint8_t place : pattern.places) {
    if (place != 0 && !exact) continue;
    if (AsText(module.BytesAt(pc - place)).starts_with(pattern.code)) return true;
  }
  return false;
}

}  // namespace

template <>
const SavedRegisters<Cpu64>* FindTrampoline<Cpu64>(const UnwindModule& module, Svma pc,
                                                   bool exact) {
  const bool found = IsAt(kRt64Long, module, pc, exact) || IsAt(kRt64Short, module, pc, exact);
  return found ? &kRt64 : nullptr;
}

template <>
const SavedRegisters<Cpu32>* FindTrampoline<Cpu32>(const UnwindModule& module, Svma pc,
                                                   bool exact) {
  if (IsAt(kRt32Code, module, pc, exact)) return &kRt32;
  if (IsAt(kOld32Pop, module, pc, exact)) return &kOld32;
  if (IsAt(kOld32Code, module, pc, exact)) return &kOld32Popped;
  return nullptr;
}

}  // namespace stackreel::unwind::x86_64
