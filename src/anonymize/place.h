// Puts spans of addresses at keyed random places where none touches another.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "anonymize/key.h"
#include "base/error.h"

namespace stackreel::anonymize {

// [start, end).
struct Span {
  uint64_t start = 0, end = 0;
  [[nodiscard]] bool Contains(uint64_t address) const { return address >= start && address < end; }
  [[nodiscard]] uint64_t size() const { return end - start; }
  friend auto operator<=>(const Span&, const Span&) = default;
};
// Sorts them, and makes one of those that overlap or touch.
void Coalesce(std::vector<Span>& spans);
// Whether one of `spans`, coalesced, has a byte of [start, end).
bool Overlaps(std::span<const Span> spans, uint64_t start, uint64_t end);

// What is to be placed: whole pages, not empty.
struct Movable {
  Span span;
  uint64_t alignment = 4096;        // the move is by a multiple of this power of two
  std::vector<uint64_t> told = {};  // addresses in it that records tell
};
class SwappedSpans;
struct Arena {
  Span span;                              // where to
  uint64_t gap = 4096;                    // at least that much between two
  std::span<const Span> avoid;            // coalesced; not there, if there is room elsewhere
  Span never;                             // not there at all
  const SwappedSpans* swapped = nullptr;  // nor where addresses are some of these, likewise
};

// By how much each moves (new - old, modulo 2^64). The same hash and `salt` give the same places.
// kDamaged if there is no room for one.
Result<std::vector<uint64_t>> PlaceAll(std::span<const Movable> movables, const Arena& arena,
                                       const KeyedHash& hash, uint64_t salt);

}  // namespace stackreel::anonymize
