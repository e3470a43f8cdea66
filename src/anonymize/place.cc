#include "anonymize/place.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "anonymize/swapped_spans.h"

namespace stackreel::anonymize {
namespace {

class Placer {
 public:
  Placer(const Arena& arena, const KeyedHash& hash, uint64_t salt)
      : arena_(arena), hash_(hash), salt_(salt) {}

  // The new start; nothing if there is no room.
  std::optional<uint64_t> Place(const Movable& movable, uint64_t ordinal);

 private:
  [[nodiscard]] bool IsFree(uint64_t start, uint64_t size, bool avoid) const;
  // Whether there an address that may be told is another's, swapped.
  [[nodiscard]] bool TellsSwapped(const Movable& movable, uint64_t start) const;
  [[nodiscard]] std::optional<uint64_t> FirstFree(const Movable& movable) const;
  [[nodiscard]] uint64_t Align(uint64_t start, const Movable& movable) const {
    return start + ((movable.span.start - start) & (movable.alignment - 1));
  }

  const Arena& arena_;
  const KeyedHash& hash_;
  uint64_t salt_;
  std::map<uint64_t, uint64_t> placed_;  // start → end
};

bool Placer::IsFree(uint64_t start, uint64_t size, bool avoid) const {
  const Span& all = arena_.span;
  if (start < all.start || start >= all.end || size > all.end - start) return false;
  const uint64_t end = start + size;
  if (start < arena_.never.end && end > arena_.never.start) return false;
  // The first that ends behind us, with the gap.
  auto next = placed_.upper_bound(start);
  if (next != placed_.begin() && std::prev(next)->second + arena_.gap > start) return false;
  if (next != placed_.end() && next->first < end + arena_.gap) return false;
  return !avoid || !Overlaps(arena_.avoid, start, end);
}

bool Placer::TellsSwapped(const Movable& movable, uint64_t start) const {
  if (arena_.swapped == nullptr) return false;
  const auto is_swapped = [&](uint64_t told) {
    return arena_.swapped->Has(told + (start - movable.span.start));
  };
  return std::ranges::any_of(movable.told, is_swapped) ||
         arena_.swapped->HasAnyOf(start, start + movable.span.size());
}

std::optional<uint64_t> Placer::Place(const Movable& movable, uint64_t ordinal) {
  constexpr uint64_t kTries = 64;
  const uint64_t size = movable.span.size();
  const Span& all = arena_.span;
  if (size > all.size()) return std::nullopt;
  std::optional<uint64_t> found;
  for (uint64_t i = 0; i < 3 * kTries && !found; ++i) {
    const uint64_t offset = hash_.Of({salt_, ordinal, i}) % (all.size() - size + 1);
    const uint64_t start = Align(all.start + offset, movable);
    if (!IsFree(start, size, /*avoid=*/i < 2 * kTries)) continue;
    if (i >= kTries || !TellsSwapped(movable, start)) found = start;
  }
  if (!found) found = FirstFree(movable);
  if (found) placed_[*found] = *found + size;
  return found;
}

// Behind the start of the arena, what was placed, or what must not be used.
std::optional<uint64_t> Placer::FirstFree(const Movable& movable) const {
  const auto fits = [&](uint64_t from) -> std::optional<uint64_t> {
    const uint64_t start = Align(from, movable);
    if (start < from || !IsFree(start, movable.span.size(), /*avoid=*/false)) return std::nullopt;
    return start;
  };
  if (const auto start = fits(arena_.span.start)) return start;
  if (const auto start = fits(arena_.never.end)) return start;
  for (const auto& [start, end] : placed_) {
    if (const auto free = fits(end + arena_.gap)) return free;
  }
  return std::nullopt;
}

}  // namespace

void Coalesce(std::vector<Span>& spans) {
  std::ranges::sort(spans);
  size_t kept = 0;
  for (const Span& span : spans) {
    if (kept != 0 && span.start <= spans[kept - 1].end) {
      spans[kept - 1].end = std::max(spans[kept - 1].end, span.end);
    } else {
      spans[kept++] = span;
    }
  }
  spans.resize(kept);
}

bool Overlaps(std::span<const Span> spans, uint64_t start, uint64_t end) {
  const auto after = std::ranges::upper_bound(spans, start, {}, &Span::end);
  return after != spans.end() && after->start < end;
}

Result<std::vector<uint64_t>> PlaceAll(std::span<const Movable> movables, const Arena& arena,
                                       const KeyedHash& hash, uint64_t salt) {
  Placer placer(arena, hash, salt);
  // The largest first: what is small finds room between.
  std::vector<size_t> order(movables.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [&](size_t i) { return movables[i].span.size(); });
  std::vector<uint64_t> deltas(movables.size());
  for (const size_t i : order) {
    const std::optional<uint64_t> start = placer.Place(movables[i], i);
    if (!start) {
      return Fail(ErrorKind::kDamaged,
                  fmt::format("mappings of {} bytes do not fit into the {} bytes of a process",
                              movables[i].span.size(), arena.span.size()));
    }
    deltas[i] = *start - movables[i].span.start;
  }
  return deltas;
}

}  // namespace stackreel::anonymize
