// Where everything lies in the anonymised recording.
//
// Mappings of a space that touched or overlapped, and segments of one file near each other, move
// together, by one amount: so neighbours stay neighbours, what covered another covers it still, and
// what lay apart lies apart, a page at least between. As nothing that moves differently ever
// overlapped, an address moves the same way at all times of its space.
//
//   recorded   | exe |bss|      [heap]          | libc |anon|   | ld.so |
//   moved           | libc |anon|     [heap]  | exe |bss|    | ld.so |
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "anonymize/collect.h"
#include "anonymize/key.h"
#include "anonymize/place.h"
#include "anonymize/swapped_spans.h"
#include "base/error.h"

namespace stackreel::anonymize {

// Addresses outside all mappings become addresses here, a page for a page, the place in it kept.
// The ranges are the same in all anonymised recordings of one width; no mapping is moved into them.
Span PseudonymsOf(const AddressWidth& width, bool kernel);

// A mapping's record after the move.
struct MovedMapping {
  uint64_t addr = 0, len = 0, pgoff = 0;
};

// Not for use by several threads at once: it remembers the pseudonyms it gave.
class Remap {
 public:
  // kDamaged if the mappings cannot all be placed, which those of a real machine can. `collected`
  // must outlive it.
  static Result<std::unique_ptr<Remap>> Build(const Collected& collected, const Key& key);

  // An address of code, which is stripped of its signature and tag: 0 stays 0; one in a mapping, or
  // just behind it as a return address may be, moves with it; others become pseudonyms.
  uint64_t Code(SpaceId space, uint64_t address) {
    if (collected_.width.has_signatures) address = PlainCode(address);
    const uint64_t number = address >> kMovedPageShift;
    const MovedPage& page = MovedPageOf(space, number);
    if (page.number == number && page.space == space) {
      outside_mappings_ += page.is_outside ? 1 : 0;
      return address + page.delta;
    }
    return CodeOfNewPage(space, address);
  }
  // An address of data, which is stripped of its tag: the same, but the pages of memory that has no
  // file are permuted within their mapping.
  uint64_t Data(SpaceId space, uint64_t address);
  // The space an address of this process is in, where no mode tells: its kernel's or its own.
  [[nodiscard]] SpaceId SpaceAt(SpaceId user_space, Machine machine, uint64_t address) const;
  MovedMapping Mapping(SpaceId space, const MappingRecord& mapping);
  // Whether the value lies in a page that was mapped, in any space.
  [[nodiscard]] bool IsOriginal(uint64_t value) const;

  // An address of which nobody knows the space, as a breakpoint's: moves as in the first space that
  // has it.
  uint64_t Anywhere(uint64_t address);
  // How many addresses became pseudonyms.
  [[nodiscard]] uint64_t outside_mappings() const { return outside_mappings_; }

 private:
  // A stretch of a space that moves as one.
  struct Segment {
    uint64_t start = 0, end = 0;
    uint64_t delta = 0;  // new - old
    bool anonymous = false;
  };
  struct Space {
    std::vector<Segment> segments;  // by start, none overlaps
    mutable size_t last = 0;        // found last
  };
  struct Page {
    SpaceId space = 0;
    uint64_t number = 0;
    friend bool operator==(const Page&, const Page&) = default;
  };
  struct HashPage {
    size_t operator()(const Page& p) const {
      return (p.number * 0x9e3779b97f4a7c15U) ^ (uint64_t{p.space} << 32);
    }
  };

  // How much pages moved of which all addresses move alike, those looked up last.
  struct MovedPage {
    uint64_t number = UINT64_MAX;  // of none
    uint64_t delta = 0;
    SpaceId space = 0;
    bool is_outside = false;  // all mappings: it has a pseudonym
  };
  static constexpr size_t kMovedPages = 4096;
  static constexpr unsigned kMovedPageShift = 12;
  MovedPage& MovedPageOf(SpaceId space, uint64_t number) {
    return moved_pages_[(number ^ (uint64_t{space} * 0x9e3779b1)) % kMovedPages];
  }
  // The same as Code, of a plain address, without MovedPageOf.
  uint64_t CodeOfNewPage(SpaceId space, uint64_t address);
  Remap(const Collected& collected, const Key& key);
  // Without the signature of pointer authentication, and without a tag.
  [[nodiscard]] uint64_t PlainCode(uint64_t address) const;
  [[nodiscard]] uint64_t PlainData(uint64_t address) const;
  [[nodiscard]] const Segment* Find(SpaceId space, uint64_t address) const;
  // Whether any address from `start` to `end` moves with a mapping.
  [[nodiscard]] bool IsNearMapping(SpaceId space, uint64_t start, uint64_t end) const;
  uint64_t Pseudonym(SpaceId space, uint64_t address);
  void CollectOriginals();
  Status Place(SpaceId space);

  const Collected& collected_;
  KeyedHash places_, pages_, pseudonyms_;
  std::vector<Space> spaces_;
  std::vector<Span> originals_;  // of all spaces, in whole pages, by start, none touches
  SwappedSpans swapped_;         // of originals_
  // Numbers of the pages that pseudonyms may have: those where nothing was mapped in any space, if
  // there are any.
  struct PseudonymPages {
    std::vector<Span> ranges;
    uint64_t count = 0;
  };
  std::array<PseudonymPages, 2> pseudonym_ranges_;  // of processes and of kernels
  std::unordered_map<Page, uint64_t, HashPage> pseudonym_pages_;
  std::unordered_set<uint64_t> taken_pages_;
  std::array<MovedPage, kMovedPages> moved_pages_;
  uint64_t outside_mappings_ = 0;
};

}  // namespace stackreel::anonymize
