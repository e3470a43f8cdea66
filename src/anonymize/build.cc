#include "anonymize/build.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <utility>

#include "base/interval_map.h"
#include "base/pointer_code.h"
#include "session/limits.h"

namespace stackreel::anonymize {
namespace {

constexpr uint64_t kHugePage = uint64_t{2} << 20;
// Code and data of one file reach each other by 32-bit offsets.
constexpr uint64_t kModuleReach = uint64_t{2} << 30;

// Which mappings move together.
class Groups {
 public:
  explicit Groups(size_t count) : parents_(count) {
    std::iota(parents_.begin(), parents_.end(), 0);
  }
  size_t Of(size_t i) {
    while (parents_[i] != i) i = parents_[i] = parents_[parents_[i]];
    return i;
  }
  void Join(size_t a, size_t b) { parents_[Of(a)] = Of(b); }

 private:
  std::vector<size_t> parents_;
};

// A file's mapping, or memory without one.
struct Kind {
  bool anonymous = false;
};
void Advance(Kind&, uint64_t) {}

// Neighbours, and segments of one module.
Groups GroupMappings(const std::vector<const CollectedMapping*>& mappings) {
  Groups groups(mappings.size());
  std::map<StringInterner::Id, size_t> last_of;
  std::map<std::pair<StringInterner::Id, uint64_t>, size_t> same_invariant;
  size_t reaching = 0;  // that ends last of those seen
  for (size_t i = 0; i < mappings.size(); ++i) {
    const CollectedMapping& mapping = *mappings[i];
    if (i != 0 && mapping.start <= mappings[reaching]->end) groups.Join(i, reaching);
    if (mapping.end > mappings[reaching]->end) reaching = i;
    if (mapping.kind != MappingKind::kFile) continue;
    const auto [last, first] = last_of.try_emplace(mapping.module, i);
    if (!first && mapping.start - mappings[last->second]->start <= kModuleReach) {
      groups.Join(i, last->second);
    }
    last->second = i;
    // The kernel or a reader may have split one mapping.
    const auto [same, is_new] =
        same_invariant.try_emplace({mapping.module, mapping.start - mapping.pgoff}, i);
    if (!is_new) groups.Join(i, same->second);
  }
  return groups;
}

// Text that was copied to huge pages is known by lying at one, over its file's mapping.
bool IsHugePageText(const CollectedMapping& mapping, const IntervalMap<Kind>& files) {
  if (mapping.kind != MappingKind::kAnonymous) return false;
  if (mapping.start % kHugePage != 0 || mapping.end % kHugePage != 0) return false;
  const auto* under = files.Find(mapping.start);
  return under != nullptr && mapping.end <= under->end;
}

// A 32-bit task on a 64-bit kernel: its vdso shows where it ends.
bool IsNarrow(const std::vector<const CollectedMapping*>& mappings, const StringInterner& names) {
  const auto lies_low = [](const CollectedMapping* m) { return m->end <= UINT64_C(1) << 32; };
  return std::ranges::all_of(mappings, lies_low) &&
         std::ranges::any_of(mappings, [&](const CollectedMapping* m) {
           return names.Text(m->module).starts_with("[vdso");
         });
}

Span ArenaOf(const AddressWidth& width, bool kernel, bool narrow) {
  constexpr uint64_t k64K = uint64_t{1} << 16, k4G = uint64_t{1} << 32;
  if (!width.is_64_bit) {
    constexpr uint64_t kBoundary = 0xc0000000;
    return kernel ? Span{kBoundary, k4G - k64K} : Span{k64K, kBoundary};
  }
  if (width.has_signatures && !narrow) {
    // The upper half of each, so that the highest mapping needs as many bits as before, and bits
    // that readers take for a signature's are those of every kernel address.
    const unsigned bits = width.user_bits;
    return kernel ? Span{~uint64_t{0} << (bits - 1), ~uint64_t{0} << 32}
                  : Span{uint64_t{1} << (bits - 1), (uint64_t{1} << bits) - k64K};
  }
  if (kernel) return {~uint64_t{0} << width.user_bits, ~uint64_t{0} << 32};
  return narrow ? Span{k64K, k4G - k64K} : Span{k4G, (uint64_t{1} << width.user_bits) - k4G};
}

}  // namespace

Span PseudonymsOf(const AddressWidth& width, bool kernel) {
  if (width.is_64_bit) {
    // 0x200000000000 and 0xffffa00000000000, where addresses are not smaller.
    const unsigned bits = width.has_signatures ? width.user_bits : 48;
    const uint64_t half = kernel ? ~uint64_t{0} << (bits - 1) : 0;
    const uint64_t start = half + (uint64_t{1} << (bits - 3));
    return {start, start + (uint64_t{1} << (bits - 4))};
  }
  constexpr uint64_t kSize = uint64_t{1} << 28;
  const uint64_t start = kernel ? 0xe0000000 : 0x20000000;
  return {start, start + kSize};
}

Remap::Remap(const Collected& collected, const Key& key)
    : collected_(collected),
      places_(key.For("places")),
      pages_(key.For("pages")),
      pseudonyms_(key.For("pseudonyms")),
      spaces_(collected.spaces.size()) {}

Result<std::unique_ptr<Remap>> Remap::Build(const Collected& collected, const Key& key) {
  std::unique_ptr<Remap> remap(new Remap(collected, key));
  remap->CollectOriginals();
  for (SpaceId space = 0; space < collected.spaces.size(); ++space) TRY(remap->Place(space));
  return remap;
}

void Remap::CollectOriginals() {
  const uint64_t page = collected_.page_size;
  for (const CollectedSpace& space : collected_.spaces) {
    for (const CollectedMapping& mapping : space.mappings) {
      const uint64_t start = mapping.start & ~(page - 1);
      originals_.push_back({start, start + ((mapping.end - start + page - 1) & ~(page - 1))});
    }
  }
  for (const KernelExtent& extent : collected_.impossible) {
    const uint64_t last = std::min(extent.end - 1, UINT64_MAX - page) & ~(page - 1);
    const uint64_t start = extent.start & ~(page - 1);
    if (start <= last) originals_.push_back({start, last + page});
  }
  swapped_ = SwappedSpans(originals_);
  Coalesce(originals_);
  for (const bool kernel : {false, true}) {
    const Span all = PseudonymsOf(collected_.width, kernel);
    PseudonymPages& pages = pseudonym_ranges_[kernel ? 1 : 0];
    std::vector<Span>& ranges = pages.ranges;
    uint64_t at = all.start;
    for (const Span& original : originals_) {
      if (original.end <= at || original.start >= all.end) continue;
      if (original.start > at) ranges.push_back({at / page, original.start / page});
      at = original.end;
    }
    if (at < all.end) ranges.push_back({at / page, all.end / page});
    if (ranges.empty()) ranges.push_back({all.start / page, all.end / page});
    for (const Span& range : ranges) pages.count += range.size();
  }
}

Status Remap::Place(SpaceId space) {
  std::vector<const CollectedMapping*> mappings;
  IntervalMap<Kind> kinds, files;
  for (const CollectedMapping& mapping : collected_.spaces[space].mappings) {
    if (mapping.start >= mapping.end) continue;
    mappings.push_back(&mapping);
    if (mapping.kind == MappingKind::kAnonymous) kinds.Assign(mapping.start, mapping.end, {true});
  }
  for (const CollectedMapping* mapping : mappings) {
    if (mapping->kind == MappingKind::kAnonymous) continue;
    kinds.Assign(mapping->start, mapping->end, {false});
    files.Assign(mapping->start, mapping->end, {false});
  }
  Groups groups = GroupMappings(mappings);

  const uint64_t page = collected_.page_size;
  std::map<size_t, size_t> movable_of;  // by group
  std::vector<Movable> movables;
  for (size_t i = 0; i < mappings.size(); ++i) {
    const Span span = {mappings[i]->start & ~(page - 1), ((mappings[i]->end - 1) | (page - 1)) + 1};
    const auto [it, is_new] = movable_of.try_emplace(groups.Of(i), movables.size());
    if (is_new) movables.push_back({span, page});
    Movable& movable = movables[it->second];
    movable.span.start = std::min(movable.span.start, span.start);
    movable.span.end = std::max(movable.span.end, span.end);
    movable.told.push_back(mappings[i]->start);
    if (mappings[i]->kind == MappingKind::kKernel) movable.told.push_back(mappings[i]->pgoff);
    if (IsHugePageText(*mappings[i], files)) movable.alignment = std::max(page, kHugePage);
  }
  const bool kernel = space < kFirstUserSpace;
  const Arena arena = {
      ArenaOf(collected_.width, kernel, !kernel && IsNarrow(mappings, collected_.names)), page,
      originals_, PseudonymsOf(collected_.width, kernel), &swapped_};
  TRY_ASSIGN(const std::vector<uint64_t> deltas, PlaceAll(movables, arena, places_, space));

  // Each stretch of one kind lies in mappings of one group.
  std::vector<Segment>& segments = spaces_[space].segments;
  size_t next = 0;
  for (const auto& entry : kinds.entries()) {
    while (mappings[next]->end <= entry.start) ++next;
    segments.push_back(
        {entry.start, entry.end, deltas[movable_of[groups.Of(next)]], entry.value.anonymous});
  }
  return {};
}

const Remap::Segment* Remap::Find(SpaceId space, uint64_t address) const {
  if (space >= spaces_.size()) return nullptr;
  const Space& in = spaces_[space];
  const auto holds = [address](const Segment& s) { return address >= s.start && address < s.end; };
  if (in.last < in.segments.size() && holds(in.segments[in.last])) return &in.segments[in.last];
  const auto after = std::ranges::upper_bound(in.segments, address, {}, &Segment::start);
  if (after == in.segments.begin() || !holds(*std::prev(after))) return nullptr;
  in.last = static_cast<size_t>(std::prev(after) - in.segments.begin());
  return &in.segments[in.last];
}

uint64_t Remap::Pseudonym(SpaceId space, uint64_t address) {
  const uint64_t page_size = collected_.page_size;
  const Page page = {space, address / page_size};
  const auto [it, is_new] = pseudonym_pages_.try_emplace(page);
  if (is_new) {
    const auto& [ranges, pages] = pseudonym_ranges_[space < kFirstUserSpace ? 1 : 0];
    const auto tells_swapped = [&](uint64_t n) {
      return swapped_.HasAnyOf(n * page_size, n * page_size + page_size);
    };
    const auto nth = [&](uint64_t n) {
      auto range = ranges.begin();
      for (; n >= range->size(); ++range) n -= range->size();
      return range->start + n;
    };
    const uint64_t first = pseudonyms_.Of({space, page.number}) % pages;
    uint64_t number = nth(first);
    // Pages that are taken are stepped over, unless nearly all are.
    for (uint64_t i = 0; i < pages && taken_pages_.size() < pages / 2; ++i) {
      number = nth((first + i) % pages);
      if (number == page.number || tells_swapped(number)) continue;
      if (taken_pages_.insert(number).second) break;
    }
    it->second = number;
  }
  ++outside_mappings_;
  return it->second * page_size + address % page_size;
}

uint64_t Remap::PlainCode(uint64_t address) const {
  const AddressWidth& width = collected_.width;
  return width.has_signatures ? StripCode(address, ~uint64_t{0} << width.user_bits) : address;
}

uint64_t Remap::PlainData(uint64_t address) const {
  if (collected_.width.has_signatures) return StripTag(address);
  return collected_.features.arch == "x86_64" ? StripTagX86(address) : address;
}

bool Remap::IsNearMapping(SpaceId space, uint64_t start, uint64_t end) const {
  if (space >= spaces_.size()) return false;
  // One behind a mapping's end is a return address of its last call.
  const auto& segments = spaces_[space].segments;
  const auto reaches = std::ranges::lower_bound(segments, start, {}, &Segment::end);
  return reaches != segments.end() && reaches->start < end;
}

uint64_t Remap::CodeOfNewPage(SpaceId space, uint64_t address) {
  if (address == 0) return 0;
  const uint64_t number = address >> kMovedPageShift;
  const uint64_t start = number << kMovedPageShift;
  constexpr uint64_t kSize = uint64_t{1} << kMovedPageShift;
  if (const Segment* segment = Find(space, address)) {
    const bool is_whole = segment->start <= start && segment->end - start >= kSize;
    // 0 stays 0, whatever lies around it.
    if (is_whole && number != 0) MovedPageOf(space, number) = {number, segment->delta, space};
    return address + segment->delta;
  }
  if (const Segment* segment = Find(space, address - 1)) return address + segment->delta;
  const uint64_t pseudonym = Pseudonym(space, address);
  if (number != 0 && start <= UINT64_MAX - kSize && !IsNearMapping(space, start, start + kSize)) {
    MovedPageOf(space, number) = {number, pseudonym - address, space, /*is_outside=*/true};
  }
  return pseudonym;
}

uint64_t Remap::Data(SpaceId space, uint64_t address) {
  address = PlainData(address);
  const Segment* segment = Find(space, address);
  if (segment == nullptr || !segment->anonymous) return Code(space, address);
  const uint64_t page = collected_.page_size;
  // Parts of pages at either end stay where they are.
  const uint64_t first = (segment->start + page - 1) & ~(page - 1);
  const uint64_t end = segment->end & ~(page - 1);
  if (address < first || address >= end) return address + segment->delta;
  const uint64_t permuted =
      pages_.Permute((address - first) / page, (end - first) / page, first ^ space);
  return first + permuted * page + address % page + segment->delta;
}

SpaceId Remap::SpaceAt(SpaceId user_space, Machine machine, uint64_t address) const {
  address = PlainData(address);
  if (Find(user_space, address) != nullptr) return user_space;
  if (Find(KernelOf(machine), address) != nullptr) return KernelOf(machine);
  constexpr uint64_t kBoundary32 = 0xc0000000;
  const bool kernel = collected_.width.is_64_bit ? (address >> 63) != 0 : address >= kBoundary32;
  return kernel ? KernelOf(machine) : user_space;
}

uint64_t Remap::Anywhere(uint64_t address) {
  for (SpaceId space = 0; space < spaces_.size(); ++space) {
    if (Find(space, address) != nullptr) return Code(space, address);
  }
  return Code(SpaceAt(kNobodysSpace, Machine::kHost, address), address);
}

MovedMapping Remap::Mapping(SpaceId space, const MappingRecord& mapping) {
  const MappingKind kind = KindOf(mapping, space < kFirstUserSpace);
  if (space < kFirstUserSpace) {
    const KernelExtent extent =
        ExtentOfKernel(kind, mapping.addr, mapping.len, mapping.pgoff, collected_.width);
    const uint64_t pgoff = kind == MappingKind::kKernel || IsOriginal(mapping.pgoff)
                               ? Code(space, mapping.pgoff)
                               : mapping.pgoff;
    if (extent.start >= extent.end) {
      // As before, it is nothing, or (nothing is known) all that is no module's.
      const bool is_nothing = kind == MappingKind::kModule || mapping.pgoff != 0;
      return {0, is_nothing ? 0 : UINT64_MAX - collected_.page_size + 1, pgoff};
    }
    const uint64_t start = Code(space, extent.start);
    // A symbol of a kernel that does not lie in it is none.
    const bool is_outside = kind == MappingKind::kKernel && mapping.pgoff != 0 &&
                            (mapping.pgoff < extent.start || mapping.pgoff >= extent.end);
    return {start, extent.end - extent.start, is_outside ? start : pgoff};
  }
  // A mapping at 0 moves as what lies in it does; the address 0 itself is none.
  const Segment* const segment = Find(space, mapping.addr);
  const uint64_t addr =
      segment != nullptr ? mapping.addr + segment->delta : Code(space, mapping.addr);
  if (kind == MappingKind::kAnonymous && mapping.pgoff != 0) return {addr, mapping.len, addr};
  const bool is_offset = mapping.pgoff < session::kCodeOffsetEnd || !IsOriginal(mapping.pgoff);
  return {addr, mapping.len, is_offset ? mapping.pgoff : Anywhere(mapping.pgoff)};
}

bool Remap::IsOriginal(uint64_t value) const {
  return value != UINT64_MAX && Overlaps(originals_, value, value + 1);
}

}  // namespace stackreel::anonymize
