// Any bytes as code: decoded, relocated, and looked at as a function and as a module.
//   at_least and flags 1 · distance of the copy 4 · where the code stands 4 · code
// What is relocated must decode to the same instructions with the same targets.
#include <Zydis/Zydis.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>

#include "base/byte_reader.h"
#include "base/io.h"
#include "x86/branch_targets.h"
#include "x86/function_flow.h"
#include "x86/instruction.h"
#include "x86/instruction_length.h"
#include "x86/prologue.h"
#include "x86/relative_relocations.h"
#include "x86/relocate.h"
#include "x86/site_tables.h"

namespace {

using namespace stackreel;

void Require(bool holds) {
  if (!holds) std::abort();
}

ZydisMnemonic MnemonicOf(ByteView bytes) {
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  ZydisDecodedInstruction instruction;
  const bool good = ZYAN_SUCCESS(
      ZydisDecoderDecodeInstruction(&decoder, nullptr, bytes.data(), bytes.size(), &instruction));
  return good ? instruction.mnemonic : ZYDIS_MNEMONIC_INVALID;
}

void CheckDecoding(ByteView code) {
  for (size_t at = 0; at < code.size(); ++at) {
    const auto instruction = x86::Decode(code.subspan(at));
    if (!instruction) continue;
    const size_t length = instruction->length;
    Require(length > 0 && length <= x86::kMaxInstructionLength && length <= code.size() - at);
    for (const auto& field : {instruction->branch, instruction->memory}) {
      Require(field.offset + field.size <= length);
    }
    Require(x86::ReadShape(code.subspan(at)).length == length);
  }
}

// Where a branch of the piece must go, given where it went.
uint64_t InCopy(uint64_t target, const x86::RelocatedCode& copy, uint64_t from, uint64_t to,
                bool is_call) {
  const uint64_t inside = target - from;
  if (inside >= copy.map.original_length() || (inside == 0 && is_call)) return target;
  const auto moved = copy.map.To(static_cast<uint8_t>(inside));
  Require(moved.has_value());
  return to + *moved;
}

void CheckInstruction(const x86::RelocatedCode& copy, ByteView code, uint64_t from, uint64_t to,
                      size_t i) {
  const auto entry = copy.map.entry(i);
  const auto original = x86::Decode(code.subspan(entry.from));
  Require(original && entry.from + original->length == copy.map.entry(i + 1).from);
  ByteView bytes = copy.view().subspan(entry.to);
  uint64_t at = to + entry.to;
  auto moved = x86::Decode(bytes);
  Require(moved.has_value());
  const uint64_t return_address = from + entry.from + original->length;
  const bool is_call = original->flow == x86::Flow::kCall;
  if (is_call || original->flow == x86::Flow::kIndirectCall) {
    // push [return address]; jmp
    Require(MnemonicOf(bytes) == ZYDIS_MNEMONIC_PUSH && moved->memory.size == 4);
    const uint64_t literal = x86::TargetOf(*moved, moved->memory, at) - to;
    Require(literal + 8 <= copy.view().size());
    Require(LoadUnaligned<uint64_t>(copy.view().data() + literal, Endian::kLittle) ==
            return_address);
    bytes = bytes.subspan(moved->length);
    at += moved->length;
    moved = x86::Decode(bytes);
    Require(moved && MnemonicOf(bytes) == ZYDIS_MNEMONIC_JMP);
  } else {
    Require(MnemonicOf(bytes) == MnemonicOf(code.subspan(entry.from)));
  }
  if (original->branch.size != 0) {
    uint64_t target = x86::TargetOf(*moved, moved->branch, at);
    if (original->is_loop) {
      Require(target == at + moved->length + 2);
      at = target;
      const auto detour = x86::Decode(copy.view().subspan(target - to));
      Require(detour && detour->flow == x86::Flow::kJump);
      target = x86::TargetOf(*detour, detour->branch, at);
    }
    const uint64_t meant = x86::TargetOf(*original, original->branch, from + entry.from);
    Require(target == InCopy(meant, copy, from, to, is_call));
  }
  if (original->memory.size != 0) {
    Require(x86::TargetOf(*original, original->memory, from + entry.from) ==
            x86::TargetOf(*moved, moved->memory, at));
  }
}

void CheckRelocation(ByteView code, uint64_t from, uint64_t to, size_t at_least,
                     bool has_shadow_stack) {
  const auto copy =
      x86::Relocate(code, Avma(from), Avma(to), at_least, {.has_shadow_stack = has_shadow_stack});
  if (!copy) {
    Require(!NameOf(copy.error()).empty());
    return;
  }
  const auto& map = copy->map;
  Require(map.size() >= 1 && map.entry(0).from == 0 && map.entry(0).to == 0);
  Require(map.original_length() >= std::min(at_least, x86::kMaxPatchLength));
  Require(map.original_length() <= x86::kMaxRelocatedLength);
  for (size_t i = 0; i + 1 < map.size(); ++i) {
    Require(map.entry(i).from < map.entry(i + 1).from && map.entry(i).to < map.entry(i + 1).to);
    Require(map.From(map.entry(i).to) == map.entry(i).from);
    CheckInstruction(*copy, code, from, to, i);
  }
}

void CheckSite(ByteView code, Svma start, const x86::FunctionSurroundings& around,
               const x86::LoadedBytes& loaded, x86::SiteOptions options) {
  const auto flow = x86::ReadFunctionFlow(start, code, loaded);
  Require(flow.decoded <= code.size());
  Require(std::ranges::is_sorted(flow.instructions));
  const auto site = x86::ChooseSite(code, flow, around, options);
  if (!site) {
    Require(!NameOf(site.error().reason).empty());
    return;
  }
  const uint64_t offset = site->address - start;
  Require(site->length != 0 && offset + site->length <= code.size() + around.after.size());
  Require(offset + site->piece_length <= code.size());
  Require(site->kind != x86::SiteKind::kTrap || options.allow_trap);
  if (site->kind == x86::SiteKind::kShortJump) {
    Require(start - site->padding <= around.before.size());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ByteReader reader(ByteView(data, size));
  const uint8_t flags = reader.U8();
  const int64_t distance = reader.S32();
  const uint64_t from = 0x555500000000 + reader.U32();
  const ByteView code = reader.Rest().first(std::min<size_t>(reader.remaining(), 4096));
  CheckDecoding(code.first(std::min<size_t>(code.size(), 256)));
  CheckRelocation(code, from, from + static_cast<uint64_t>(distance), flags & 7, (flags & 8) != 0);

  // The code is a module of its own: a third of it before the function, a third behind.
  const Svma start(from);
  const x86::LoadedBytes loaded = [&](Svma svma) {
    return svma - start < code.size() ? code.subspan(svma - start) : ByteView();
  };
  const size_t third = (flags & 16) != 0 ? code.size() / 3 : 0;
  const x86::SiteSection section{start, code, {}};
  const auto addresses = x86::ReadAddressTable(section);
  const auto sleds = x86::ReadSledTable(section);
  (void)x86::ReadRela(code);
  (void)x86::ReadRelr(code, loaded);
  const x86::CodeRange range{start, code};
  InlineExecutor executor;
  const auto targets = x86::FindBranchTargets({&range, 1}, addresses, executor);
  x86::FunctionSurroundings around;
  around.before = code.first(third);
  around.after = code.last(third);
  if ((flags & 32) != 0) around.targets = &targets;
  around.patchable_entries = addresses;
  around.sleds = sleds.sleds;
  CheckSite(code.subspan(third, code.size() - 2 * third), start + third, around, loaded,
            {.has_shadow_stack = (flags & 8) != 0,
             .has_branch_tracking = (flags & 64) != 0,
             .allow_trap = (flags & 128) == 0});
  return 0;
}
