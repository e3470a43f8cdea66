#include "unwind/x86_64/fallback.h"

#include <algorithm>

#include "unwind/x86_64/code_bytes.h"

namespace stackreel::unwind::x86_64 {

ByteView CodeAt(const UnwindMaps& maps, uint64_t avma) {
  const UnwindMapping* mapping = maps.Find(avma);
  if (mapping == nullptr || mapping->module == nullptr) return {};
  const ByteView bytes = mapping->module->BytesAt(Svma(avma - mapping->bias));
  return bytes.first(std::min<uint64_t>(bytes.size(), mapping->end - avma));
}

ByteView CodeBefore(const UnwindMaps& maps, uint64_t avma, size_t size) {
  for (; size > 0; --size) {
    if (avma < size) continue;
    const ByteView bytes = CodeAt(maps, avma - size);
    if (bytes.size() >= size) return bytes.first(size);
  }
  return {};
}

bool IsReturnAddress(const UnwindMaps& maps, uint64_t avma) {
  if (avma == 0) return false;
  const UnwindMapping* mapping = maps.Find(avma - 1);
  if (mapping == nullptr || !mapping->executable) return false;
  return IsAfterCall(CodeBefore(maps, avma, kLongestCall));
}

template <class Cpu>
std::optional<Caller> FollowFramePointer(const UnwindInput& input, uint64_t sp, uint64_t fp) {
  if (fp < sp || fp % Cpu::kWordSize != 0) return std::nullopt;
  Caller caller;
  if (!ReadWord<Cpu>(input.stack, fp, caller.fp) ||
      !ReadWord<Cpu>(input.stack, fp + Cpu::kWordSize, caller.pc)) {
    return std::nullopt;
  }
  if (caller.fp != 0 && caller.fp <= fp) return std::nullopt;
  if (caller.pc != 0 && !IsReturnAddress(*input.maps, caller.pc)) return std::nullopt;
  caller.sp = fp + 2 * Cpu::kWordSize;
  return caller;
}

template <class Cpu>
std::optional<Caller> FollowStackPointer(const UnwindInput& input, uint64_t pc, uint64_t sp) {
  const ByteView code = CodeAt(*input.maps, pc);
  const auto offset = ReturnAddressOffset(code, CodeBefore(*input.maps, pc, 1), Cpu::kWordSize);
  if (!offset) return std::nullopt;
  Caller caller;
  if (!ReadWord<Cpu>(input.stack, sp + *offset, caller.pc)) return std::nullopt;
  if (!IsReturnAddress(*input.maps, caller.pc)) return std::nullopt;
  caller.sp = sp + *offset + Cpu::kWordSize;
  return caller;
}

template std::optional<Caller> FollowFramePointer<Cpu64>(const UnwindInput&, uint64_t, uint64_t);
template std::optional<Caller> FollowFramePointer<Cpu32>(const UnwindInput&, uint64_t, uint64_t);
template std::optional<Caller> FollowStackPointer<Cpu64>(const UnwindInput&, uint64_t, uint64_t);
template std::optional<Caller> FollowStackPointer<Cpu32>(const UnwindInput&, uint64_t, uint64_t);

}  // namespace stackreel::unwind::x86_64
