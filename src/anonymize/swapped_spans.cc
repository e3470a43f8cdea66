#include "anonymize/swapped_spans.h"

#include <algorithm>
#include <bit>

namespace stackreel::anonymize {
namespace {

constexpr uint64_t kBlock = uint64_t{1} << 16;

}  // namespace

SwappedSpans::SwappedSpans(std::span<const Span> spans) {
  constexpr uint64_t k4GB = uint64_t{1} << 32, kPage = 4096;
  for (const Span& span : spans) {
    if (span.size() <= k4GB) {
      spans_.push_back(span);
    } else {
      spans_.push_back({span.start, span.start + kPage});
      spans_.push_back({span.end - kPage, span.end});
    }
  }
  Coalesce(spans_);
  for (const Span& span : spans_) {
    for (uint64_t top = span.start >> 48; top <= (span.end - 1) >> 48; ++top) {
      endings_.push_back(std::byteswap(static_cast<uint16_t>(top)));
    }
  }
  std::ranges::sort(endings_);
  endings_.erase(std::ranges::unique(endings_).begin(), endings_.end());
}

bool SwappedSpans::Has(uint64_t address) const {
  const uint64_t swapped = std::byteswap(address);
  return swapped != UINT64_MAX && Overlaps(spans_, swapped, swapped + 1);
}

bool SwappedSpans::HasAnyOf(uint64_t start, uint64_t end) const {
  constexpr uint64_t kMostAsked = 4096;
  if ((end - start) / kBlock * endings_.size() > kMostAsked) return false;
  for (uint64_t block = start & ~(kBlock - 1); block < end; block += kBlock) {
    for (const uint16_t ending : endings_) {
      const uint64_t address = block | ending;
      if (address >= start && address < end && Has(address)) return true;
    }
    if (block > UINT64_MAX - kBlock) break;
  }
  return false;
}

}  // namespace stackreel::anonymize
