// A patch site: the bytes at a function's entry (or exit) that are switched, as data.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string_view>
#include <type_traits>

#include "base/address.h"
#include "base/bytes.h"
#include "base/error.h"
#include "x86/emit.h"
#include "x86/prologue.h"
#include "x86/relocation_map.h"

namespace stackreel::patch {

using x86::SiteKind;
inline constexpr size_t kSiteKinds = 7;

// Why a site that x86::ChooseSite has found cannot be patched in this process, or not now.
enum class Refusal : uint8_t {
  kTooShort,     // fewer bytes than its kind needs
  kOutOfReach,   // no room for out-of-line code within 2 GB
  kNotWritable,  // the module's code cannot be written
  kShadowStack,  // what would need a changed return address
  kTrapBlocked,  // a thread blocks SIGTRAP, and the site can only be patched by a trap
  kCrossesPage,  // threads must be stopped, and one write could store a part of the branch
  kNot64Bit,     // 32-bit code
  kModified,     // memory differs from the file: someone else's hook, a uprobe
  kOverlap,      // shares bytes with another site
};
[[nodiscard]] std::string_view ToString(Refusal refusal);

inline constexpr uint8_t kTrapByte = x86::kInt3;
inline constexpr uint8_t kBranchLength = x86::kJumpLength;  // call or jmp, 32-bit displacement
inline constexpr uint8_t kShortJumpLength = x86::kShortJumpLength;
inline constexpr uint8_t kSledLength = 11;
// Padding, an endbr64 perhaps, and whole instructions of at least 2 bytes. A jump needs less.
inline constexpr uint8_t kMaxBefore = kBranchLength + 4;
inline constexpr size_t kMaxSiteLength = kMaxBefore + 1 + 15;
static_assert(kMaxSiteLength >= x86::kMaxRelocatedLength);

// Bytes that replace one another at a site; `length` of them count.
struct SiteBytes {
  std::array<uint8_t, kMaxSiteLength> bytes = {};
  uint8_t length = 0;

  SiteBytes() = default;
  // At most kMaxSiteLength bytes.
  explicit SiteBytes(ByteView view);
  [[nodiscard]] ByteView view() const { return {bytes.data(), length}; }
  friend bool operator==(const SiteBytes&, const SiteBytes&) = default;
};

// The bytes that are stored together. A site has some of them (RangeOf says which).
//
//   kJump   |h|tail   |…behind the branch: never written
//   kShortJump |aside    |h|tail|            aside: the padding, which nothing runs into
//   kSled   |h|aside       | or |.|h|aside    |    aside: what the original jumps over, or what
//                                                      stands behind its ret
//   kTrap       |h|
enum class Part : uint8_t {
  kHead,    // one byte: switches the site, and may be a trap in between
  kTail,    // the rest of the branch at the entry
  kAside,   // what no thread can reach while the head is the original's
  kBranch,  // head and tail at once: one Write, for a process whose threads are stopped
};
enum class Form : uint8_t { kOriginal, kPatched, kTrap };

struct PartRange {
  uint8_t offset = 0;  // from the site's begin()
  uint8_t length = 0;  // 0: the site has no such part
  [[nodiscard]] size_t end() const { return size_t{offset} + length; }
};

// One site of one function. Made whole by planning before anything is published; executing a patch
// only reads it. Plain data, so that it can be kept in memory that it shares with the traced
// process.
//
//   original   |push rbp|mov rbp,rsp|sub rsp,16|      patched   |jmp stub     |...|
//               0        1           4         8                 0             5   8
//   stub       …record the entry…, out of line:
//              |push rbp|mov rbp,rsp|sub rsp,16|jmp site+8|
//
// What x86::ChooseSite has made sure of, as nobody can from here: nothing jumps into the site; no
// instruction but the last is a call (its return address would lie inside, and the thread that will
// return there may be anywhere); nothing falls into the padding.
struct Site {
  uint32_t function = 0;  // id of the function in the trace
  SiteKind kind = SiteKind::kJump;
  uint8_t before = 0;  // kShortJump: bytes before the entry that belong to the site, padding
                       // first; an endbr64 may stand between
  Avma address;        // where threads enter
  SiteBytes original;  // from begin() to end(): what the file and, unpatched, the process has
  SiteBytes patched;   // same length; bytes behind the branch stay as they were
  Avma stub;           // what runs in place of the site while it is patched
  Avma out_of_line;    // what does what the original did, and goes on behind it
  // From `address` → from out_of_line; empty for one instruction. What lies behind its end but
  // within the site is padding.
  x86::RelocationMap map;

  [[nodiscard]] Avma begin() const { return address - before; }
  [[nodiscard]] Avma end() const { return begin() + original.length; }
  [[nodiscard]] const SiteBytes& bytes(Form form) const {
    return form == Form::kOriginal ? original : patched;
  }
  // Where a thread strictly inside the original goes on out of line; nothing where its ip is at no
  // instruction of the original, or at the first, where whatever stands there is run whole.
  [[nodiscard]] std::optional<Avma> MovedOutOfLine(Avma ip) const;
  // The place of the patched form, besides its first byte, at which a thread can be. It gets there
  // by a jump and nothing else has happened, so it can as well begin again at `address`.
  [[nodiscard]] std::optional<Avma> Landing() const;
  // What is pushed where the patched form is a call; 0 where it is a jump.
  [[nodiscard]] Avma PushedReturnAddress() const;
  friend bool operator==(const Site&, const Site&) = default;
};
static_assert(std::is_trivially_copyable_v<Site>);

[[nodiscard]] PartRange RangeOf(const Site& site, Part part);
// The bytes of a part in a form; a trap is kTrapByte, and only a head can be one.
[[nodiscard]] ByteView BytesOf(const Site& site, Part part, Form form);
// Switched by way of a trap, as its branch cannot be stored at once.
[[nodiscard]] bool SwitchesByTrap(SiteKind kind);

// The patched form of a site whose kind, before, address, original and stub are set: `jmp stub`
// where the kind has its branch. Refused: kOutOfReach, and kTooShort for an original that the kind
// cannot be made of.
[[nodiscard]] std::expected<SiteBytes, Refusal> MakePatchedForm(const Site& site);

// Whether a site is what its kind demands: lengths, the patched form leads to the stub and differs
// from the original only where the kind writes, the map covers the entry. For sites that come from
// elsewhere than planning.
[[nodiscard]] Status CheckSite(const Site& site);

// What stands in memory at a site.
enum class MemoryForm : uint8_t {
  kOriginal,
  kPatched,
  kAsideLeft,  // the original but for what no thread reaches, which is still patched
  kBetween,    // what an execution that ended halfway can have left
  kForeign,    // written by somebody else
};
// `memory` are the bytes from begin() to end(). Together with the site that is all it takes to
// finish what an execution that was killed has begun: unpatching is right from each of the forms
// but kForeign (see execute.h).
[[nodiscard]] MemoryForm Assess(const Site& site, ByteView memory);

}  // namespace stackreel::patch
