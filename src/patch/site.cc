#include "patch/site.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "base/check.h"

namespace stackreel::patch {
namespace {

constexpr uint8_t kCallRel32 = 0xe8;
constexpr uint8_t kJmpRel8 = 0xeb;
constexpr uint8_t kRet = 0xc3;
constexpr uint8_t kSledLanding = 2;  // behind the short jump of a patched sled

// What RangeOf(kAside), (kHead), (kTail) are, by kind. A sled's depend on its bytes.
struct KindShape {
  uint8_t aside;       // bytes at begin() that a short jump leads to
  uint8_t branch;      // bytes of the branch at the entry; 1: only the head
  uint8_t min_length;  // of the original, padding not counted
};
constexpr KindShape kBranch = {0, kBranchLength, kBranchLength};
constexpr std::array<KindShape, kSiteKinds> kShapes = {{
    kBranch,                                              // kNop
    kBranch,                                              // kCall
    {0, 1, kSledLength},                                  // kSled
    kBranch,                                              // kNops
    kBranch,                                              // kJump
    {kBranchLength, kShortJumpLength, kShortJumpLength},  // kShortJump
    {0, 1, 1},                                            // kTrap
}};
static_assert(static_cast<size_t>(SiteKind::kTrap) == kSiteKinds - 1);
const KindShape& ShapeOf(SiteKind kind) { return kShapes[static_cast<size_t>(kind)]; }

// Stores `jmp target` at offset of a site that begins at `begin`.
bool PutJump(SiteBytes& bytes, size_t offset, Avma begin, Avma target) {
  const auto jump = x86::Jump(begin + offset, target);
  if (!jump) return false;
  std::ranges::copy(*jump, bytes.bytes.begin() + static_cast<std::ptrdiff_t>(offset));
  return true;
}

// Where the 5-byte branch of the patched form begins, from begin(); nothing for a trap.
std::optional<size_t> BranchOffset(SiteKind kind) {
  if (kind == SiteKind::kTrap) return std::nullopt;
  return kind == SiteKind::kSled ? kSledLanding : 0;
}

bool LengthFits(const Site& site) {
  const KindShape& shape = ShapeOf(site.kind);
  const bool has_padding = shape.aside != 0;
  return site.before >= shape.aside && site.before <= (has_padding ? kMaxBefore : 0) &&
         site.original.length >= size_t{site.before} + shape.min_length &&
         site.original.length <= kMaxSiteLength;
}

Status Bad(const Site& site, std::string_view why) {
  return Fail(ErrorKind::kDamaged,
              fmt::format("site {:#x} ({}): {}", site.address.value, x86::NameOf(site.kind), why));
}

// Over the rest of it, or out of the function.
bool BeginsAsSled(const SiteBytes& original) {
  return original.bytes[0] == kRet ||
         (original.bytes[0] == kJmpRel8 && original.bytes[1] == kSledLength - kShortJumpLength);
}

// In ascending order, and within the entry.
bool MapFits(const Site& site) {
  const x86::RelocationMap& map = site.map;
  if (map.size() == 0) return true;
  if (map.size() < 2 || map.entry(0) != x86::RelocationMap::Entry{}) return false;
  for (size_t i = 1; i < map.size(); ++i) {
    if (map.entry(i).from <= map.entry(i - 1).from || map.entry(i).to <= map.entry(i - 1).to) {
      return false;
    }
  }
  return map.original_length() <= site.original.length - site.before;
}

}  // namespace

std::string_view ToString(Refusal refusal) {
  switch (refusal) {
    case Refusal::kTooShort:
      return "too short";
    case Refusal::kOutOfReach:
      return "no room within reach";
    case Refusal::kNotWritable:
      return "module not writable";
    case Refusal::kShadowStack:
      return "shadow stack";
    case Refusal::kTrapBlocked:
      return "trap signal blocked";
    case Refusal::kCrossesPage:
      return "crosses a page";
    case Refusal::kNot64Bit:
      return "32-bit";
    case Refusal::kModified:
      return "memory differs from file";
    case Refusal::kOverlap:
      return "overlaps another site";
  }
  return "unknown";
}

SiteBytes::SiteBytes(ByteView view) : length(static_cast<uint8_t>(view.size())) {
  CHECK(view.size() <= kMaxSiteLength);
  std::ranges::copy(view, bytes.begin());
}

std::optional<Avma> Site::MovedOutOfLine(Avma ip) const {
  if (ip <= address || ip >= end()) return std::nullopt;
  const auto to = map.To(static_cast<uint8_t>(ip - address));
  if (!to) return std::nullopt;
  return out_of_line + *to;
}

std::optional<Avma> Site::Landing() const {
  switch (kind) {
    case SiteKind::kSled:
      return address + kSledLanding;
    case SiteKind::kShortJump:
      return begin();
    default:
      return std::nullopt;
  }
}

Avma Site::PushedReturnAddress() const {
  const auto offset = BranchOffset(kind);
  if (!offset || patched.bytes[*offset] != kCallRel32) return Avma(0);
  return begin() + *offset + kBranchLength;
}

bool SwitchesByTrap(SiteKind kind) { return ShapeOf(kind).branch > 1; }

PartRange RangeOf(const Site& site, Part part) {
  const KindShape& shape = ShapeOf(site.kind);
  if (site.kind == SiteKind::kSled) {
    // An entry's sled begins with a short jump over the rest: only its displacement changes. An
    // exit's begins with ret: that becomes the short jump's opcode, once its displacement is there.
    const uint8_t head = site.original.bytes[0] == kJmpRel8 ? 1 : 0;
    switch (part) {
      case Part::kHead:
      case Part::kBranch:
        return {head, 1};
      case Part::kTail:
        return {};
      case Part::kAside:
        return {static_cast<uint8_t>(head + 1),
                static_cast<uint8_t>(kSledLanding + kBranchLength - head - 1)};
    }
  }
  switch (part) {
    case Part::kHead:
      return {site.before, 1};
    case Part::kTail:
      return {static_cast<uint8_t>(site.before + 1), static_cast<uint8_t>(shape.branch - 1)};
    case Part::kAside:
      return {0, shape.aside};
    case Part::kBranch:
      return {site.before, shape.branch};
  }
  return {};
}

ByteView BytesOf(const Site& site, Part part, Form form) {
  if (form == Form::kTrap) {
    CHECK(part == Part::kHead);
    return {&kTrapByte, 1};
  }
  const PartRange range = RangeOf(site, part);
  return site.bytes(form).view().subspan(range.offset, range.length);
}

std::expected<SiteBytes, Refusal> MakePatchedForm(const Site& site) {
  if (!LengthFits(site)) return std::unexpected(Refusal::kTooShort);
  SiteBytes patched = site.original;
  if (const auto offset = BranchOffset(site.kind)) {
    if (!PutJump(patched, *offset, site.begin(), site.stub)) {
      return std::unexpected(Refusal::kOutOfReach);
    }
  }
  if (site.kind == SiteKind::kSled) {
    patched.bytes[0] = kJmpRel8;
    patched.bytes[1] = 0;
  } else if (site.kind == SiteKind::kShortJump) {
    patched.bytes[site.before] = kJmpRel8;
    patched.bytes[site.before + 1] = static_cast<uint8_t>(-(site.before + kShortJumpLength));
  } else if (site.kind == SiteKind::kTrap) {
    patched.bytes[0] = kTrapByte;
  }
  return patched;
}

Status CheckSite(const Site& site) {
  if (static_cast<size_t>(site.kind) >= kSiteKinds) return Bad(site, "no such kind");
  if (!LengthFits(site)) return Bad(site, "its length is not one of its kind");
  if (site.address.value < kMaxSiteLength || site.end() < site.begin()) {
    return Bad(site, "its address is none");
  }
  if (site.original.bytes[site.before] == kTrapByte) return Bad(site, "begins with a trap");
  if (site.kind == SiteKind::kSled && !BeginsAsSled(site.original)) return Bad(site, "no sled");
  auto patched = MakePatchedForm(site);
  if (!patched) return Bad(site, ToString(patched.error()));
  // A site may call its stub instead.
  if (site.kind == SiteKind::kNop || site.kind == SiteKind::kCall) {
    const bool returns_behind = site.original.length == kBranchLength;
    if (returns_behind && site.patched.bytes[0] == kCallRel32) patched->bytes[0] = kCallRel32;
  }
  if (*patched != site.patched) return Bad(site, "the patched form does not lead to the stub");
  if (!MapFits(site)) return Bad(site, "the map of its instructions does not fit");
  return {};
}

MemoryForm Assess(const Site& site, ByteView memory) {
  if (memory.size() != site.original.length) return MemoryForm::kForeign;
  const auto is = [&](Form form) { return std::ranges::equal(memory, site.bytes(form).view()); };
  if (is(Form::kOriginal)) return MemoryForm::kOriginal;
  if (is(Form::kPatched)) return MemoryForm::kPatched;
  const PartRange aside = RangeOf(site, Part::kAside);
  const PartRange head = RangeOf(site, Part::kHead);
  bool aside_only = true;
  for (size_t i = 0; i < memory.size(); ++i) {
    const bool original = memory[i] == site.original.bytes[i];
    const bool trap = i == head.offset && memory[i] == kTrapByte && SwitchesByTrap(site.kind);
    if (!original && memory[i] != site.patched.bytes[i] && !trap) return MemoryForm::kForeign;
    if (i < aside.offset || i >= aside.end()) aside_only = aside_only && original;
  }
  return aside_only ? MemoryForm::kAsideLeft : MemoryForm::kBetween;
}

}  // namespace stackreel::patch
