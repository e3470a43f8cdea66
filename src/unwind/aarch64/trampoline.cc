#include "unwind/aarch64/trampoline.h"

#include <string_view>

#include "base/pointer_code.h"
#include "unwind/aarch64/code_bytes.h"

namespace stackreel::unwind::aarch64 {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kCode = "\x68\x11\x80\xd2\x01\0\0\xd4"sv;  // mov x8, #139; svc #0
constexpr int32_t kReserved = 128 + 176 + 288;
constexpr uint32_t kFpsimdMagic = 0x46508001, kFpsimdSize = 0x210;

}  // namespace

bool IsTrampoline(const UnwindModule& module, Svma pc, bool exact) {
  for (size_t back = 0; back <= (exact ? kCode.size() : 0); back += kInstructionSize) {
    if (AsText(module.BytesAt(pc - back)).starts_with(kCode)) return true;
  }
  return false;
}

bool IsSignalFrame(const UnwindInput& input, uint64_t sp) {
  uint32_t magic = 0;
  uint32_t size = 0;
  uint64_t interrupted_sp = 0;
  uint64_t pc = 0;
  const StackView& stack = input.stack;
  if (sp % 16 != 0 || !stack.Read32(sp + kReserved, magic) || magic != kFpsimdMagic ||
      !stack.Read32(sp + kReserved + 4, size) || size != kFpsimdSize ||
      !stack.Read64(sp + kSavedSp, interrupted_sp) || !stack.Read64(sp + kSavedPc, pc)) {
    return false;
  }
  const UnwindMapping* mapping = input.maps->Find(StripCode(pc, input.code_mask));
  return interrupted_sp % 16 == 0 && mapping != nullptr && mapping->executable;
}

}  // namespace stackreel::unwind::aarch64
