#include "patch/site.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/check.h"

namespace stackreel::patch {
namespace {

constexpr uint8_t kJmpRel32 = 0xe9;
constexpr uint8_t kCallRel32 = 0xe8;
constexpr uint8_t kJmpRel8 = 0xeb;
constexpr uint8_t kRet = 0xc3;
constexpr uint8_t kSledLanding = 2;  // behind the short jump of a patched sled

// What RangeOf(kAside), (kHead), (kTail) are, by kind. A sled's depend on its bytes.
struct KindShape {
  uint8_t before;
  uint8_t branch;      // bytes of the branch at the entry; 1: only the head
  uint8_t min_length;  // of the original, padding not counted
};
constexpr std::array<KindShape, kSiteKinds> kShapes = {{
    {0, kBranchLength, kBranchLength},                    // kNop
    {0, kBranchLength, kBranchLength},                    // kCall
    {0, 1, kSledLength},                                  // kXraySled
    {0, kBranchLength, kBranchLength},                    // kPrologue
    {kBranchLength, kShortJumpLength, kShortJumpLength},  // kPadding
    {0, 1, 1},                                            // kTrap
}};
const KindShape& ShapeOf(SiteKind kind) { return kShapes[static_cast<size_t>(kind)]; }

std::optional<int32_t> Displacement(Avma behind, Avma target) {
  const auto distance = static_cast<int64_t>(target.value - behind.value);
  if (distance < std::numeric_limits<int32_t>::min() ||
      distance > std::numeric_limits<int32_t>::max()) {
    return std::nullopt;
  }
  return static_cast<int32_t>(distance);
}

// Stores `jmp target` at offset of a site that begins at `begin`.
bool PutJump(SiteBytes& bytes, size_t offset, Avma begin, Avma target) {
  const auto displacement = Displacement(begin + offset + kBranchLength, target);
  if (!displacement) return false;
  bytes.bytes[offset] = kJmpRel32;
  StoreUnaligned(bytes.bytes.data() + offset + 1, *displacement, Endian::kLittle);
  return true;
}

// Where the 5-byte branch of the patched form begins, from begin(); nothing for a trap.
std::optional<size_t> BranchOffset(SiteKind kind) {
  switch (kind) {
    case SiteKind::kNop:
    case SiteKind::kCall:
    case SiteKind::kPrologue:
    case SiteKind::kPadding:
      return 0;
    case SiteKind::kXraySled:
      return kSledLanding;
    case SiteKind::kTrap:
      return std::nullopt;
  }
  return std::nullopt;
}

bool LengthFits(const Site& site) {
  const KindShape& shape = ShapeOf(site.kind);
  return site.before == shape.before &&
         site.original.length >= size_t{shape.before} + shape.min_length &&
         site.original.length <= kMaxSiteLength;
}

Status Bad(const Site& site, std::string_view why) {
  return Fail(ErrorKind::kDamaged,
              fmt::format("site {:#x} ({}): {}", site.address.value, ToString(site.kind), why));
}

// Over the rest of it, or out of the function.
bool BeginsAsSled(const SiteBytes& original) {
  return original.bytes[0] == kRet ||
         (original.bytes[0] == kJmpRel8 && original.bytes[1] == kSledLength - kShortJumpLength);
}

// The map covers all of the entry, in ascending order.
bool MapFits(const Site& site) {
  const x86::RelocationMap& map = site.map;
  if (map.size() == 0) return true;
  if (map.size() < 2 || map.entry(0) != x86::RelocationMap::Entry{}) return false;
  for (size_t i = 1; i < map.size(); ++i) {
    if (map.entry(i).from <= map.entry(i - 1).from || map.entry(i).to <= map.entry(i - 1).to) {
      return false;
    }
  }
  return map.original_length() == site.original.length - site.before;
}

}  // namespace

std::string_view ToString(SiteKind kind) {
  switch (kind) {
    case SiteKind::kNop:
      return "nop";
    case SiteKind::kCall:
      return "call";
    case SiteKind::kXraySled:
      return "xray";
    case SiteKind::kPrologue:
      return "prologue";
    case SiteKind::kPadding:
      return "padding";
    case SiteKind::kTrap:
      return "trap";
  }
  return "unknown";
}

std::string_view ToString(Refusal refusal) {
  switch (refusal) {
    case Refusal::kTooShort:
      return "too short";
    case Refusal::kBranchIntoPrologue:
      return "branch into prologue";
    case Refusal::kCallInside:
      return "call inside prologue";
    case Refusal::kNotRelocatable:
      return "not relocatable";
    case Refusal::kUndecodable:
      return "not decodable";
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
    case SiteKind::kXraySled:
      return address + kSledLanding;
    case SiteKind::kPadding:
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
  if (site.kind == SiteKind::kXraySled) {
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
      return {shape.before, 1};
    case Part::kTail:
      return {static_cast<uint8_t>(shape.before + 1), static_cast<uint8_t>(shape.branch - 1)};
    case Part::kAside:
      return {0, shape.before};
    case Part::kBranch:
      return {shape.before, shape.branch};
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
  switch (site.kind) {
    case SiteKind::kNop:
    case SiteKind::kCall:
    case SiteKind::kPrologue:
      break;
    case SiteKind::kXraySled:
      patched.bytes[0] = kJmpRel8;
      patched.bytes[1] = 0;
      break;
    case SiteKind::kPadding:
      patched.bytes[kBranchLength] = kJmpRel8;
      patched.bytes[kBranchLength + 1] = static_cast<uint8_t>(-(kBranchLength + kShortJumpLength));
      break;
    case SiteKind::kTrap:
      patched.bytes[0] = kTrapByte;
      break;
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
  if (site.kind == SiteKind::kXraySled && !BeginsAsSled(site.original)) return Bad(site, "no sled");
  auto patched = MakePatchedForm(site);
  if (!patched) return Bad(site, ToString(patched.error()));
  // A site may call its stub instead.
  if (site.kind == SiteKind::kNop || site.kind == SiteKind::kCall) {
    if (site.patched.bytes[0] == kCallRel32) patched->bytes[0] = kCallRel32;
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
