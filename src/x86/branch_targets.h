// Every place in a module's code that some code or data of the module refers to directly, so that
// a jump from another function into a prologue is seen before the prologue is patched.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/address.h"
#include "base/bytes.h"
#include "base/io.h"

namespace stackreel::x86 {

// An executable section (or segment).
struct CodeRange {
  Svma start;
  ByteView bytes;
};

// A set of addresses within ranges of code, a bit a byte.
class BranchTargets {
 public:
  BranchTargets() = default;
  // An empty set that can hold addresses of these ranges, which do not overlap.
  explicit BranchTargets(std::span<const CodeRange> ranges);

  // Whether it lay in a range and so was added. Not for several threads at once.
  bool Add(Svma target);
  [[nodiscard]] bool Contains(Svma target) const;
  // The lowest target in [begin, end).
  [[nodiscard]] std::optional<Svma> FirstIn(Svma begin, Svma end) const;
  [[nodiscard]] uint64_t Count() const;
  // Where bytes were no instruction; decoding went on at the next one.
  [[nodiscard]] uint64_t undecodable_bytes() const { return undecodable_bytes_; }

 private:
  friend class TargetFinder;
  struct Range {
    Svma start;
    uint64_t size = 0;
    std::vector<uint64_t> bits;
  };
  [[nodiscard]] const Range* Find(Svma target) const;

  std::vector<Range> ranges_;  // ascending
  uint64_t undecodable_bytes_ = 0;
};

// The targets of all direct jumps, calls and xbegin in `ranges`, and the addresses in them that
// code takes (rip-relative lea): labels of computed jumps. Code is decoded from each range's start
// and anew from each of `function_starts` (ascending), so that data among the code cannot hide what
// begins at the next function. A branch can be missed only right behind data that is followed, in
// the same function, by code.
// What data hold is added by the caller, with Add: relative relocations (relative_relocations.h)
// cover tables of labels. Not covered: targets of jump tables of offsets (FunctionFlow has them,
// and they go to their own function or its cold part), and landing pads, which lie behind a call in
// their function or in a cold part.
BranchTargets FindBranchTargets(std::span<const CodeRange> ranges,
                                std::span<const Svma> function_starts, Executor& executor);

}  // namespace stackreel::x86
