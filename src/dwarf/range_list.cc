#include "dwarf/range_list.h"

#include <optional>

#include "dwarf/constants.h"

namespace stackreel::dwarf {
namespace {

uint64_t HighestAddress(const Unit& unit) {
  return unit.encoding.address_size == 8 ? UINT64_MAX : UINT32_MAX;
}

// Leaves out what is empty, and what a linker made of a function it dropped: it sets the start, or
// the base that all is relative to, to the highest address (or the one before, in .debug_ranges).
void AppendRange(const Unit& unit, uint64_t base, uint64_t lo, uint64_t hi,
                 std::vector<AddressRange>* out) {
  const uint64_t highest = HighestAddress(unit);
  if (base >= highest - 1 || lo >= highest - 1) return;
  lo = (lo + base) & highest;
  hi = (hi + base) & highest;
  if (lo < hi) out->push_back({lo, hi});
}

// .debug_ranges: pairs of addresses relative to a base; (highest, BASE) sets the base; (0, 0) ends.
RangesRead ReadAddressPairs(const DebugInfo& info, const Unit& unit, uint64_t offset,
                            uint64_t* entries_left, std::vector<AddressRange>* out) {
  // A .dwo of version 4 leaves its lists in the file of its skeleton, whose DIE has the base.
  const bool split = unit.skeleton_sections != nullptr;
  const DebugSections& sections = split ? *unit.skeleton_sections : info.sections();
  ByteReader reader(sections.ranges, sections.endian);
  reader.Seek(split ? offset + unit.gnu_ranges_base : offset);
  const uint8_t size = unit.encoding.address_size;
  uint64_t base = unit.low_pc.value_or(0);
  for (;; --*entries_left) {
    if (*entries_left == 0) return RangesRead::kTooMany;
    const uint64_t lo = ReadSized(reader, size);
    const uint64_t hi = ReadSized(reader, size);
    if (!reader.ok()) return RangesRead::kBad;
    if (lo == 0 && hi == 0) return RangesRead::kGood;
    if (lo == HighestAddress(unit)) {
      base = hi;
    } else {
      AppendRange(unit, base, lo, hi, out);
    }
  }
}

// .debug_rnglists: entries of a kind byte and one or two operands.
RangesRead ReadRangeEntries(const DebugInfo& info, const Unit& unit, uint64_t offset,
                            uint64_t* entries_left, std::vector<AddressRange>* out) {
  ByteReader reader(info.sections().rnglists, info.sections().endian);
  reader.Seek(offset);
  const uint8_t size = unit.encoding.address_size;
  const auto indexed = [&]() -> uint64_t {
    const std::optional<uint64_t> address = info.IndexedAddress(unit, reader.Uleb128());
    return address.value_or(HighestAddress(unit));  // a bad index: the entry is left out
  };
  uint64_t base = unit.low_pc.value_or(0);
  for (;; --*entries_left) {
    if (*entries_left == 0) return RangesRead::kTooMany;
    const uint8_t kind = reader.U8();
    if (!reader.ok()) return RangesRead::kBad;
    uint64_t lo = 0;
    switch (kind) {
      case kRleEndOfList:
        return RangesRead::kGood;
      case kRleBaseAddressx:
        base = indexed();
        continue;
      case kRleBaseAddress:
        base = ReadSized(reader, size);
        continue;
      case kRleOffsetPair:
        lo = reader.Uleb128();
        AppendRange(unit, base, lo, reader.Uleb128(), out);
        break;
      case kRleStartxEndx:
        lo = indexed();
        AppendRange(unit, 0, lo, indexed(), out);
        break;
      case kRleStartxLength:
        lo = indexed();
        AppendRange(unit, 0, lo, lo + reader.Uleb128(), out);
        break;
      case kRleStartEnd:
        lo = ReadSized(reader, size);
        AppendRange(unit, 0, lo, ReadSized(reader, size), out);
        break;
      case kRleStartLength:
        lo = ReadSized(reader, size);
        AppendRange(unit, 0, lo, lo + reader.Uleb128(), out);
        break;
      default:
        return RangesRead::kBad;
    }
  }
}

}  // namespace

RangesRead ReadRangeList(const DebugInfo& info, const Unit& unit, const FormValue& value,
                         uint64_t* entries_left, std::vector<AddressRange>* out) {
  if (value.form_class == FormClass::kRangeListIndex) {
    const uint8_t size = unit.encoding.offset_size();
    const ByteView lists = info.sections().rnglists;
    if (unit.rnglists_base > lists.size()) return RangesRead::kBad;
    const ByteView offsets = lists.subspan(unit.rnglists_base);
    if (value.number >= offsets.size() / size) return RangesRead::kBad;
    ByteReader reader(offsets.subspan(value.number * size), info.sections().endian);
    const uint64_t offset = unit.rnglists_base + ReadSized(reader, size);
    return ReadRangeEntries(info, unit, offset, entries_left, out);
  }
  const std::optional<uint64_t> offset = DebugInfo::SectionOffsetOf(value);
  if (!offset) return RangesRead::kBad;
  return unit.encoding.version >= 5 ? ReadRangeEntries(info, unit, *offset, entries_left, out)
                                    : ReadAddressPairs(info, unit, *offset, entries_left, out);
}

RangesRead ReadDieRanges(const DebugInfo& info, const Unit& unit, const FormValue& low_pc,
                         const FormValue& high_pc, const FormValue& ranges, uint64_t* entries_left,
                         std::vector<AddressRange>* out) {
  if (ranges.form_class != FormClass::kNone) {
    return ReadRangeList(info, unit, ranges, entries_left, out);
  }
  if (low_pc.form_class == FormClass::kNone || high_pc.form_class == FormClass::kNone) {
    return RangesRead::kGood;
  }
  const std::optional<uint64_t> lo = info.AddressOf(unit, low_pc);
  if (!lo) return RangesRead::kBad;
  std::optional<uint64_t> hi = info.AddressOf(unit, high_pc);
  // Since DWARF 4 a constant is the size.
  if (high_pc.form_class == FormClass::kConstant) hi = *lo + high_pc.number;
  if (!hi) return RangesRead::kBad;
  if (*entries_left == 0) return RangesRead::kTooMany;
  --*entries_left;
  AppendRange(unit, 0, *lo, *hi, out);
  return RangesRead::kGood;
}

}  // namespace stackreel::dwarf
