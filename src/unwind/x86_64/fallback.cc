#include "unwind/x86_64/fallback.h"

#include "unwind/code_window.h"
#include "unwind/stack_words.h"
#include "unwind/x86_64/code_bytes.h"

namespace stackreel::unwind::x86_64 {
std::optional<ScannedFrame> ScanCode(const UnwindModule& module, Svma svma, unsigned word_size) {
  const CodeWindow window = CodeAround(module, svma);
  if (window.code.empty()) return std::nullopt;
  return ScanToReturn(window.code, window.at, word_size);
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
  uint64_t caller_fp = 0;
  if (!ReadWord<Cpu>(input.stack, fp, caller_fp) ||
      !ReadWord<Cpu>(input.stack, fp + Cpu::kWordSize, caller.pc)) {
    return std::nullopt;
  }
  if (caller.pc != 0 && !IsReturnAddress(*input.maps, caller.pc)) return std::nullopt;
  // Most code that calls what a JIT made keeps something else in that register.
  const bool is_chained = caller_fp == 0 || caller_fp > fp;
  if (!is_chained && CodeBefore(*input.maps, caller.pc, kLongestCall).size() < kLongestCall) {
    return std::nullopt;
  }
  caller.sp = fp + 2 * Cpu::kWordSize;
  caller.fp = caller_fp;
  return caller;
}

template <class Cpu>
std::optional<Caller> FollowScanned(const UnwindInput& input, const ScannedFrame& scanned,
                                    uint64_t sp, std::optional<uint64_t> fp) {
  const auto address_of = [&](const StackPlace& place) -> std::optional<uint64_t> {
    if (place.from_fp && !fp) return std::nullopt;
    return (place.from_fp ? *fp : sp) + static_cast<uint64_t>(int64_t{place.offset});
  };
  const auto ra_at = address_of(scanned.return_address);
  Caller caller;
  if (!ra_at || *ra_at < sp || !ReadWord<Cpu>(input.stack, *ra_at, caller.pc)) return std::nullopt;
  if (!IsReturnAddress(*input.maps, caller.pc)) return std::nullopt;
  caller.sp = *ra_at + Cpu::kWordSize;
  caller.fp = fp;
  if (scanned.saved_fp) {
    const auto at = address_of(*scanned.saved_fp);
    uint64_t value = 0;
    caller.fp.reset();
    if (at && ReadWord<Cpu>(input.stack, *at, value)) caller.fp = value;
  }
  return caller;
}

template <class Cpu>
std::optional<Caller> FollowInnermostByScan(const UnwindInput& input, uint64_t pc, uint64_t sp,
                                            std::optional<uint64_t> fp) {
  const UnwindMapping* mapping = input.maps->Find(pc);
  if (mapping == nullptr || mapping->module == nullptr) return std::nullopt;
  const auto scanned = ScanCode(*mapping->module, Svma(pc - mapping->bias), Cpu::kWordSize);
  if (!scanned) return std::nullopt;
  return FollowScanned<Cpu>(input, *scanned, sp, fp);
}

template std::optional<Caller> FollowInnermostByScan<Cpu64>(const UnwindInput&, uint64_t, uint64_t,
                                                            std::optional<uint64_t>);
template std::optional<Caller> FollowInnermostByScan<Cpu32>(const UnwindInput&, uint64_t, uint64_t,
                                                            std::optional<uint64_t>);
template std::optional<Caller> FollowFramePointer<Cpu64>(const UnwindInput&, uint64_t, uint64_t);
template std::optional<Caller> FollowFramePointer<Cpu32>(const UnwindInput&, uint64_t, uint64_t);
template std::optional<Caller> FollowScanned<Cpu64>(const UnwindInput&, const ScannedFrame&,
                                                    uint64_t, std::optional<uint64_t>);
template std::optional<Caller> FollowScanned<Cpu32>(const UnwindInput&, const ScannedFrame&,
                                                    uint64_t, std::optional<uint64_t>);

}  // namespace stackreel::unwind::x86_64
