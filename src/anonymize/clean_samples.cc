#include "anonymize/clean_samples.h"

#include <bit>

#include "perfdata/record.h"

namespace stackreel::anonymize {

bool CleanSamples::IsLow(uint64_t address) const {
  constexpr uint64_t kCrowded = uint64_t{1} << 30;
  return originals_.is_64_bit() && originals_.low_bytes() < kCrowded &&
         originals_.HasLowAddress(address);
}

bool CleanSamples::IsSearchedFor(uint64_t number) const {
  const auto is = [this](uint64_t value) {
    return originals_.MayHave(value) && (originals_.HasAddress(value) || originals_.IsMove(value));
  };
  return is(number) || is(std::byteswap(number));
}

// Chains have the same addresses again and again, and what is to be said of one is the same in all
// places: those that are clean are kept in a table, and what a chain ends with as the thread's last
// one does is passed over. (The deferred marker, behind which there is no address, ends neither.)
bool CleanSamples::IsCleanChain(const perfdata::U64Array& chain, uint32_t thread) {
  if (chain.empty() || IsSearchedFor(chain.size())) return false;
  perfdata::ChainTail& last = chains_[thread % kThreads];
  const size_t equal = last.EqualTo(chain.bytes());
  const size_t others = chain.size() - equal / sizeof(uint64_t);
  for (size_t i = 0; i < others; ++i) {
    const uint64_t address = chain[i];
    uint64_t& known = addresses_[(address ^ address >> 12) % kAddresses];
    if (known == address) continue;
    if (IsSearchedFor(address)) return false;
    if (address >= perfdata::kContextMax) {
      if (address == perfdata::kContextUserDeferred) return false;  // a cookie follows
      continue;
    }
    if (IsOutside(address) || IsLow(address)) return false;
    known = address;
  }
  last.Keep(chain.bytes(), equal);
  return true;
}

void CleanSamples::LearnShape(uint32_t event, const perfdata::Attr& attr,
                              std::span<const FieldSpan> fields, size_t size, Level level) {
  if (!originals_.is_64_bit()) return;  // more is looked for
  if (shapes_.size() <= event) shapes_.resize(event + 1);
  if (!shapes_[event]) shapes_[event] = SampleShape::Make(attr, fields, size, level);
}

bool CleanSamples::IsClean(ByteView record, uint32_t event, const perfdata::Sample& sample) {
  const SampleShape& shape = *shapes_[event];
  if (!shape.Fits(record, endian_)) return false;
  const auto is_clean_address = [this](uint64_t address) {
    return !IsOutside(address) && !IsLow(address) && !IsSearchedFor(address);
  };
  const auto is_nothing = [this](uint64_t value) { return !originals_.MayHave(value); };
  return shape.IsClean(record, endian_, is_clean_address, is_nothing) &&
         (sample.callchain.empty() || IsCleanChain(sample.callchain, sample.tid));
}

}  // namespace stackreel::anonymize
