// Where control goes inside one function, as far as its code shows.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/address.h"
#include "base/bytes.h"

namespace stackreel::x86 {

// The module's bytes that are loaded at a svma, up to the end of what is contiguous there; empty if
// nothing is. Relative relocations done or not: see JumpTable.
using LoadedBytes = std::function<ByteView(Svma)>;

struct Branch {
  uint32_t from = 0;  // offset of the branch in the function
  Svma target;
  bool is_indirect = false;  // by a jump table
  friend bool operator==(const Branch&, const Branch&) = default;
};

// A table of places that an indirect jump chooses from.
struct JumpTable {
  uint32_t jump = 0;  // offset of the indirect jump
  Svma table;
  uint32_t entries = 0;
  // A comparison before the jump says how many entries there are; otherwise they were read up to
  // the first that is not inside the function.
  bool is_bounded = false;
};

struct FunctionFlow {
  Svma start;
  std::vector<uint32_t> instructions;  // offsets, ascending
  // Direct jumps, calls and xbegin, in order of `from`, wherever they go; then one for each entry
  // of a jump table that lies in the function (once, if several jumps use the table).
  std::vector<Branch> branches;
  std::vector<JumpTable> tables;
  // Offsets of indirect jumps that compute their target from a table that was not found. (Those
  // through a plain pointer are tail calls, or go to labels whose address lies in data.)
  std::vector<uint32_t> unresolved;
  // Addresses inside the function that its code takes (lea), such as of labels.
  std::vector<Svma> taken;
  // Bytes decoded, from the start: fewer than the function has if some are no instruction.
  uint32_t decoded = 0;

  // The first place strictly inside [begin, end) (so not `begin`) whose address is taken, or that a
  // branch goes to which is not itself in [begin, end): these can be aimed elsewhere when they are
  // moved, but not entries of tables.
  [[nodiscard]] std::optional<Svma> EnteredInside(Svma begin, Svma end) const;
};

// Decodes `code` from end to end. Jump tables are found in both forms that compilers make:
//   lea table(%rip), B; movslq (B,I,4), R; add B, R; [notrack] jmp *R     offsets from the table
//   [notrack] jmp *table(,I,8), or mov table(,I,8), R; jmp *R              addresses
// also where the lea is far from the jump. A table of addresses that is all zeros before relocation
// is not found here: its entries are relative relocations, which BranchTargets is told of.
FunctionFlow ReadFunctionFlow(Svma start, ByteView code, const LoadedBytes& loaded);

}  // namespace stackreel::x86
