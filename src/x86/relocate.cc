#include "x86/relocate.h"

#include <algorithm>
#include <optional>
#include <span>

#include "base/check.h"
#include "x86/emit.h"
#include "x86/instruction.h"

namespace stackreel::x86 {
namespace {

using Refused = std::unexpected<RelocateRefusal>;

constexpr size_t kMaxPieceInstructions = RelocationMap::kCapacity - 1;
constexpr size_t kPushLength = 6;
constexpr size_t kAddressLength = 8;
// jmp short next; taken: jmp TARGET
constexpr size_t kDetourLength = kShortJumpLength + kJumpLength;

// How an instruction is copied.
enum class Form : uint8_t {
  kSame,
  kNearJump,
  kNearCondition,
  kXbegin,
  kLoop,
  kCall,
  kIndirectCall
};

struct PieceInstruction {
  Instruction instruction;
  ByteView bytes;
  Form form = Form::kSame;
  size_t from = 0;  // offset in the piece
  size_t to = 0;    // offset in the copy
};

// Calls by way of rsp: the pushed return address would change what they read.
bool UsesStackPointer(const PieceInstruction& at) {
  const size_t modrm_offset = at.instruction.modrm_offset;
  const uint8_t modrm = at.bytes[modrm_offset];
  // REX.B makes it r12.
  const uint8_t before = at.bytes[at.instruction.opcode_offset - (modrm_offset > 1 ? 1U : 0U)];
  if (modrm_offset > 1 && (before & 0xf0) == 0x40 && (before & 1) != 0) return false;
  if (modrm >> 6 == 3) return (modrm & 7) == 4;
  return (modrm & 7) == 4 && (at.bytes[modrm_offset + 1] & 7) == 4;
}

std::expected<Form, RelocateRefusal> FormOf(const PieceInstruction& at, RelocateOptions options) {
  const Instruction& instruction = at.instruction;
  if (instruction.is_cut_on_amd) return Refused(RelocateRefusal::kCannotRunElsewhere);
  switch (instruction.flow) {
    case Flow::kNext:
    case Flow::kIndirectJump:
    case Flow::kReturn:
      return Form::kSame;
    case Flow::kJump:
      return Form::kNearJump;
    case Flow::kConditionalJump:
      if (instruction.is_loop) return Form::kLoop;
      if (at.bytes[instruction.opcode_offset] == 0xc7) {
        if (instruction.branch.size != 4) return Refused(RelocateRefusal::kCannotRunElsewhere);
        return Form::kXbegin;
      }
      return Form::kNearCondition;
    case Flow::kCall:
      if (options.has_shadow_stack) return Refused(RelocateRefusal::kShadowStack);
      return Form::kCall;
    case Flow::kIndirectCall:
      if (instruction.is_far || UsesStackPointer(at)) {
        return Refused(RelocateRefusal::kCannotRunElsewhere);
      }
      if (options.has_shadow_stack) return Refused(RelocateRefusal::kShadowStack);
      return Form::kIndirectCall;
    case Flow::kStop:
      // A debugger or handler looks for its int3 or int1 where it put it.
      if (at.bytes[instruction.opcode_offset] == kInt3 ||
          at.bytes[instruction.opcode_offset] == 0xf1) {
        return Refused(RelocateRefusal::kCannotRunElsewhere);
      }
      return Form::kSame;
  }
  return Form::kSame;
}

size_t CopyLengthOf(const PieceInstruction& at) {
  const size_t length = at.instruction.length;
  switch (at.form) {
    case Form::kSame:
      return length;
    case Form::kNearJump:
      return kJumpLength;
    case Form::kNearCondition:
    case Form::kXbegin:
      return 6;
    case Form::kLoop:
      return length + kDetourLength;
    case Form::kCall:
      return kPushLength + kJumpLength + kAddressLength;
    case Form::kIndirectCall:
      return kPushLength + length + kAddressLength;
  }
  return length;
}

class Relocator {
 public:
  Relocator(ByteView code, Avma from, Avma to, RelocateOptions options)
      : code_(code), from_(from), to_(to), options_(options) {}

  std::expected<RelocatedCode, RelocateRefusal> Run(size_t at_least) {
    if (auto refused = ReadPiece(at_least)) return Refused(*refused);
    for (size_t i = 0; i < count_; ++i) {
      if (auto refused = Copy(piece_[i])) return Refused(*refused);
      CHECK(
          result_.map.Add({static_cast<uint8_t>(End(piece_[i])), static_cast<uint8_t>(written_)}));
    }
    if (count_ != 0) {
      const Flow last = piece_[count_ - 1].instruction.flow;
      result_.falls_through = last == Flow::kNext || last == Flow::kConditionalJump;
    }
    return result_;
  }

 private:
  static size_t End(const PieceInstruction& at) { return at.from + at.instruction.length; }
  [[nodiscard]] size_t PieceLength() const { return count_ == 0 ? 0 : End(piece_[count_ - 1]); }

  // Decodes the piece and lays out its copy.
  std::optional<RelocateRefusal> ReadPiece(size_t at_least) {
    at_least = std::min(at_least, kMaxPatchLength);
    CHECK(result_.map.Add({0, 0}));
    size_t copy_length = 0;
    while (PieceLength() < at_least) {
      const size_t from = PieceLength();
      if (from >= code_.size()) return RelocateRefusal::kTooShort;
      if (count_ != 0 && (piece_[count_ - 1].form == Form::kCall ||
                          piece_[count_ - 1].form == Form::kIndirectCall)) {
        return RelocateRefusal::kCallReturnsInside;
      }
      const std::optional<Instruction> instruction = Decode(code_.subspan(from));
      if (!instruction) return RelocateRefusal::kUndecodable;
      PieceInstruction& at = piece_[count_];
      at.instruction = *instruction;
      at.bytes = code_.subspan(from, instruction->length);
      at.from = from;
      at.to = copy_length;
      const auto form = FormOf(at, options_);
      if (!form) return form.error();
      at.form = *form;
      copy_length += CopyLengthOf(at);
      ++count_;
    }
    CHECK(copy_length <= kMaxCopyLength);
    return std::nullopt;
  }

  std::optional<RelocateRefusal> Copy(const PieceInstruction& at) {
    switch (at.form) {
      case Form::kSame:
        return CopySame(at, at.bytes);
      case Form::kNearJump:
        return CopyBranch(at, {{0xe9}});
      case Form::kNearCondition:
        // The condition is the opcode's lower half in both forms.
        return CopyBranch(
            at,
            {{0x0f, static_cast<uint8_t>(0x80 | (at.bytes[at.instruction.opcode_offset] & 0x0f))}});
      case Form::kXbegin:
        return CopyBranch(at, {{0xc7, 0xf8}});
      case Form::kLoop:
        return CopyLoop(at);
      case Form::kCall:
        return CopyCall(at);
      case Form::kIndirectCall:
        return CopyIndirectCall(at);
    }
    return std::nullopt;
  }

  // The bytes, with a rip-relative operand that refers to what it referred to.
  std::optional<RelocateRefusal> CopySame(const PieceInstruction& at, ByteView bytes) {
    const Instruction& instruction = at.instruction;
    const RelativeField& field = instruction.memory;
    const size_t start = written_;
    Write(bytes);
    if (field.size == 0) return std::nullopt;
    const uint64_t target = TargetOf(instruction, field, from_.value + at.from);
    const uint64_t end = to_.value + written_;
    const uint64_t inside = target - from_.value;
    // The address of the function's own entry stays true; nothing else in the piece does.
    const bool takes_entry = instruction.is_lea && inside == 0;
    if (inside < PieceLength() && !takes_entry) return RelocateRefusal::kReadsItself;
    std::optional<int32_t> displacement = Displacement(end, target);
    if (instruction.wraps_at_4gib) displacement = static_cast<int32_t>(target - end);
    if (!displacement) return RelocateRefusal::kOutOfReach;
    StoreUnaligned(result_.bytes.data() + start + field.offset, *displacement, Endian::kLittle);
    return std::nullopt;
  }

  std::optional<RelocateRefusal> CopyBranch(const PieceInstruction& at,
                                            std::span<const uint8_t> opcode) {
    Write(opcode);
    return WriteDisplacementTo(at);
  }

  std::optional<RelocateRefusal> CopyLoop(const PieceInstruction& at) {
    Write(at.bytes);
    result_.bytes[written_ - 1] = kShortJumpLength;    // taken: over the short jump
    Write(std::array<uint8_t, 2>{0xeb, kJumpLength});  // not taken: over the jump
    return CopyBranch(at, {{0xe9}});
  }

  std::optional<RelocateRefusal> CopyCall(const PieceInstruction& at) {
    Write(PushMemory(kJumpLength));
    if (auto refused = CopyBranch(at, {{0xe9}})) return refused;
    WriteReturnAddress(at);
    return std::nullopt;
  }

  std::optional<RelocateRefusal> CopyIndirectCall(const PieceInstruction& at) {
    Write(PushMemory(at.instruction.length));
    std::array<uint8_t, kMaxInstructionLength> jump = {};
    std::ranges::copy(at.bytes, jump.begin());
    // ff /2 is the call, ff /4 the jump.
    uint8_t& modrm = jump[at.instruction.modrm_offset];
    modrm = static_cast<uint8_t>((modrm & 0xc7) | 0x20);
    if (auto refused = CopySame(at, ByteView(jump).first(at.bytes.size()))) return refused;
    WriteReturnAddress(at);
    return std::nullopt;
  }

  // The last 4 bytes of a copied branch. A target in the piece is meant as one in the copy, but for
  // a call of the function itself, which is to be seen as one.
  std::optional<RelocateRefusal> WriteDisplacementTo(const PieceInstruction& at) {
    uint64_t target = TargetOf(at.instruction, at.instruction.branch, from_.value + at.from);
    const uint64_t inside = target - from_.value;
    if (inside < PieceLength() && (inside != 0 || at.form != Form::kCall)) {
      const auto* const found =
          std::find_if(piece_.data(), piece_.data() + count_,
                       [&](const PieceInstruction& candidate) { return candidate.from == inside; });
      if (found == piece_.data() + count_) return RelocateRefusal::kBranchIntoInstruction;
      target = to_.value + found->to;
    }
    const std::optional<int32_t> displacement = Displacement(to_.value + written_ + 4, target);
    if (!displacement) return RelocateRefusal::kOutOfReach;
    std::array<uint8_t, 4> bytes = {};
    PutLittleEndian(bytes, 0, *displacement);
    Write(bytes);
    return std::nullopt;
  }

  void WriteReturnAddress(const PieceInstruction& at) {
    std::array<uint8_t, kAddressLength> bytes = {};
    PutLittleEndian(bytes, 0, from_.value + End(at));
    Write(bytes);
  }

  void Write(std::span<const uint8_t> bytes) {
    CHECK(written_ + bytes.size() <= result_.bytes.size());
    std::ranges::copy(bytes, result_.bytes.begin() + static_cast<std::ptrdiff_t>(written_));
    written_ += bytes.size();
  }

  ByteView code_;
  Avma from_, to_;
  RelocateOptions options_;
  std::array<PieceInstruction, kMaxPieceInstructions> piece_ = {};
  size_t count_ = 0;
  size_t written_ = 0;
  RelocatedCode result_;
};

}  // namespace

std::string_view NameOf(RelocateRefusal refusal) {
  switch (refusal) {
    case RelocateRefusal::kUndecodable:
      return "undecodable";
    case RelocateRefusal::kTooShort:
      return "too short";
    case RelocateRefusal::kOutOfReach:
      return "out of reach";
    case RelocateRefusal::kBranchIntoInstruction:
      return "branch into an instruction";
    case RelocateRefusal::kReadsItself:
      return "reads itself";
    case RelocateRefusal::kCallReturnsInside:
      return "call returns inside";
    case RelocateRefusal::kShadowStack:
      return "call under a shadow stack";
    case RelocateRefusal::kCannotRunElsewhere:
      return "cannot run elsewhere";
  }
  return "";
}

std::expected<RelocatedCode, RelocateRefusal> Relocate(ByteView code, Avma from, Avma to,
                                                       size_t at_least, RelocateOptions options) {
  return Relocator(code, from, to, options).Run(at_least);
}

}  // namespace stackreel::x86
