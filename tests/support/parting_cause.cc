#include "support/parting_cause.h"

#include <algorithm>

#include "dwarf/cfi.h"
#include "unwind/x86_64/registers.h"

namespace stackreel {
namespace {

using dwarf::RuleKind;
using unwind::Frame;
using unwind::FrameOrigin;
using unwind::UnwindMapping;

// Whether a register of the caller is said to be saved below the sampled sp.
template <class Cpu>
bool HasSlotBelowSp(const RecordedStack& stack, const dwarf::Row& row) {
  const auto value = [&](unsigned reg) {
    return stack.input.registers.values[Cpu::kPerfOfDwarf[reg]];
  };
  if (row.cfa.is_expression || row.cfa.reg >= Cpu::kRegisters) return false;
  const uint64_t cfa = value(row.cfa.reg) + static_cast<uint64_t>(row.cfa.offset);
  const uint64_t sp = value(Cpu::kSp);
  return std::any_of(row.registers.begin(), row.registers.begin() + Cpu::kRegisters,
                     [&](const dwarf::RegisterRule& rule) {
                       return rule.kind == RuleKind::kOffset &&
                              cfa + static_cast<uint64_t>(rule.offset) < sp;
                     });
}

bool SampledFrameHasSlotBelowSp(const RecordedStack& stack) {
  const bool is_64bit = stack.input.arch == unwind::Arch::kX86_64;
  const uint64_t pc = stack.input.registers.values[unwind::x86_64::kPerfIp];
  const UnwindMapping* mapping = stack.maps->maps.Find(pc);
  if (mapping == nullptr || mapping->module == nullptr) return false;
  const auto row = mapping->module->frames().FindRow(Svma(pc - mapping->bias));
  if (!row) return false;
  return is_64bit ? HasSlotBelowSp<unwind::x86_64::Cpu64>(stack, *row)
                  : HasSlotBelowSp<unwind::x86_64::Cpu32>(stack, *row);
}

// syscall, sysenter, int $0x80
bool IsBehindSyscall(const unwind::UnwindModule& module, Svma pc) {
  const ByteView code = module.BytesAt(pc - 2);
  if (code.size() < 2) return false;
  const bool is_long = code[0] == 0x0f && (code[1] == 0x05 || code[1] == 0x34);
  return is_long || (code[0] == 0xcd && code[1] == 0x80);
}

}  // namespace

const char* PartingCauseName(PartingCause cause) {
  switch (cause) {
    case PartingCause::kNoFile:
      return "code in no file";
    case PartingCause::kPoppedSlot:
      return "sampled behind a pop: the slot lies below sp";
    case PartingCause::kAfterSyscall:
      return "no CFI behind a system call";
    case PartingCause::kNoCfi:
      return "no CFI";
    case PartingCause::kOutermost:
      return "CFI says outermost";
    case PartingCause::kPlt:
      return "PLT";
    case PartingCause::kWrongCfi:
      return "CFI leads to no code";
    case PartingCause::kOther:
      return "other";
  }
  return "?";
}

PartingCause FindPartingCause(const RecordedStack& stack, const std::vector<Frame>& frames,
                              size_t at) {
  if (at == 0 || at > frames.size()) return PartingCause::kOther;
  const Frame& last = frames[at - 1];
  const uint64_t lookup = last.address.LookupAddress().value;
  const UnwindMapping* mapping = stack.maps->maps.Find(lookup);
  if (mapping == nullptr || mapping->module == nullptr) return PartingCause::kNoFile;
  const unwind::UnwindModule& module = *mapping->module;
  const Svma svma(lookup - mapping->bias);
  const auto row = module.frames().FindRow(svma);
  const bool is_64bit = stack.input.arch == unwind::Arch::kX86_64;
  // They give up where they read the slot, or where they need the register for the CFA.
  if (row && SampledFrameHasSlotBelowSp(stack)) {
    const unsigned fp = is_64bit ? unwind::x86_64::Cpu64::kBp : unwind::x86_64::Cpu32::kBp;
    if (at <= 2 || row->cfa.reg == fp) return PartingCause::kPoppedSlot;
  }
  if (!row) {
    return IsBehindSyscall(module, svma) ? PartingCause::kAfterSyscall : PartingCause::kNoCfi;
  }
  const unsigned return_address =
      is_64bit ? unwind::x86_64::Cpu64::kIp : unwind::x86_64::Cpu32::kIp;
  if (row->registers[return_address].kind == RuleKind::kUndefined) return PartingCause::kOutermost;
  if (row->cfa.is_expression) return PartingCause::kPlt;
  const bool ours_scanned = at < frames.size() && frames[at].origin == FrameOrigin::kFramePointer;
  return ours_scanned ? PartingCause::kWrongCfi : PartingCause::kOther;
}

}  // namespace stackreel
