#include "anonymize/attr_scrub.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <concepts>

#include "perfdata/attr_layout.h"
#include "perfdata/sample_layout.h"

namespace stackreel::anonymize {

using perfdata::Attr;
using perfdata::FieldInfo;

namespace {

// Below are lengths, flags and the page that is never mapped.
constexpr uint64_t kLeastAddress = 4096;

// Walks an attr's fields.
class AttrFields {
 public:
  AttrFields(EventKind kind, Level level, Remap& remap, FieldTally& tally)
      : kind_(kind), level_(level), remap_(remap), tally_(tally) {
    tally_.Begin();
  }

  template <std::integral N>
  void operator()(const FieldInfo& field, N& value) {
    const N old = value;
    const Treatment treatment = TreatmentOf(level_, field.sensitivity);
    if (treatment == Treatment::kEvent) {
      value = static_cast<N>(Config(static_cast<uint64_t>(old)));
    } else if (treatment != Treatment::kKeep) {
      value = 0;
    }
    tally_.Add(field, value == old ? Fate::kKept : value == 0 ? Fate::kDropped : Fate::kChanged);
  }
  // What is longer than the attrs we know may be anything.
  void operator()(const FieldInfo& field, std::vector<uint8_t>& tail) {
    tally_.Add(field, tail.empty() ? Fate::kKept : Fate::kDropped);
    tail.clear();
  }

 private:
  uint64_t Config(uint64_t value) {
    if (kind_ == EventKind::kPlain || value < kLeastAddress) return value;
    return kind_ == EventKind::kBreakpoint ? remap_.Anywhere(value) : 0;
  }

  EventKind kind_;
  Level level_;
  Remap& remap_;
  FieldTally& tally_;
};

Attr ScrubAttr(const Attr& attr, EventKind kind, Level level, bool keep_raw, Remap& remap,
               FieldTally& tally) {
  Attr out = attr;
  AttrFields visit(kind, level, remap, tally);
  perfdata::VisitFields(out, perfdata::WireScope(), visit);
  uint64_t dropped = DroppedSampleBits(level);
  if (keep_raw) dropped &= ~uint64_t{perfdata::kSampleRaw};
  out.sample_type &= ~dropped;
  // What is only said of fields that are gone.
  if ((dropped & perfdata::kSampleRegsUser) != 0) out.sample_regs_user = 0;
  if ((dropped & perfdata::kSampleStackUser) != 0) out.sample_stack_user = 0;
  if ((dropped & perfdata::kSampleRegsIntr) != 0) out.sample_regs_intr = 0;
  if ((dropped & perfdata::kSampleAux) != 0) out.aux_sample_size = 0;
  return out;
}

}  // namespace

EventKind KindOfEvent(const Attr& attr, const perfdata::Features& features) {
  if (attr.type < perfdata::kTypeBreakpoint) return EventKind::kPlain;
  if (attr.type == perfdata::kTypeBreakpoint) return EventKind::kBreakpoint;
  const auto pmu = features.pmu_names.find(attr.type);
  if (pmu == features.pmu_names.end()) return EventKind::kUnknown;
  return pmu->second == "kprobe" || pmu->second == "uprobe" ? EventKind::kProbe : EventKind::kPlain;
}

uint64_t DroppedSampleBits(Level level) {
  return perfdata::SampleBitsWith([level](const FieldInfo& field) {
    return TreatmentOf(level, field.sensitivity) == Treatment::kDrop;
  });
}

TextScrub::TextScrub(Remap& remap, const std::vector<perfdata::Event>& events) : remap_(remap) {
  for (const perfdata::Event& event : events) {
    if (event.attr.type == perfdata::kTypeBreakpoint) breakpoints_.push_back(event.attr.config1);
  }
}

std::string TextScrub::Moved(std::string_view text) const {
  constexpr size_t kSurelyHex = 8, kMost = 16;
  std::string out;
  size_t i = 0;
  while (i < text.size()) {
    const size_t end = std::min(text.find_first_not_of("0123456789abcdefABCDEF", i), text.size());
    const std::string_view digits = text.substr(i, end - i);
    if (digits.empty()) {
      out += text[i++];
      continue;
    }
    const bool has_prefix = out.ends_with("0x") || out.ends_with("0X");
    uint64_t value = 0;
    const bool is_number = digits.size() <= kMost && (has_prefix || digits.size() >= kSurelyHex);
    if (is_number) std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    const bool is_address =
        value >= kLeastAddress &&
        (remap_.IsOriginal(value) || std::ranges::find(breakpoints_, value) != breakpoints_.end());
    out += is_address ? fmt::format("{:x}", remap_.Anywhere(value)) : std::string(digits);
    i = end;
  }
  BlotAddresses(out);
  return out;
}

bool TextScrub::HasAddress(ByteView bytes) const {
  const std::string text(AsText(bytes));
  std::string blotted = text;
  BlotAddresses(blotted);
  return blotted != text;
}

// Eight bytes in either order, or the number of a page; behind a text zeros follow.
void TextScrub::BlotAddresses(std::string& text) const {
  constexpr uint64_t kLeast = uint64_t{1} << 32, kPage = 4096;
  const auto is_address = [&](uint64_t value) {
    const bool is_page = value < (uint64_t{1} << 52) && value >= kLeast / kPage;
    return (value >= kLeast && remap_.IsOriginal(value)) ||
           (is_page && remap_.IsOriginal(value * kPage));
  };
  uint64_t value = 0;  // of the eight bytes up to i, the first one in the upper bits
  for (size_t i = 0; i < text.size() + 7; ++i) {
    value = value << 8 | (i < text.size() ? static_cast<uint8_t>(text[i]) : 0);
    if (i < 7 || (!is_address(value) && !is_address(std::byteswap(value)))) continue;
    std::fill(text.begin() + static_cast<std::ptrdiff_t>(i - 7),
              text.begin() + static_cast<std::ptrdiff_t>(std::min(i + 1, text.size())), '?');
    value = 0x3f3f3f3f3f3f3f3f;
  }
}

std::vector<perfdata::Event> ScrubEvents(const std::vector<perfdata::Event>& events,
                                         const perfdata::Features& features, Level level,
                                         const KeepsRaw& keeps_raw, Remap& remap,
                                         const Pseudonyms& names, Report& report) {
  const TextScrub text(remap, events);
  FieldTally& tally = report.Structure("attr");
  std::vector<perfdata::Event> out;
  for (const perfdata::Event& event : events) {
    const EventKind kind = KindOfEvent(event.attr, features);
    const bool has_pseudonym =
        TreatmentOf(level, perfdata::Sensitivity::kEventName) == Treatment::kPseudonym;
    const std::string name = has_pseudonym ? names.EventName(event.name) : event.name;
    const bool keep_raw = keeps_raw && keeps_raw(event.attr);
    out.push_back(
        {ScrubAttr(event.attr, kind, level, keep_raw, remap, tally), event.ids, text.Moved(name)});
  }
  return out;
}

}  // namespace stackreel::anonymize
