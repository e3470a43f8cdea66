#include "dwarf/unit_map.h"

#include <utility>

#include "dwarf/constants.h"
#include "dwarf/range_list.h"

namespace stackreel::dwarf {
namespace {

// What is said elsewhere than in the root DIE only counts where no root DIE speaks.
enum Depth : uint32_t { kFromElsewhere = 0, kFromRoot = 1 };

class UnitMapBuilder {
 public:
  UnitMapBuilder(DebugInfo& info, LineTables& lines, uint64_t* ranges_left, Counters& counters)
      : info_(info), lines_(lines), ranges_left_(*ranges_left), counters_(counters) {}

  std::vector<FlatIntervals::Interval> Build() {
    covered_.resize(info_.units().size());
    for (size_t i = 0; i < covered_.size(); ++i) AddRoot(i);
    AddAranges();
    for (size_t i = 0; i < covered_.size(); ++i) {
      if (!covered_[i]) AddLines(i);
    }
    return std::move(intervals_);
  }

 private:
  void Add(size_t unit, const AddressRange& range, Depth depth) {
    if (!info_.file().MayHoldCode(range.lo)) return;
    covered_[unit] = true;
    intervals_.push_back(
        {.lo = range.lo, .hi = range.hi, .value = static_cast<uint32_t>(unit), .depth = depth});
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
    for (const AddressRange& range : ranges_) Add(i, range, kFromRoot);
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
        Add(static_cast<size_t>(unit - info_.units().data()), range, kFromElsewhere);
      }
    }
    return set.ok();
  }

  void AddLines(size_t i) {
    const Unit& unit = info_.units()[i];
    if (unit.tag != kTagCompileUnit) return;  // a partial unit has no code
    const LineTable* table = lines_.Of(unit);
    if (table == nullptr) return;
    table->ForEachSequence([&](uint64_t lo, uint64_t hi) { Add(i, {lo, hi}, kFromElsewhere); });
  }

  DebugInfo& info_;
  LineTables& lines_;
  uint64_t& ranges_left_;
  Counters& counters_;
  std::vector<bool> covered_;
  std::vector<FlatIntervals::Interval> intervals_;
  std::vector<AddressRange> ranges_;
};

}  // namespace

LineTables::LineTables(const DebugInfo& info, Counters& counters)
    : info_(info), counters_(counters), rows_left_(info.sections().line.size()) {}

LineTable* LineTables::Of(const Unit& unit) {
  if (!unit.stmt_list) return nullptr;
  auto [it, added] = tables_.try_emplace(*unit.stmt_list);
  if (added) {
    it->second =
        std::make_unique<LineTable>(LineTable::Read(info_, unit, *unit.stmt_list, &rows_left_));
    if (it->second->damaged()) counters_.Add("dwarf.bad_line_table");
  }
  return it->second.get();
}

UnitMap::UnitMap(DebugInfo& info, LineTables& lines, uint64_t* ranges_left, Counters& counters)
    : unit_at_(UnitMapBuilder(info, lines, ranges_left, counters).Build()) {}

}  // namespace stackreel::dwarf
