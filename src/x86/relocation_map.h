// Where each instruction of a piece of relocated code has gone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace stackreel::x86 {

// A relocated piece is as short as whole instructions allow to cover a 5-byte jump: at most
// 4 bytes before its last instruction begins, and that one is at most 15 bytes long.
inline constexpr size_t kMaxRelocatedLength = 4 + 15;
// What its copy takes at most: the longest that short instructions before the last, and the last,
// can become (relocate.cc), and some.
inline constexpr size_t kMaxCopyLength = 64;

// old offset → new offset, one entry an instruction and one for the end of the piece. Never byte by
// byte: a relocated instruction can be longer than the original (a short jump becomes a near one),
// so an offset inside an instruction has no counterpart. Plain data, that an agent without
// allocation can keep and search.
//
//   original   |push rbp|mov rbp,rsp|jz +8   |        offsets 0, 1, 4, 6
//   relocated  |push rbp|mov rbp,rsp|jz +....|jmp …   offsets 0, 1, 4, 10
//
// A boundary of the copy counts only where the copy of an original instruction begins. Some copies
// are several instructions (see relocate.h), and between those lies no state that the original ever
// has. So a thread can always be moved from the original to the copy (To), and back (From) only
// from a boundary that counts; elsewhere in the copy it must first run on, at most two
// instructions. Unpatching moves nobody back: the copy stays for good.
class RelocationMap {
 public:
  struct Entry {
    uint8_t from = 0;
    uint8_t to = 0;
    friend constexpr bool operator==(Entry, Entry) = default;
  };
  // One entry an instruction (at most one a byte up to the fifth byte), and the end.
  static constexpr size_t kCapacity = 6;

  // Entries come in ascending order of both members, the first is {0, 0}. False if there is no
  // room.
  constexpr bool Add(Entry entry) {
    if (count_ == kCapacity) return false;
    entries_[count_++] = entry;
    return true;
  }
  [[nodiscard]] constexpr size_t size() const { return count_; }
  [[nodiscard]] constexpr Entry entry(size_t i) const { return entries_[i]; }
  // Bytes of the original and of the relocated piece (without the jump back behind it).
  [[nodiscard]] constexpr uint8_t original_length() const { return count_ == 0 ? 0 : last().from; }
  [[nodiscard]] constexpr uint8_t relocated_length() const { return count_ == 0 ? 0 : last().to; }

  // Where an instruction that began at `from` begins now; nothing if none began there.
  [[nodiscard]] constexpr std::optional<uint8_t> To(uint8_t from) const {
    for (size_t i = 0; i < count_; ++i) {
      if (entries_[i].from == from) return entries_[i].to;
    }
    return std::nullopt;
  }
  // The way back: where the instruction that begins at `to` stood.
  [[nodiscard]] constexpr std::optional<uint8_t> From(uint8_t to) const {
    for (size_t i = 0; i < count_; ++i) {
      if (entries_[i].to == to) return entries_[i].from;
    }
    return std::nullopt;
  }
  friend constexpr bool operator==(const RelocationMap&, const RelocationMap&) = default;

 private:
  [[nodiscard]] constexpr Entry last() const { return entries_[count_ - 1]; }

  std::array<Entry, kCapacity> entries_ = {};
  uint8_t count_ = 0;
};

}  // namespace stackreel::x86
