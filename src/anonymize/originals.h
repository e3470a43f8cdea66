// For verification: what a recording tells of where things lay. Read from its records anew, by
// nothing that the transform uses.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_set>
#include <vector>

#include "anonymize/collect.h"
#include "base/error.h"
#include "base/interner.h"
#include "perfdata/features.h"
#include "perfdata/reader.h"
#include "perfdata/record.h"

namespace stackreel::anonymize {

inline constexpr uint64_t kSmallestPage = 4096;
inline constexpr uint64_t k4GB = uint64_t{1} << 32;

// Ranges of addresses, [start, end).
class AddressRanges {
 public:
  struct Range {
    uint64_t start = 0, end = 0;
    friend auto operator<=>(const Range&, const Range&) = default;
  };
  void Add(uint64_t start, uint64_t end) { ranges_.push_back({start, end}); }
  // Sorts them, and joins those that touch. Call it before what follows.
  void Join();
  [[nodiscard]] bool Has(uint64_t address) const {
    if (address - around_.start >= around_.end - around_.start) return false;
    const uint64_t page = address / kSmallestPage;
    return pages_[page % kPages] == page || HasOfNewPage(address);
  }
  [[nodiscard]] const std::vector<Range>& all() const { return ranges_; }

 private:
  static constexpr size_t kPages = 512;
  [[nodiscard]] bool HasOfNewPage(uint64_t address) const;

  std::vector<Range> ranges_;
  Range around_;  // all of them
  // Pages that lie in them whole, those asked for last.
  mutable std::vector<uint64_t> pages_ = std::vector<uint64_t>(kPages, UINT64_MAX);
};

// Which stretches of 2 MB values lie in, so said that it is quickly asked: wrongly yes now and
// then.
class StretchFilter {
 public:
  void Add(uint64_t value) {
    const uint64_t slot = SlotOf(value);
    bits_[slot / 64] |= uint64_t{1} << (slot % 64);
    near_ = near_ && IsNear(value);
  }
  void AddRange(uint64_t start, uint64_t end) {
    for (uint64_t at = start & ~(kStretch - 1); at < end; at += kStretch) {
      Add(std::max(at, start));
      if (at > UINT64_MAX - kStretch) break;
    }
  }
  [[nodiscard]] bool MayHave(uint64_t value) const {
    const uint64_t slot = SlotOf(value);
    return (bits_[slot / 64] >> (slot % 64) & 1) != 0;
  }
  // Whether the upper 16 bits of all that was added are equal.
  [[nodiscard]] bool is_near() const { return near_; }
  static bool IsNear(uint64_t value) { return value + (uint64_t{1} << 48) < uint64_t{1} << 49; }

 private:
  static constexpr uint64_t kStretch = uint64_t{2} << 20;
  static constexpr unsigned kSlotBits = 16;
  static uint64_t SlotOf(uint64_t value) {
    return value / kStretch * 0x9e3779b97f4a7c15U >> (64 - kSlotBits);
  }
  std::vector<uint64_t> bits_ = std::vector<uint64_t>((size_t{1} << kSlotBits) / 64);
  bool near_ = true;
};

// An MMAP, MMAP2 or KSYMBOL record.
struct SeenMapping {
  uint64_t addr = 0, len = 0, pgoff = 0;
  uint32_t pid = 0;
  StringInterner::Id name = 0;
  bool kernel = false;        // of a kernel's memory, the host's or a guest's
  bool kernel_image = false;  // the kernel proper: pgoff is the address of a symbol
  bool symbol = false;        // KSYMBOL
  bool unregistered = false;  // KSYMBOL of what is no longer there
  bool anonymous = false;     // memory of a process without a file: pgoff may be an address
  uint64_t file_offset = 0;   // of the record

  // Of a kernel's whole half of memory: perf had no symbol to tell where it begins.
  [[nodiscard]] bool IsOfUnknownPlace() const { return kernel && addr == 0 && len >= k4GB; }
};

// Whether the record maps memory of a process beyond all memory (session::ReachesBeyondMemory):
// damage, which does not go out.
bool MapsBeyondMemory(const perfdata::Record& record);

// The mappings of a recording, in the order in which they are given.
class SeenMappings {
 public:
  // Takes the record up if it is one.
  void Add(const perfdata::Record& record, uint64_t file_offset);
  [[nodiscard]] const std::vector<SeenMapping>& all() const { return all_; }
  // Those of processes that reach beyond all memory, which are damage and not among all.
  [[nodiscard]] const std::vector<SeenMapping>& impossible() const { return impossible_; }
  [[nodiscard]] std::string_view NameOf(const SeenMapping& mapping) const {
    return names_.Text(mapping.name);
  }
  // Whether chains came later than their samples.
  [[nodiscard]] bool has_deferred_chains() const { return has_deferred_chains_; }
  // How wide the machine's addresses are, see there: as its name says, or else the addresses.
  [[nodiscard]] AddressWidth Width(const perfdata::Features& features) const;

 private:
  [[nodiscard]] bool Is64Bit(const std::string& arch) const;

  std::vector<SeenMapping> all_, impossible_;
  StringInterner names_;
  bool has_deferred_chains_ = false;
};

// The values of IN that OUT must not hold.
class OriginalValues {
 public:
  OriginalValues() = default;
  OriginalValues(const SeenMappings& in, const AddressWidth& width);
  // What each mapping moved by, if the mappings of `out` are those of `in`, one by one.
  void AddMoves(const SeenMappings& in, const SeenMappings& out);

  // An address of 4 GB or more, in a page that was mapped. Of a mapping of more than 4 GB the first
  // and the last page count, and of a kernel its first 4 GB; the last 16 MB of memory do not: there
  // markers and small negative numbers lie, and nothing that is placed at random. Between 2^57 and
  // 2^63 there is none.
  [[nodiscard]] bool HasAddress(uint64_t value) const { return ranges_.Has(value); }
  // The same below 4 GB, from 64 KB on.
  [[nodiscard]] bool HasLowAddress(uint64_t value) const { return low_.Has(value); }
  // The number of a page that HasAddress is true of.
  [[nodiscard]] bool HasPage(uint64_t number) const {
    return number < (UINT64_MAX / kSmallestPage) + 1 && HasAddress(number * kSmallestPage);
  }
  // By how much (new - original, or the other way) a mapping moved; of 4 GB or more.
  [[nodiscard]] bool IsMove(uint64_t value) const { return moves_.contains(value); }
  // Where a mapping began, exactly: from 16 MB on, below 4 GB, and no multiple of 64 KB.
  [[nodiscard]] bool IsLowStart(uint64_t value) const { return low_starts_.contains(value); }
  // Whether HasAddress or IsMove may be true of a value, said quickly.
  [[nodiscard]] bool MayHave(uint64_t value) const { return filter_.MayHave(value); }
  // Whether the upper 16 bits of what either is true of are all zeros or all ones.
  [[nodiscard]] bool is_near() const { return filter_.is_near(); }
  // What of IN a value is of: "the mapping of libc.so of process 12".
  [[nodiscard]] std::string Describe(uint64_t value) const;
  // How much is mapped below 4 GB.
  [[nodiscard]] uint64_t low_bytes() const { return low_bytes_; }
  [[nodiscard]] bool is_64_bit() const { return width_.is_64_bit; }
  [[nodiscard]] const AddressWidth& width() const { return width_; }

 private:
  void Add(uint64_t start, uint64_t end);
  void AddEnds(uint64_t start, uint64_t end);

  const SeenMappings* in_ = nullptr;
  AddressWidth width_;
  AddressRanges ranges_, low_;
  StretchFilter filter_;  // of ranges_ and moves_
  uint64_t low_bytes_ = 0;
  std::unordered_set<uint64_t> moves_, low_starts_;
};

// Where an address of OUT may be.
class AllowedPlaces {
 public:
  AllowedPlaces() = default;
  // `width`: of IN's machine, by which pseudonyms are chosen.
  AllowedPlaces(const SeenMappings& out, const AddressWidth& width);
  // 0, in a mapping or one byte behind it, or a pseudonym.
  [[nodiscard]] bool Has(uint64_t address) const { return address == 0 || ranges_.Has(address); }

 private:
  AddressRanges ranges_;
};

}  // namespace stackreel::anonymize
