#include "unwind/aarch64/fallback.h"

#include "base/pointer_code.h"
#include "unwind/aarch64/code_bytes.h"
#include "unwind/code_window.h"

namespace stackreel::unwind::aarch64 {

bool IsReturnAddress(const UnwindMaps& maps, uint64_t avma) {
  if (avma == 0 || avma % kInstructionSize != 0) return false;
  const UnwindMapping* mapping = maps.Find(avma - 1);
  if (mapping == nullptr || !mapping->executable) return false;
  return IsAfterCall(CodeBefore(maps, avma, kInstructionSize));
}

std::optional<FrameRecord> ReadFrameRecord(const UnwindInput& input, uint64_t sp_floor,
                                           uint64_t fp) {
  if (fp < sp_floor || fp % 8 != 0) return std::nullopt;
  FrameRecord record;
  if (!input.stack.Read64(fp, record.fp) || !input.stack.Read64(fp + 8, record.pc)) {
    return std::nullopt;
  }
  record.pc = StripCode(record.pc, input.code_mask);
  if (record.fp != 0 && record.fp <= fp) return std::nullopt;
  if (record.pc != 0 && !IsReturnAddress(*input.maps, record.pc)) return std::nullopt;
  return record;
}

std::optional<ScannedFrame> ScanCode(const UnwindModule& module, Svma svma) {
  const CodeWindow window = CodeAround(module, svma);
  if (window.code.empty()) return std::nullopt;
  return ScanToReturn(window.code, window.at);
}

}  // namespace stackreel::unwind::aarch64
