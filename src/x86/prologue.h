// How the beginning of a function can be patched.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string_view>

#include "base/address.h"
#include "base/bytes.h"
#include "x86/branch_targets.h"
#include "x86/function_flow.h"
#include "x86/relocate.h"
#include "x86/site_tables.h"

namespace stackreel::x86 {

// Best first.
enum class SiteKind : uint8_t {
  kNop,        // one nop of 5 bytes: switched whole, nobody can be inside
  kCall,       // call of mcount or __fentry__ (5 bytes, or 6 by way of the GOT) ↔ nop
  kSled,       // XRay: a 2-byte jump over 9 bytes of nops
  kNops,       // 5 bytes of shorter nops: a thread can be between two
  kJump,       // ordinary instructions: moved away, a 5-byte jump in their place
  kShortJump,  // a 2-byte jump to a 5-byte one in the padding before the function
  kTrap,       // int3; the first instruction is moved away
};
std::string_view NameOf(SiteKind kind);

// Why a kind of site was passed over, or a function cannot be patched at all.
enum class SiteRefusal : uint8_t {
  kEmpty,              // no bytes
  kUndecodable,        // does not begin with an instruction known here
  kTooShort,           // fewer bytes than a jump takes, and no padding behind
  kBranchIntoSite,     // some jump, jump table or label leads to its inside
  kUnresolvedJump,     // an indirect jump of the function may lead to its inside
  kCannotRelocate,     // see `relocate`
  kReturnsFromSignal,  // sigreturn: unwinders know it by its bytes
};
std::string_view NameOf(SiteRefusal refusal);

struct Site {
  SiteKind kind = SiteKind::kTrap;
  Svma address;        // of its first byte
  uint8_t length = 0;  // bytes of the function that patching overwrites
  // kJump, kNops, kShortJump, kTrap: the whole instructions at `address` that are moved away. What
  // is left of a function shorter than `length` is padding.
  uint8_t piece_length = 0;
  // kShortJump: where the 5 bytes of the jump proper go.
  Svma padding;
  // The site begins with endbr64 instead of coming after it: while it is patched, an indirect call
  // under indirect branch tracking (which Linux does not enforce in user space) would fail.
  bool covers_endbr64 = false;
  // A jump within the function goes to `address`: it is a loop, and arrives at the patch anew each
  // time round, with the function's frame as it was.
  bool is_loop_head = false;
  // kShortJump, kTrap: why it is not kJump.
  std::optional<SiteRefusal> not_a_jump;
  // With SiteRefusal::kCannotRelocate, here or as the error: why.
  std::optional<RelocateRefusal> relocate;
};

struct SiteError {
  SiteRefusal reason = SiteRefusal::kEmpty;
  std::optional<RelocateRefusal> relocate;
};

// What is known of a function and what surrounds it. Everything may be empty but `bytes` and
// `flow`.
struct FunctionSurroundings {
  ByteView before;                            // bytes between the function before and this one
  ByteView after;                             // bytes between this function's end and the next one
  const BranchTargets* targets = nullptr;     // of the module
  std::span<const Svma> profiling_functions;  // mcount, __fentry__, or their PLT entries
  std::span<const Svma> profiling_slots;      // the GOT slots that hold them
  std::span<const Svma> patchable_entries;    // ReadAddressTable, ascending
  std::span<const Sled> sleds;                // ReadSledTable, ascending
};

struct SiteOptions {
  bool has_shadow_stack = false;     // RelocateOptions
  bool has_branch_tracking = false;  // never cover an endbr64
  bool allow_trap = true;
  bool allow_prepared = true;  // the kinds that compilers make room for: all above kJump
};

// Chooses the best kind of site for the function of `flow`, whose bytes are `code`: these must end
// where any other function begins, also one that is an entry into the same code. The sites of
// different functions then never overlap, in the padding between them neither. Whether the copy can
// be put near enough is left to the caller.
std::expected<Site, SiteError> ChooseSite(ByteView code, const FunctionFlow& flow,
                                          const FunctionSurroundings& around,
                                          SiteOptions options = {});

}  // namespace stackreel::x86
