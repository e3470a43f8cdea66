#include "dwarf/unit.h"

#include <algorithm>
#include <utility>

#include "dwarf/constants.h"

namespace stackreel::dwarf {
namespace {

// The header of a version 2 unit, and one byte of a DIE.
constexpr size_t kLeastUnit = 12;

bool SupportedAddressSize(uint8_t size) { return size == 4 || size == 8; }

bool IsTypeUnit(const Unit& unit) { return unit.type == kUnitType || unit.type == kUnitSplitType; }

}  // namespace

std::string_view TextAt(ByteView section, uint64_t offset) {
  if (offset >= section.size()) return {};
  return TextUpToNul(section.subspan(offset));
}

DebugInfo::DebugInfo(std::shared_ptr<const DebugSectionFile> file, const DebugSections& sections,
                     Counters& counters)
    : file_(std::move(file)),
      sections_(sections),
      counters_(counters),
      abbrev_steps_left_(1024 + 4 * (sections.abbrev.size() + sections.info.size())) {
  ReadHeaders(counters);
}

// Unit headers (7.5.1), after the length, which takes 4 bytes or 4 + 8 if the first are ffffffff:
//   version 2–4   u16 version, abbrev offset, u8 address size
//   version 5     u16 version, u8 unit type, u8 address size, abbrev offset,
//                 and for skeletons and split units u64 dwo id; for types u64 signature, offset
bool DebugInfo::ReadHeader(uint64_t offset, Unit* unit) const {
  ByteReader reader(sections_.info, sections_.endian);
  reader.Seek(offset);
  unit->offset = offset;
  uint64_t length = reader.U32();
  if (length == 0xffffffff) {
    unit->encoding.dwarf64 = true;
    length = reader.U64();
  }
  if (!reader.ok() || (length >= 0xfffffff0 && !unit->encoding.dwarf64)) return false;
  // A file cut short: what is there of the unit can be read.
  unit->end = reader.offset() + std::min<uint64_t>(length, reader.remaining());
  const uint8_t offset_size = unit->encoding.offset_size();
  unit->encoding.version = reader.U16();
  if (unit->encoding.version < 2 || unit->encoding.version > 5) return false;
  if (unit->encoding.version >= 5) {
    unit->type = reader.U8();
    unit->encoding.address_size = reader.U8();
    unit->abbrev_offset = ReadSized(reader, offset_size);
    if (unit->type == kUnitSkeleton || unit->type == kUnitSplitCompile) {
      unit->dwo_id = reader.U64();
    } else if (IsTypeUnit(*unit)) {
      reader.Skip(8U + offset_size);
    }
  } else {
    unit->type = kUnitCompile;
    unit->abbrev_offset = ReadSized(reader, offset_size);
    unit->encoding.address_size = reader.U8();
  }
  unit->die_offset = reader.offset();
  return reader.ok() && unit->die_offset <= unit->end &&
         SupportedAddressSize(unit->encoding.address_size) &&
         unit->abbrev_offset < sections_.abbrev.size();
}

size_t DebugInfo::CountHeaders() const {
  size_t count = 0;
  ByteReader reader(sections_.info, sections_.endian);
  while (!reader.AtEnd() && reader.ok()) {
    uint64_t length = reader.U32();
    if (length == 0xffffffff) length = reader.U64();
    reader.Skip(std::min<uint64_t>(length, reader.remaining()));
    ++count;
  }
  return count;
}

void DebugInfo::ReadHeaders(Counters& counters) {
  // Units are large: each growth would copy them, and touch new memory.
  units_.reserve(std::min(CountHeaders(), sections_.info.size() / kLeastUnit));
  for (uint64_t offset = 0; offset < sections_.info.size();) {
    Unit unit;
    const bool good = ReadHeader(offset, &unit);
    if (!good) counters.Add("dwarf.bad_unit");
    if (unit.end <= offset) break;
    offset = unit.end;
    if (good && !IsTypeUnit(unit)) units_.push_back(unit);
  }
}

Unit* DebugInfo::UnitAt(uint64_t offset) {
  auto after = std::upper_bound(units_.begin(), units_.end(), offset,
                                [](uint64_t o, const Unit& unit) { return o < unit.offset; });
  if (after == units_.begin()) return nullptr;
  Unit& unit = *std::prev(after);
  return offset < unit.end ? &unit : nullptr;
}

ByteReader DebugInfo::ReaderAt(const Unit& unit, uint64_t offset) const {
  ByteReader reader(sections_.info.first(unit.end), sections_.endian);
  reader.Seek(offset);
  return reader;
}

const AbbrevTable& DebugInfo::AbbrevsOf(const Unit& unit) {
  // Tables are shared by units of one encoding, so one offset is hardly ever read twice.
  const uint64_t key = unit.abbrev_offset << 4 ^ unit.encoding.version << 1 ^
                       (unit.encoding.address_size == 8 ? 0U : 1U) ^
                       (unit.encoding.dwarf64 ? uint64_t{1} << 63 : 0U);
  if (auto it = abbrevs_.find(key); it != abbrevs_.end()) return it->second;
  ByteReader reader(sections_.abbrev, sections_.endian);
  reader.Seek(unit.abbrev_offset);
  AbbrevTable table = AbbrevTable::Read(reader, unit.encoding, &abbrev_steps_left_);
  if (table.damaged()) counters_.Add("dwarf.bad_abbrev_table");
  return abbrevs_.emplace(key, std::move(table)).first->second;
}

void DebugInfo::ReadRoot(Unit& unit) {
  if (unit.root_read) return;
  unit.root_read = true;
  ByteReader reader = ReaderAt(unit, unit.die_offset);
  const uint64_t code = reader.Uleb128();
  if (code == 0) return;
  if (root_abbrev_offset_ != unit.abbrev_offset || root_abbrev_.encoding() != unit.encoding ||
      root_abbrev_.Find(code) == nullptr) {
    ByteReader abbrevs(sections_.abbrev, sections_.endian);
    abbrevs.Seek(unit.abbrev_offset);
    root_abbrev_ = AbbrevTable::ReadOne(abbrevs, unit.encoding, code, &abbrev_steps_left_);
    root_abbrev_offset_ = unit.abbrev_offset;
  }
  const Abbrev* abbrev = root_abbrev_.Find(code);
  if (abbrev == nullptr) {
    counters_.Add("dwarf.bad_unit");
    return;
  }
  unit.tag = abbrev->tag;
  TakeRootAttributes(unit, reader, root_abbrev_, *abbrev);
}

void DebugInfo::TakeRootAttributes(Unit& unit, ByteReader& reader, const AbbrevTable& table,
                                   const Abbrev& abbrev) {
  FormValue low_pc, dwo_name;
  // In a .dwo the one list of each section begins behind its header (5: 7.26 and 7.28).
  const bool split = unit.type == kUnitSplitCompile;
  if (split) unit.str_offsets_base = unit.encoding.dwarf64 ? 16 : 8;
  if (split) unit.rnglists_base = unit.encoding.dwarf64 ? 20 : 12;
  for (const AttributeSpec& spec : table.AttributesOf(abbrev)) {
    FormValue value;
    if (!ReadForm(reader, spec.form, spec.implicit, unit.encoding, &value)) {
      counters_.Add("dwarf.bad_unit");
      break;
    }
    switch (spec.name) {
      case kAtLowPc:
        low_pc = value;
        break;
      case kAtHighPc:
        unit.high_pc = value;
        break;
      case kAtRanges:
        unit.ranges = value;
        break;
      case kAtStmtList:
        unit.stmt_list = SectionOffsetOf(value);
        break;
      case kAtCompDir:
        unit.comp_dir = value;
        break;
      case kAtDwoName:
      case kAtGnuDwoName:
        dwo_name = value;
        break;
      case kAtGnuDwoId:
        unit.dwo_id = value.number;
        break;
      case kAtAddrBase:
      case kAtGnuAddrBase:
        unit.addr_base = value.number;
        break;
      case kAtStrOffsetsBase:
        unit.str_offsets_base = value.number;
        break;
      case kAtRnglistsBase:
        unit.rnglists_base = value.number;
        break;
      case kAtGnuRangesBase:
        unit.gnu_ranges_base = value.number;
        break;
      default:
        break;
    }
  }
  // Only now are the bases known.
  unit.low_pc = AddressOf(unit, low_pc);
  unit.dwo_name = TextOf(unit, dwo_name);
}

bool DebugInfo::ReadDieName(Unit& unit, uint64_t offset, DieName* name) {
  if (offset < unit.die_offset || offset >= unit.end) return false;
  ReadRoot(unit);
  ByteReader reader = ReaderAt(unit, offset);
  const AbbrevTable& table = AbbrevsOf(unit);
  const Abbrev* abbrev = table.Find(reader.Uleb128());
  if (abbrev == nullptr) return false;
  for (const AttributeSpec& spec : table.AttributesOf(*abbrev)) {
    FormValue value;
    if (!ReadForm(reader, spec.form, spec.implicit, unit.encoding, &value)) return false;
    switch (spec.name) {
      case kAtName:
        name->name = value;
        break;
      case kAtLinkageName:
      case kAtMipsLinkageName:
        name->linkage_name = value;
        break;
      case kAtAbstractOrigin:
      case kAtSpecification:
        name->origin = value;
        break;
      default:
        break;
    }
  }
  return true;
}

std::optional<uint64_t> DebugInfo::IndexedAddress(const Unit& unit, uint64_t index) const {
  const DebugSections& sections =
      unit.skeleton_sections != nullptr ? *unit.skeleton_sections : sections_;
  const uint8_t size = unit.encoding.address_size;
  if (unit.addr_base > sections.addr.size()) return std::nullopt;
  const ByteView table = sections.addr.subspan(unit.addr_base);
  if (index >= table.size() / size) return std::nullopt;
  ByteReader reader(table.subspan(index * size), sections.endian);
  return ReadSized(reader, size);
}

std::optional<uint64_t> DebugInfo::AddressOf(const Unit& unit, const FormValue& value) const {
  if (value.form_class == FormClass::kAddress) return value.number;
  if (value.form_class == FormClass::kAddressIndex) return IndexedAddress(unit, value.number);
  return std::nullopt;
}

ByteView DebugInfo::OnNeed(ByteView (DebugSectionFile::*section)() const) const {
  const uint64_t bad = file_->bad_sections();
  const uint64_t not_done = file_->relocations_not_done();
  const ByteView bytes = ((*file_).*section)();
  if (file_->bad_sections() != bad) counters_.Add("dwarf.bad_section");
  if (const uint64_t more = file_->relocations_not_done() - not_done; more != 0) {
    counters_.Add("dwarf.relocation_not_done", more);
  }
  return bytes;
}

ByteView DebugInfo::line() const { return OnNeed(&DebugSectionFile::line); }

std::string_view DebugInfo::TextOf(const Unit& unit, const FormValue& value) const {
  switch (value.form_class) {
    case FormClass::kText:
      return value.text;
    case FormClass::kTextOffset:
      return TextAt(sections_.str, value.number);
    case FormClass::kLineTextOffset:
      return TextAt(OnNeed(&DebugSectionFile::line_str), value.number);
    case FormClass::kTextIndex: {
      const uint8_t size = unit.encoding.offset_size();
      if (unit.str_offsets_base > sections_.str_offsets.size()) return {};
      const ByteView table = sections_.str_offsets.subspan(unit.str_offsets_base);
      if (value.number >= table.size() / size) return {};
      ByteReader reader(table.subspan(value.number * size), sections_.endian);
      return TextAt(sections_.str, ReadSized(reader, size));
    }
    default:
      return {};
  }
}

std::optional<uint64_t> DebugInfo::SectionOffsetOf(const FormValue& value) {
  if (value.form_class == FormClass::kSectionOffset || value.form_class == FormClass::kConstant) {
    return value.number;
  }
  return std::nullopt;
}

}  // namespace stackreel::dwarf
