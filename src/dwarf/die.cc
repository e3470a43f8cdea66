#include "dwarf/die.h"

#include "dwarf/constants.h"

namespace stackreel::dwarf {

namespace {

std::optional<uint64_t> ConstantOf(const FormValue& value) {
  if (value.form_class != FormClass::kConstant) return std::nullopt;
  return value.number;
}

bool FlagOf(const FormValue& value) { return value.number != 0; }

void Take(uint16_t name, const FormValue& value, const Unit& unit, Die& die) {
  switch (name) {
    case kAtSibling:
      if (value.form_class == FormClass::kUnitRef) die.sibling = unit.offset + value.number;
      return;
    case kAtName:
      die.name = value;
      return;
    case kAtType:
      die.type = value;
      die.has_type = true;
      return;
    case kAtAbstractOrigin:
      die.origin = value;
      return;
    case kAtSpecification:
      die.specification = value;
      return;
    case kAtByteSize:
      die.byte_size = ConstantOf(value);
      return;
    case kAtBitSize:
      die.bit_size = ConstantOf(value);
      return;
    case kAtDataBitOffset:
      die.data_bit_offset = ConstantOf(value);
      return;
    case kAtEncoding:
      die.encoding = ConstantOf(value);
      return;
    case kAtLanguage:
      die.language = ConstantOf(value);
      return;
    case kAtCallingConvention:
      die.calling_convention = ConstantOf(value);
      return;
    case kAtAlignment:
      die.alignment = ConstantOf(value);
      return;
    case kAtDataMemberLocation:
      die.has_member_location = true;
      die.member_location = ConstantOf(value);
      return;
    case kAtConstValue:
      die.const_value = ConstantOf(value);
      return;
    case kAtUpperBound:
      die.upper_bound = ConstantOf(value);
      return;
    case kAtCount:
      die.count = ConstantOf(value);
      return;
    case kAtExternal:
      die.external = FlagOf(value);
      return;
    case kAtArtificial:
      die.artificial = FlagOf(value);
      return;
    case kAtDeclaration:
      die.declaration = FlagOf(value);
      return;
    case kAtGnuVector:
      die.is_vector = FlagOf(value);
      return;
    case kAtVirtuality:
      die.is_virtual = FlagOf(value);
      return;
    default:
      return;
  }
}

}  // namespace

std::optional<Die> ReadDie(DebugInfo& info, const Unit& unit, uint64_t offset) {
  if (offset < unit.die_offset || offset >= unit.end) return std::nullopt;
  ByteReader reader = info.ReaderAt(unit, offset);
  const AbbrevTable& table = info.AbbrevsOf(unit);
  const Abbrev* abbrev = table.Find(reader.Uleb128());
  if (abbrev == nullptr) return std::nullopt;
  Die die;
  die.offset = offset;
  die.tag = abbrev->tag;
  for (const AttributeSpec& spec : table.AttributesOf(*abbrev)) {
    FormValue value;
    if (!ReadForm(reader, spec.form, spec.implicit, unit.encoding, &value)) return std::nullopt;
    Take(spec.name, value, unit, die);
  }
  if (!reader.ok()) return std::nullopt;
  if (abbrev->has_children) {
    die.children = reader.offset();
  } else {
    die.sibling = reader.offset();
  }
  return die;
}

uint64_t DieChildren::Behind(const Die& die) {
  if (die.sibling > die.offset && die.sibling < unit_.end) return die.sibling;
  if (die.children == 0) return 0;
  // Over all that is below it, in the order it lies in.
  ByteReader reader = info_.ReaderAt(unit_, die.children);
  const AbbrevTable& table = info_.AbbrevsOf(unit_);
  size_t depth = 1;
  while (depth > 0) {
    const uint64_t code = reader.Uleb128();
    if (!reader.ok()) return 0;
    if (code == 0) {
      --depth;
      continue;
    }
    const Abbrev* abbrev = table.Find(code);
    if (abbrev == nullptr) return 0;
    if (abbrev->fixed_size != Abbrev::kVaries) {
      reader.Skip(abbrev->fixed_size);
    } else {
      for (const AttributeSpec& spec : table.AttributesOf(*abbrev)) {
        if (!SkipForm(reader, spec.form, unit_.encoding)) return 0;
      }
    }
    if (abbrev->has_children) ++depth;
  }
  return reader.offset();
}

std::optional<Die> DieChildren::Next() {
  if (at_ == 0) return std::nullopt;
  std::optional<Die> die = ReadDie(info_, unit_, at_);
  at_ = die ? Behind(*die) : 0;
  return die;
}

}  // namespace stackreel::dwarf
