#include "anonymize/verify_bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <string_view>

namespace stackreel::anonymize {
namespace {

constexpr size_t kWord = 8;

// Two counts side by side, as of events and of texts, or a version and a level.
bool IsTwoCounts(uint64_t value) {
  constexpr uint64_t kUpper = 256, kLower = 65536;
  return value >> 32 < kUpper && static_cast<uint32_t>(value) < kLower;
}

class Search {
 public:
  Search(ByteView bytes, std::span<const FieldSpan> fields, Endian endian,
         const OriginalValues& originals, const std::function<void(const ByteHit&)>& found)
      : bytes_(bytes), fields_(fields), endian_(endian), originals_(originals), found_(found) {}

  void Words();
  void BytesBetweenNumbers();

 private:
  enum class Place : uint8_t { kExempt, kStraddles, kWholeNumber, kNoNumbers };
  [[nodiscard]] Place PlaceOf(size_t begin, size_t end) const;
  void Word(size_t offset, Endian order);
  void WordsOf(size_t begin, size_t end);
  void WordsByPairs(size_t begin, size_t end);
  void Pair(size_t at, size_t begin, size_t end);
  void LowNumber(const FieldSpan& field);
  void NoNumbers(size_t begin, size_t end);
  void Hex(size_t begin, size_t end);
  void HexRun(size_t begin, size_t end);
  void Tell(size_t offset, uint64_t value, std::string_view what, bool in_numbers = false);

  ByteView bytes_;
  std::span<const FieldSpan> fields_;
  Endian endian_;
  const OriginalValues& originals_;
  const std::function<void(const ByteHit&)>& found_;
};

void Search::Tell(size_t offset, uint64_t value, std::string_view what, bool in_numbers) {
  const auto field = std::ranges::find_if(fields_, [offset](const FieldSpan& span) {
    return offset >= span.begin && offset < span.end;
  });
  found_({offset, field == fields_.end() ? nullptr : &*field, fmt::format("{:#x}, {}", value, what),
          in_numbers});
}

Search::Place Search::PlaceOf(size_t begin, size_t end) const {
  size_t in_numbers = 0;
  bool whole = false, part_of_address = false;
  for (const FieldSpan& span : fields_) {
    if (span.end <= begin || span.begin >= end) continue;
    const bool is_whole = span.form == FieldForm::kNumbers && span.width == kWord &&
                          begin >= span.begin && end <= span.end &&
                          (begin - span.begin) % kWord == 0;
    if (span.IsTime() || (span.IsNoAddress() && !is_whole)) return Place::kExempt;
    if (span.form == FieldForm::kBytes) continue;
    in_numbers += std::min(end, span.end) - std::max(begin, span.begin);
    part_of_address = part_of_address || span.IsAddress();
    whole = whole || is_whole;
  }
  if (in_numbers == 0) return Place::kNoNumbers;
  if (whole) return Place::kWholeNumber;
  return part_of_address || in_numbers < kWord ? Place::kExempt : Place::kStraddles;
}

void Search::Word(size_t offset, Endian order) {
  const auto value = LoadUnaligned<uint64_t>(bytes_.data() + offset, order);
  if (!originals_.MayHave(value)) return;
  const bool is_address = originals_.HasAddress(value);
  if (!is_address && !originals_.IsMove(value)) return;
  const Place place = PlaceOf(offset, offset + kWord);
  if (place == Place::kExempt) return;
  if (place == Place::kStraddles && (order != endian_ || IsTwoCounts(value))) return;
  Tell(offset, value,
       is_address ? "an address in " + originals_.Describe(value) : "what a mapping moved by",
       place != Place::kNoNumbers);
}

// Eight bytes of which some are a part of an address do not count, whatever the others are: of
// addresses only whole ones are looked at, and what lies between them by itself.
void Search::Words() {
  size_t begin = 0;
  for (const FieldSpan& span : fields_) {
    if (!span.IsAddresses() || span.begin < begin) continue;
    WordsOf(begin, span.begin);
    for (size_t at = span.begin; at + kWord <= span.end && !span.is_searched; at += kWord) {
      Word(at, Endian::kLittle);
      Word(at, Endian::kBig);
    }
    begin = span.end;
  }
  WordsOf(begin, bytes_.size());
}

void Search::WordsOf(size_t begin, size_t end) {
  if (originals_.is_near()) return WordsByPairs(begin, end);
  for (size_t i = begin; i + kWord <= end; ++i) {
    Word(i, Endian::kLittle);
    Word(i, Endian::kBig);
  }
}

// What is searched for begins (or, little-endian, ends) with two bytes of zeros or of ones: most
// places are passed over because they do not.
void Search::WordsByPairs(size_t begin, size_t end) {
  constexpr uint64_t kLow7 = 0x7f7f7f7f7f7f7f7f;
  // The upper bit of each byte that is zero.
  const auto zeros = [](uint64_t word) { return ~(((word & kLow7) + kLow7) | word | kLow7); };
  const uint8_t* data = bytes_.data();
  size_t at = begin;
  for (; at + kWord < end; at += kWord) {
    const auto first = LoadUnaligned<uint64_t>(data + at, Endian::kLittle);
    const auto second = LoadUnaligned<uint64_t>(data + at + 1, Endian::kLittle);
    uint64_t pairs = zeros(first | second) | zeros(~(first & second));
    for (; pairs != 0; pairs &= pairs - 1) {
      Pair(at + static_cast<size_t>(std::countr_zero(pairs)) / 8, begin, end);
    }
  }
  for (; at + 1 < end; ++at) {
    if (data[at] == data[at + 1] && (data[at] == 0 || data[at] == 0xff)) Pair(at, begin, end);
  }
}

void Search::Pair(size_t at, size_t begin, size_t end) {
  constexpr size_t kBehind = kWord - 2;
  if (at >= begin + kBehind) Word(at - kBehind, Endian::kLittle);
  if (at + kWord <= end) Word(at, Endian::kBig);
}

// Of machines of 32 bits: 64-bit numbers that are where a mapping began.
void Search::LowNumber(const FieldSpan& field) {
  if (originals_.is_64_bit() || field.width != kWord) return;
  // A new address may be what another's was: where there is room for it they are kept apart, and
  // that it is in a mapping is seen elsewhere.
  if (field.IsNoAddress() || field.IsAddress()) return;
  for (size_t i = field.begin; i + kWord <= field.end; i += kWord) {
    const auto value = LoadUnaligned<uint64_t>(bytes_.data() + i, endian_);
    if (!originals_.IsLowStart(value)) continue;
    Tell(i, value, "the start of " + originals_.Describe(value), /*in_numbers=*/true);
  }
}

void Search::BytesBetweenNumbers() {
  size_t begin = 0;
  for (const FieldSpan& field : fields_) {
    if (field.form == FieldForm::kBytes) continue;
    if (field.begin > begin) NoNumbers(begin, field.begin);
    begin = std::max(begin, field.end);
    LowNumber(field);
  }
  if (begin < bytes_.size()) NoNumbers(begin, bytes_.size());
}

void Search::NoNumbers(size_t begin, size_t end) {
  const uint8_t* data = bytes_.data();
  for (size_t i = begin; i + kWord <= end; ++i) {
    const auto value = LoadUnaligned<uint64_t>(data + i, endian_);
    for (const uint64_t number : {value, std::byteswap(value)}) {
      if (number != 0 && originals_.HasPage(number)) {
        Tell(i, number, "the number of a page of " + originals_.Describe(number * kSmallestPage));
      }
    }
  }
  for (size_t i = begin; i + 4 <= end && !originals_.is_64_bit(); ++i) {
    const auto value = LoadUnaligned<uint32_t>(data + i, endian_);
    if (originals_.IsLowStart(value)) Tell(i, value, "the start of " + originals_.Describe(value));
  }
  Hex(begin, end);
}

bool IsHexDigit(uint8_t c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

void Search::Hex(size_t begin, size_t end) {
  for (size_t i = begin; i < end; ++i) {
    if (!IsHexDigit(bytes_[i])) continue;
    const size_t start = i;
    while (i < end && IsHexDigit(bytes_[i])) ++i;
    HexRun(start, i);
  }
}

void Search::HexRun(size_t begin, size_t end) {
  constexpr size_t kMost = 16, kLeast = 8;
  const bool has_prefix =
      begin >= 2 && bytes_[begin - 2] == '0' && (bytes_[begin - 1] | 0x20) == 'x';
  if (!has_prefix && end - begin < kLeast) return;
  const size_t first = end - std::min(end - begin, kMost);
  const std::string_view digits = AsText(bytes_).substr(first, end - first);
  uint64_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (originals_.HasAddress(value)) {
    Tell(first, value, "in hex, an address in " + originals_.Describe(value));
  } else if (originals_.IsMove(value)) {
    Tell(first, value, "in hex, what a mapping moved by");
  } else if (has_prefix && value != 0 && originals_.HasPage(value)) {
    Tell(first, value,
         "in hex, the number of a page of " + originals_.Describe(value * kSmallestPage));
  } else if ((has_prefix || digits.size() == kMost) && originals_.HasLowAddress(value)) {
    Tell(first, value, "in hex, an address in " + originals_.Describe(value));
  } else if (!originals_.is_64_bit() && originals_.IsLowStart(value)) {
    Tell(first, value, "in hex, the start of " + originals_.Describe(value));
  }
}

}  // namespace

void SearchBytes(ByteView bytes, std::span<const FieldSpan> fields, Endian endian,
                 const OriginalValues& originals,
                 const std::function<void(const ByteHit&)>& found) {
  Search search(bytes, fields, endian, originals, found);
  search.Words();
  search.BytesBetweenNumbers();
}

}  // namespace stackreel::anonymize
