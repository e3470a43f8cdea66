#include "dwarf/unit_map.h"

#include <utility>

#include "dwarf/constants.h"
#include "dwarf/range_list.h"

namespace stackreel::dwarf {
namespace {

// Reads one kind of ranges of all units.
class UnitRanges {
 public:
  // Marks the units that have some in `covered`.
  UnitRanges(DebugInfo& info, uint64_t* ranges_left, Counters& counters, std::vector<bool>& covered)
      : info_(info), ranges_left_(*ranges_left), counters_(counters), covered_(covered) {}

  FlatIntervals OfAranges() {
    AddAranges();
    return FlatIntervals(std::move(intervals_));
  }
  FlatIntervals OfRoots() {
    for (size_t i = 0; i < info_.units().size(); ++i) AddRoot(i);
    return FlatIntervals(std::move(intervals_));
  }

 private:
  void Add(size_t unit, const AddressRange& range) {
    if (!info_.file().MayHoldCode(range.lo)) return;
    covered_[unit] = true;
    intervals_.push_back({.lo = range.lo, .hi = range.hi, .value = static_cast<uint32_t>(unit)});
  }

  void AddRoot(size_t i) {
    Unit& unit = info_.units()[i];
    info_.ReadRoot(unit);
    FormValue low_pc;
    if (unit.low_pc) low_pc = FormValue{FormClass::kAddress, *unit.low_pc, {}};
    ranges_.clear();
    if (ReadDieRanges(info_, unit, low_pc, unit.high_pc, unit.ranges, &ranges_left_, &ranges_) !=
        RangesRead::kGood) {
      counters_.Add("dwarf.bad_ranges");
    }
    for (const AddressRange& range : ranges_) Add(i, range);
  }

  // Sets (DWARF 5, 6.1.2): length, u16 version 2, offset of the unit, u8 address size, u8 segment
  // size, padding to twice the address size, pairs of address and length up to (0, 0).
  void AddAranges() {
    ByteReader reader(info_.sections().aranges, info_.sections().endian);
    while (!reader.AtEnd()) {
      const size_t start = reader.offset();
      bool dwarf64 = false;
      uint64_t length = reader.U32();
      if (length == 0xffffffff) {
        dwarf64 = true;
        length = reader.U64();
      }
      const size_t content = reader.offset();
      ByteReader set(reader.Bytes(length), reader.endian());
      if (!reader.ok() || !AddSet(set, dwarf64, content - start)) {
        counters_.Add("dwarf.bad_aranges");
        return;
      }
    }
  }

  // `behind` bytes of the set were read before `set` begins.
  bool AddSet(ByteReader& set, bool dwarf64, size_t behind) {
    const uint16_t version = set.U16();
    const uint64_t unit_offset = ReadSized(set, dwarf64 ? 8 : 4);
    const uint8_t address_size = set.U8();
    const uint8_t segment_size = set.U8();
    if (!set.ok() || version != 2 || (address_size != 4 && address_size != 8)) return false;
    if (segment_size != 0) return true;
    const size_t pair = size_t{2} * address_size;
    set.Skip((pair - (behind + set.offset()) % pair) % pair);
    const Unit* unit = info_.UnitAt(unit_offset);
    if (unit == nullptr) return true;  // a type unit, or one that could not be read
    while (set.remaining() >= pair) {
      AddressRange range;
      range.lo = ReadSized(set, address_size);
      range.hi = range.lo + ReadSized(set, address_size);
      if (range.lo == 0 && range.hi == 0) break;
      if (range.lo < range.hi) {
        Add(static_cast<size_t>(unit - info_.units().data()), range);
      }
    }
    return set.ok();
  }

  DebugInfo& info_;
  uint64_t& ranges_left_;
  Counters& counters_;
  std::vector<bool>& covered_;
  std::vector<FlatIntervals::Interval> intervals_;
  std::vector<AddressRange> ranges_;
};

}  // namespace

LineTables::LineTables(const DebugInfo& info, Counters& counters)
    : info_(info), counters_(counters) {}

LineTable* LineTables::Of(const Unit& unit) {
  if (!unit.stmt_list) return nullptr;
  auto [it, added] = tables_.try_emplace(*unit.stmt_list);
  if (added) {
    if (!rows_left_) rows_left_ = info_.line().size();
    it->second =
        std::make_unique<LineTable>(LineTable::Read(info_, unit, *unit.stmt_list, &*rows_left_));
    if (it->second->damaged()) counters_.Add("dwarf.bad_line_table");
  }
  return it->second.get();
}

UnitMap::UnitMap(DebugInfo& info, LineTables& lines, uint64_t* ranges_left, Counters& counters)
    : info_(info),
      lines_(lines),
      ranges_left_(ranges_left),
      counters_(counters),
      covered_(info.units().size()),
      by_aranges_(UnitRanges(info, ranges_left, counters, covered_).OfAranges()) {}

uint32_t UnitMap::Find(uint64_t svma) {
  uint32_t unit = by_aranges_.Find(svma);
  if (unit != FlatIntervals::kNone || !info_.file().MayHoldCode(svma)) return unit;
  if (!by_roots_) by_roots_ = UnitRanges(info_, ranges_left_, counters_, covered_).OfRoots();
  unit = by_roots_->Find(svma);
  if (unit != FlatIntervals::kNone) return unit;
  if (!by_lines_) by_lines_ = ReadLines();
  return by_lines_->Find(svma);
}

FlatIntervals UnitMap::ReadLines() {
  std::vector<FlatIntervals::Interval> intervals;
  for (size_t i = 0; i < covered_.size(); ++i) {
    const Unit& unit = info_.units()[i];
    if (covered_[i] || unit.tag != kTagCompileUnit) continue;  // a partial unit has no code
    const LineTable* table = lines_.Of(unit);
    if (table == nullptr) continue;
    table->ForEachSequence([&](uint64_t lo, uint64_t hi) {
      if (!info_.file().MayHoldCode(lo)) return;
      intervals.push_back({.lo = lo, .hi = hi, .value = static_cast<uint32_t>(i)});
    });
  }
  return FlatIntervals(std::move(intervals));
}

}  // namespace stackreel::dwarf
