#include "dwarf/function_index.h"

#include <algorithm>
#include <utility>

#include "dwarf/constants.h"
#include "dwarf/range_list.h"

namespace stackreel::dwarf {

// One pass over the DIEs of a unit, in the order they lie in.
class FunctionSweep {
 public:
  FunctionSweep(DebugInfo& info, Unit& unit, const DebugSectionFile& code, uint64_t* ranges_left,
                Counters& counters)
      : info_(info),
        unit_(unit),
        code_(code),
        ranges_left_(*ranges_left),
        counters_(counters),
        table_(info.AbbrevsOf(unit)),
        reader_(info.ReaderAt(unit, unit.die_offset)) {}

  FunctionIndex Run() {
    if (!Sweep()) counters_.Add("dwarf.bad_unit");
    index_.nodes_.shrink_to_fit();
    index_.node_at_ = FlatIntervals(std::move(intervals_));
    return std::move(index_);
  }

 private:
  // More levels of DIEs in DIEs than any compiler makes.
  static constexpr size_t kMaxDepth = 4096;

  bool Sweep();
  bool Skip(const Abbrev& abbrev);
  // Reads a subprogram or an inlined subroutine. `*enclosing` is the node it stands in; comes back
  // as what the DIEs below it stand in.
  bool ReadFunction(const Abbrev& abbrev, uint64_t die, uint32_t* enclosing);

  DebugInfo& info_;
  Unit& unit_;
  const DebugSectionFile& code_;
  uint64_t& ranges_left_;
  Counters& counters_;
  const AbbrevTable& table_;
  ByteReader reader_;
  FunctionIndex index_;
  std::vector<FlatIntervals::Interval> intervals_;
  std::vector<AddressRange> ranges_;  // of the DIE under way
  // For each DIE whose children are being read: the node that they stand in.
  std::vector<uint32_t> enclosing_;
};

bool FunctionSweep::Sweep() {
  while (!reader_.AtEnd()) {
    const uint64_t die = reader_.offset();
    const uint64_t code = reader_.Uleb128();
    if (code == 0) {
      if (!enclosing_.empty()) enclosing_.pop_back();
      if (enclosing_.empty()) break;
      continue;
    }
    const Abbrev* abbrev = table_.Find(code);
    if (abbrev == nullptr) return false;
    uint32_t enclosing = enclosing_.empty() ? FlatIntervals::kNone : enclosing_.back();
    const bool function = abbrev->tag == kTagSubprogram || abbrev->tag == kTagInlinedSubroutine;
    if (!(function ? ReadFunction(*abbrev, die, &enclosing) : Skip(*abbrev))) return false;
    if (abbrev->has_children) {
      if (enclosing_.size() == kMaxDepth) return false;
      enclosing_.push_back(enclosing);
    } else if (enclosing_.empty()) {
      break;  // a root without children
    }
  }
  return reader_.ok();
}

bool FunctionSweep::Skip(const Abbrev& abbrev) {
  if (abbrev.fixed_size != Abbrev::kVaries) {
    reader_.Skip(abbrev.fixed_size);
    return reader_.ok();
  }
  for (const AttributeSpec& spec : table_.AttributesOf(abbrev)) {
    if (!SkipForm(reader_, spec.form, unit_.encoding)) return false;
  }
  return true;
}

bool FunctionSweep::ReadFunction(const Abbrev& abbrev, uint64_t die, uint32_t* enclosing) {
  FunctionNode node;
  node.die = die;
  FormValue low_pc, high_pc, ranges;
  const auto narrow = [](const FormValue& value) {
    return static_cast<uint32_t>(std::min<uint64_t>(value.number, UINT32_MAX));
  };
  for (const AttributeSpec& spec : table_.AttributesOf(abbrev)) {
    FormValue value;
    if (!ReadForm(reader_, spec.form, spec.implicit, unit_.encoding, &value)) return false;
    switch (spec.name) {
      case kAtLowPc:
        low_pc = value;
        break;
      case kAtHighPc:
        high_pc = value;
        break;
      case kAtRanges:
        ranges = value;
        break;
      case kAtCallFile:
        node.call_file = narrow(value);
        break;
      case kAtCallLine:
        node.call_line = narrow(value);
        break;
      case kAtCallColumn:
        node.call_column = narrow(value);
        break;
      default:
        break;
    }
  }
  ranges_.clear();
  switch (ReadDieRanges(info_, unit_, low_pc, high_pc, ranges, &ranges_left_, &ranges_)) {
    case RangesRead::kGood:
      break;
    case RangesRead::kBad:
      counters_.Add("dwarf.bad_ranges");
      break;
    case RangesRead::kTooMany:
      return false;
  }
  std::erase_if(ranges_, [&](const AddressRange& r) { return !code_.MayHoldCode(r.lo); });
  const bool inlined = abbrev.tag == kTagInlinedSubroutine;
  if (inlined) node.caller = *enclosing;
  // An inlined function without code may hold one that has some. A subprogram without is a
  // declaration or the abstract instance of one that was inlined.
  if (ranges_.empty() && (!inlined || *enclosing == FlatIntervals::kNone)) {
    *enclosing = FlatIntervals::kNone;
    return true;
  }
  const auto depth = static_cast<uint32_t>(enclosing_.size());
  *enclosing = static_cast<uint32_t>(index_.nodes_.size());
  index_.nodes_.push_back(node);
  for (const AddressRange& range : ranges_) {
    intervals_.push_back({.lo = range.lo, .hi = range.hi, .value = *enclosing, .depth = depth});
  }
  return true;
}

FunctionIndex FunctionIndex::Read(DebugInfo& info, Unit& unit, const DebugSectionFile& code,
                                  uint64_t* ranges_left, Counters& counters) {
  return FunctionSweep(info, unit, code, ranges_left, counters).Run();
}

}  // namespace stackreel::dwarf
