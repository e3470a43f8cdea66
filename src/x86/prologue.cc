#include "x86/prologue.h"

#include <algorithm>

#include "x86/emit.h"
#include "x86/instruction.h"

namespace stackreel::x86 {
namespace {

// -pg without -mfentry calls mcount after the frame is made and registers are saved.
constexpr size_t kProfilingCallWithin = 32;  // instructions
constexpr uint8_t kSledLength = 11;
// The first of these bytes may be taken by a site of the function before, which has at least one of
// its own.
constexpr size_t kLeastPaddingBefore = kJumpLength - 1 + kJumpLength;
constexpr uint64_t kNumberOfSigreturn = 15;

// Nops of any form, int3 and zeros: what assemblers and linkers fill gaps with.
bool IsPadding(ByteView bytes) {
  while (!bytes.empty()) {
    size_t length = 1;
    if (bytes[0] != kInt3 && bytes[0] != 0) {
      const std::optional<Instruction> instruction = Decode(bytes);
      if (!instruction || !instruction->is_nop) return false;
      length = instruction->length;
    }
    bytes = bytes.subspan(length);
  }
  return true;
}

// mov $15, %eax or %rax; syscall: libgcc and gdb recognise a signal's frame by these bytes.
bool ReturnsFromSignal(ByteView code) {
  const std::optional<Instruction> move = Decode(code);
  if (!move || move->length < 5 || code.size() < move->length + 2U) return false;
  const bool is_move = code[0] == 0xb8 || (code[0] == 0x48 && code[1] == 0xc7 && code[2] == 0xc0);
  return is_move &&
         LoadUnaligned<uint32_t>(code.data() + move->length - 4, Endian::kLittle) ==
             kNumberOfSigreturn &&
         code[move->length] == 0x0f && code[move->length + 1] == 0x05;
}

class SiteChooser {
 public:
  SiteChooser(ByteView code, const FunctionFlow& flow, const FunctionSurroundings& around,
              SiteOptions options)
      : code_(code), flow_(flow), around_(around), options_(options) {}

  std::expected<Site, SiteError> Choose() {
    if (code_.empty()) return std::unexpected(SiteError{SiteRefusal::kEmpty, {}});
    const std::optional<Instruction> first = Decode(code_);
    if (!first) return std::unexpected(SiteError{SiteRefusal::kUndecodable, {}});
    if (ReturnsFromSignal(code_)) {
      return std::unexpected(SiteError{SiteRefusal::kReturnsFromSignal, {}});
    }
    after_endbr64_ = first->is_endbr64 ? first->length : 0;
    if (options_.allow_prepared) {
      if (auto site = FindPrepared()) return *site;
    }
    return FindOrdinary();
  }

 private:
  // A place that the compiler has made to be patched.
  std::optional<Site> FindPrepared() const {
    if (auto site = FindNop(after_endbr64_)) return site;
    if (auto site = FindProfilingCall()) return site;
    if (auto site = FindSled()) return site;
    if (auto site = FindNops(after_endbr64_)) return site;
    // The compiler may have put its nops elsewhere.
    const auto listed = std::ranges::lower_bound(around_.patchable_entries, flow_.start);
    if (listed == around_.patchable_entries.end() || *listed - flow_.start >= code_.size()) {
      return std::nullopt;
    }
    const size_t offset = *listed - flow_.start;
    if (auto site = FindNop(offset)) return site;
    return FindNops(offset);
  }

  std::optional<Site> FindNop(size_t offset) const {
    if (offset >= code_.size()) return std::nullopt;
    const std::optional<Instruction> instruction = Decode(code_.subspan(offset));
    if (!instruction || !instruction->is_nop || instruction->length != kJumpLength) {
      return std::nullopt;
    }
    if (EnteredInside(offset, kJumpLength)) return std::nullopt;
    return MakeSite(SiteKind::kNop, offset, kJumpLength, kJumpLength);
  }

  std::optional<Site> FindNops(size_t offset) const {
    size_t end = offset;
    while (end < offset + kJumpLength) {
      if (end >= code_.size()) return std::nullopt;
      const std::optional<Instruction> instruction = Decode(code_.subspan(end));
      if (!instruction || !instruction->is_nop) return std::nullopt;
      end += instruction->length;
    }
    if (EnteredInside(offset, kJumpLength)) return std::nullopt;
    return MakeSite(SiteKind::kNops, offset, kJumpLength, end - offset);
  }

  std::optional<Site> FindProfilingCall() const {
    const size_t count = std::min(flow_.instructions.size(), kProfilingCallWithin);
    for (size_t i = 0; i < count; ++i) {
      const size_t offset = flow_.instructions[i];
      const std::optional<Instruction> instruction = Decode(code_.subspan(offset));
      if (!instruction) break;
      if (!CallsProfiling(*instruction, offset)) continue;
      if (EnteredInside(offset, instruction->length)) break;
      return MakeSite(SiteKind::kCall, offset, instruction->length, instruction->length);
    }
    return std::nullopt;
  }
  bool CallsProfiling(const Instruction& instruction, size_t offset) const {
    const uint64_t at = flow_.start.value + offset;
    if (instruction.flow == Flow::kCall) {
      const Svma target(TargetOf(instruction, instruction.branch, at));
      return std::ranges::find(around_.profiling_functions, target) !=
             around_.profiling_functions.end();
    }
    if (instruction.flow != Flow::kIndirectCall || instruction.memory.size == 0) return false;
    const Svma slot(TargetOf(instruction, instruction.memory, at));
    return std::ranges::find(around_.profiling_slots, slot) != around_.profiling_slots.end();
  }

  // jmp +9 and 9 bytes of nops, listed as this function's entry.
  std::optional<Site> FindSled() const {
    auto sled = std::ranges::lower_bound(around_.sleds, flow_.start, {}, &Sled::address);
    for (; sled != around_.sleds.end() && sled->address - flow_.start < code_.size(); ++sled) {
      if (sled->kind != SledKind::kEntry && sled->kind != SledKind::kLogArgumentsEntry) continue;
      const size_t offset = sled->address - flow_.start;
      if (sled->address.value % 2 != 0 || offset + kSledLength > code_.size()) continue;
      if (code_[offset] != 0xeb || code_[offset + 1] != kSledLength - 2) continue;
      return MakeSite(SiteKind::kSled, offset, kSledLength, kSledLength);
    }
    return std::nullopt;
  }

  // Behind an endbr64 if that can be; over it else; then with less and less of the function.
  std::expected<Site, SiteError> FindOrdinary() const {
    auto jump = TryJump(after_endbr64_);
    if (jump) return *jump;
    const SiteError first_error = jump.error();
    const bool may_cover = after_endbr64_ != 0 && !options_.has_branch_tracking;
    if (may_cover) {
      if ((jump = TryJump(0))) return *jump;
    }
    auto site = TryShortJump(after_endbr64_);
    if (!site && may_cover) site = TryShortJump(0);
    if (!site && options_.allow_trap) {
      // Right behind an endbr64 that is all of the function, there is nothing.
      auto trap = TryTrap(after_endbr64_ < code_.size() ? after_endbr64_ : 0);
      if (!trap) return std::unexpected(trap.error());
      site = *trap;
    }
    if (!site) return std::unexpected(first_error);
    site->not_a_jump = first_error.reason;
    site->relocate = first_error.relocate;
    return *site;
  }

  std::expected<Site, SiteError> TryJump(size_t offset) const {
    const size_t size = code_.size() - std::min(offset, code_.size());
    if (size == 0) return std::unexpected(SiteError{SiteRefusal::kTooShort, {}});
    // A function shorter than the jump may end in padding: nobody comes there.
    const size_t from_padding = kJumpLength - std::min(size, kJumpLength);
    if (from_padding > around_.after.size() || !IsPadding(around_.after) ||
        EnteredPadding(size + offset, from_padding)) {
      if (from_padding != 0) return std::unexpected(SiteError{SiteRefusal::kTooShort, {}});
    }
    const auto piece = RelocateAt(offset, kJumpLength - from_padding);
    if (!piece) return std::unexpected(piece.error());
    if (from_padding != 0 && piece->falls_through) {
      return std::unexpected(SiteError{SiteRefusal::kTooShort, {}});
    }
    if (EnteredInside(offset, std::min(size, kJumpLength))) {
      return std::unexpected(SiteError{SiteRefusal::kBranchIntoSite, {}});
    }
    // What follows may jump anywhere.
    if (flow_.decoded < code_.size()) {
      return std::unexpected(SiteError{SiteRefusal::kUndecodable, {}});
    }
    if (!flow_.unresolved.empty()) {
      return std::unexpected(SiteError{SiteRefusal::kUnresolvedJump, {}});
    }
    return MakeSite(SiteKind::kJump, offset, kJumpLength, piece->map.original_length());
  }

  std::optional<Site> TryShortJump(size_t offset) const {
    if (around_.before.size() < kLeastPaddingBefore || !flow_.unresolved.empty() ||
        flow_.decoded < code_.size()) {
      return std::nullopt;
    }
    const ByteView padding = around_.before.last(kJumpLength);
    // The whole gap must be padding: its last bytes alone may be an instruction's end.
    if (!IsPadding(around_.before)) return std::nullopt;
    const Svma padding_start = flow_.start - padding.size();
    if (around_.targets != nullptr && around_.targets->FirstIn(padding_start, flow_.start)) {
      return std::nullopt;
    }
    if (code_.size() < offset + kShortJumpLength) return std::nullopt;
    const auto piece = RelocateAt(offset, kShortJumpLength);
    if (!piece || EnteredInside(offset, kShortJumpLength)) return std::nullopt;
    Site site =
        MakeSite(SiteKind::kShortJump, offset, kShortJumpLength, piece->map.original_length());
    site.padding = padding_start;
    return site;
  }

  std::expected<Site, SiteError> TryTrap(size_t offset) const {
    const auto piece = RelocateAt(offset, 1);
    if (!piece) return std::unexpected(piece.error());
    return MakeSite(SiteKind::kTrap, offset, 1, piece->map.original_length());
  }

  // Whether the instructions there can be moved at all, and what they are.
  std::expected<RelocatedCode, SiteError> RelocateAt(size_t offset, size_t at_least) const {
    const Avma anywhere(flow_.start.value + offset);
    auto piece = Relocate(code_.subspan(offset), anywhere, anywhere, at_least,
                          {.has_shadow_stack = options_.has_shadow_stack});
    if (piece) return *piece;
    switch (piece.error()) {
      case RelocateRefusal::kUndecodable:
        return std::unexpected(SiteError{SiteRefusal::kUndecodable, {}});
      case RelocateRefusal::kTooShort:
        return std::unexpected(SiteError{SiteRefusal::kTooShort, {}});
      default:
        return std::unexpected(SiteError{SiteRefusal::kCannotRelocate, piece.error()});
    }
  }

  // Something leads to the inside of the site, from outside of what is moved away.
  bool EnteredInside(size_t offset, size_t length) const {
    const Svma begin = flow_.start + offset;
    const Svma end = begin + length;
    if (flow_.EnteredInside(begin, end)) return true;
    if (around_.targets == nullptr) return false;
    const auto target = around_.targets->FirstIn(begin + 1, end);
    if (!target) return false;
    // The module's targets do not say from where: let pass what the site itself explains.
    return !ExplainedFromWithin(begin, end);
  }
  bool ExplainedFromWithin(Svma begin, Svma end) const {
    for (Svma at = begin + 1; at < end; at = at + 1) {
      if (!around_.targets->Contains(at)) continue;
      const bool own = std::ranges::any_of(flow_.branches, [&](const Branch& branch) {
        const Svma from = flow_.start + branch.from;
        return !branch.is_indirect && from >= begin && from < end && branch.target == at;
      });
      if (!own) return false;
    }
    return true;
  }
  bool EnteredPadding(size_t offset, size_t length) const {
    if (around_.targets == nullptr || length == 0) return false;
    const Svma begin = flow_.start + offset;
    return around_.targets->FirstIn(begin, begin + length).has_value();
  }

  Site MakeSite(SiteKind kind, size_t offset, size_t length, size_t piece_length) const {
    Site site;
    site.kind = kind;
    site.address = flow_.start + offset;
    site.length = static_cast<uint8_t>(length);
    site.piece_length = static_cast<uint8_t>(piece_length);
    site.covers_endbr64 = offset < after_endbr64_;
    site.is_loop_head = std::ranges::any_of(flow_.branches, [&](const Branch& branch) {
      return branch.target == site.address && !IsCall(branch);
    });
    return site;
  }
  // A function that calls itself is entered as by any other call.
  bool IsCall(const Branch& branch) const {
    const std::optional<Instruction> instruction = Decode(code_.subspan(branch.from));
    return instruction && instruction->flow == Flow::kCall;
  }

  ByteView code_;
  const FunctionFlow& flow_;
  const FunctionSurroundings& around_;
  SiteOptions options_;
  size_t after_endbr64_ = 0;
};

}  // namespace

std::string_view NameOf(SiteKind kind) {
  switch (kind) {
    case SiteKind::kNop:
      return "nop";
    case SiteKind::kCall:
      return "call";
    case SiteKind::kSled:
      return "sled";
    case SiteKind::kNops:
      return "nops";
    case SiteKind::kJump:
      return "jump";
    case SiteKind::kShortJump:
      return "short jump";
    case SiteKind::kTrap:
      return "trap";
  }
  return "";
}

std::string_view NameOf(SiteRefusal refusal) {
  switch (refusal) {
    case SiteRefusal::kEmpty:
      return "empty";
    case SiteRefusal::kUndecodable:
      return "undecodable";
    case SiteRefusal::kTooShort:
      return "too short";
    case SiteRefusal::kBranchIntoSite:
      return "branch into the site";
    case SiteRefusal::kUnresolvedJump:
      return "unresolved indirect jump";
    case SiteRefusal::kCannotRelocate:
      return "cannot be relocated";
    case SiteRefusal::kReturnsFromSignal:
      return "returns from a signal";
  }
  return "";
}

std::expected<Site, SiteError> ChooseSite(ByteView code, const FunctionFlow& flow,
                                          const FunctionSurroundings& around, SiteOptions options) {
  return SiteChooser(code, flow, around, options).Choose();
}

}  // namespace stackreel::x86
