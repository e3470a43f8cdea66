#include "dwarf/prototype.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "dwarf/constants.h"

namespace stackreel::dwarf {

namespace {

using Kind = PrototypeType::Kind;

// Types within types, and origins of functions. More are a circle.
constexpr int kMaxDepth = 32;
// Values up to this size are passed in registers, so that what is in them matters.
constexpr uint64_t kMaxInRegisters = 16;
constexpr uint64_t kWord = 8;
constexpr size_t kMaxParameters = 64;
constexpr size_t kMaxFields = 256;  // of unions mostly; more are nobody's
constexpr size_t kMaxEnumerators = 4096;
constexpr std::string_view kNotThere = "its type is not in this file";

// C, C++, Objective-C and its child in all their years (DW_LANG_*).
bool CallsAsC(uint64_t language) {
  constexpr std::array<uint64_t, 14> kLanguages = {0x01, 0x02, 0x04, 0x0c, 0x10, 0x11, 0x1a,
                                                   0x1d, 0x21, 0x2b, 0x2c, 0x3a, 0x3e, 0x3f};
  return std::ranges::find(kLanguages, language) != kLanguages.end();
}

bool IsAlias(uint16_t tag) {
  switch (tag) {
    case kTagConstType:
    case kTagVolatileType:
    case kTagRestrictType:
    case kTagTypedef:
    case kTagTemplateAlias:
    case kTagAtomicType:
    case kTagImmutableType:
      return true;
    default:
      return false;
  }
}

bool IsStruct(uint16_t tag) {
  return tag == kTagStructureType || tag == kTagClassType || tag == kTagUnionType;
}

PrototypeType Scalar(Kind kind, uint64_t size,
                     ScalarField::Kind field = ScalarField::Kind::kInteger) {
  PrototypeType type;
  type.kind = kind;
  type.size = size;
  // What is no power of two (_BitInt) is aligned as the next one, up to a word.
  type.alignment = 1;
  while (type.alignment < size && type.alignment < kMaxInRegisters) type.alignment *= 2;
  type.fields = {{.offset = 0, .size = static_cast<uint32_t>(size), .kind = field}};
  return type;
}

// Where the members of a class are, of which it is known how they make up a text.
class TextMembers {
 public:
  void Note(std::string_view name, uint64_t offset) {
    const auto at = static_cast<uint32_t>(std::min<uint64_t>(offset, UINT32_MAX));
    if (name == "_M_dataplus") string_ = at;
    if (name == "_M_string_length") string_length_ = at;
    if (name == "_M_str" || name == "__data_" || name == "__data") view_ = at;
    if (name == "_M_len" || name == "__size_" || name == "__size") view_length_ = at;
    if (name == "__r_" || name == "__rep_") libcxx_ = at;
  }
  // libstdc++'s two std::strings, libc++'s, and both std::string_views.
  void MakeText(std::string_view name, PrototypeType& type) const {
    constexpr uint64_t kLibcxxSize = 24;
    if (name.starts_with("basic_string_view<char,") ||
        name.starts_with("basic_string_view<char>")) {
      if (view_ && view_length_) Set(TextLayout::kPointerAndLength, *view_, *view_length_, type);
    } else if (name.starts_with("basic_string<char,") || name.starts_with("basic_string<char>")) {
      if (string_ && string_length_) {
        Set(TextLayout::kPointerAndLength, *string_, *string_length_, type);
      } else if (string_) {
        Set(TextLayout::kLengthBefore, *string_, 0, type);
      } else if (libcxx_ && type.size == kLibcxxSize) {
        Set(TextLayout::kLibcxx, *libcxx_, 0, type);
      }
    }
  }

 private:
  static void Set(TextLayout layout, uint32_t text, uint32_t length, PrototypeType& type) {
    type.kind = Kind::kText;
    type.text = layout;
    type.object_size = type.size;
    type.text_offset = text;
    type.length_offset = length;
  }
  std::optional<uint32_t> string_, string_length_, view_, view_length_, libcxx_;
};

}  // namespace

std::optional<PrototypeReader::Place> PrototypeReader::At(DebugInfo& info, uint64_t offset) {
  Unit* unit = info.UnitAt(offset);
  if (unit == nullptr) return std::nullopt;
  info.ReadRoot(*unit);
  const std::optional<Die> die = ReadDie(info, *unit, offset);
  if (!die) return std::nullopt;
  return Place{&info, unit, *die};
}

std::optional<PrototypeReader::Place> PrototypeReader::Follow(const Place& from,
                                                              const FormValue& reference) {
  switch (reference.form_class) {
    case FormClass::kUnitRef:
      return At(*from.info, from.unit->offset + reference.number);
    case FormClass::kInfoRef:
      return At(*from.info, reference.number);
    case FormClass::kAltRef: {
      DebugInfo* alt = supplementary_ ? supplementary_() : nullptr;
      return alt == nullptr ? std::nullopt : At(*alt, reference.number);
    }
    default:
      return std::nullopt;
  }
}

std::string PrototypeReader::TextOf(const Place& place, const FormValue& text) {
  if (text.form_class == FormClass::kAltTextOffset) {
    const DebugInfo* alt = supplementary_ ? supplementary_() : nullptr;
    return alt == nullptr ? std::string() : std::string(TextAt(alt->sections().str, text.number));
  }
  return std::string(place.info->TextOf(*place.unit, text));
}

std::optional<PrototypeType> PrototypeReader::TypeOf(const Place& place, int depth) {
  if (!place.die.has_type) return PrototypeType();
  const std::optional<Place> type = Follow(place, place.die.type);
  if (!type) return std::nullopt;
  return TypeAt(*type, depth);
}

std::optional<PrototypeType> PrototypeReader::TypeAt(const Place& place, int depth) {
  if (depth > kMaxDepth) return std::nullopt;
  const Key key = {place.info, place.die.offset};
  if (const auto known = types_.find(key); known != types_.end()) return known->second;
  types_.emplace(key, std::nullopt);
  std::optional<PrototypeType> read = ReadType(place, depth + 1);
  if (read && read->fields.size() > kMaxFields) read.reset();
  return types_[key] = std::move(read);
}

std::optional<PrototypeType> PrototypeReader::ReadType(const Place& place, int depth) {
  const Die& die = place.die;
  if (IsAlias(die.tag)) {
    std::optional<PrototypeType> type = TypeOf(place, depth);
    if (type && die.alignment) {
      type->alignment = static_cast<uint32_t>(std::min<uint64_t>(*die.alignment, 1 << 16));
    }
    return type;
  }
  switch (die.tag) {
    case kTagBaseType:
      return ReadBase(place, TextOf(place, die.name));
    case kTagPointerType:
    case kTagReferenceType:
    case kTagRvalueReferenceType:
      return ReadPointer(place, depth);
    case kTagEnumerationType:
      return ReadEnumeration(place, depth);
    case kTagStructureType:
    case kTagClassType:
    case kTagUnionType:
      return ReadStruct(place, depth);
    case kTagArrayType:
      return ReadArray(place, depth);
    case kTagUnspecifiedType:  // decltype(nullptr)
      return Scalar(Kind::kPointer, kWord);
    case kTagPtrToMemberType: {
      // Of a function: where it is, and what to add to `this`.
      const std::optional<Place> to = Follow(place, die.type);
      if (!to || to->die.tag != kTagSubroutineType) return Scalar(Kind::kSigned, kWord);
      PrototypeType type = Scalar(Kind::kStruct, 2 * kWord);
      type.alignment = kWord;
      type.fields = {{.offset = 0, .size = kWord}, {.offset = kWord, .size = kWord}};
      return type;
    }
    default:
      return std::nullopt;
  }
}

std::optional<PrototypeType> PrototypeReader::ReadBase(const Place& place,
                                                       const std::string& name) {
  const Die& die = place.die;
  const uint64_t size = die.byte_size.value_or(0);
  if (!die.encoding || size == 0 || size > 64) return std::nullopt;
  switch (*die.encoding) {
    case kAteBoolean:
      return Scalar(Kind::kBool, size);
    case kAteSigned:
      return Scalar(Kind::kSigned, size);
    case kAteSignedChar:
      return Scalar(name == "char" ? Kind::kCharacter : Kind::kSigned, size);
    case kAteUnsignedChar:
      return Scalar(name == "char" ? Kind::kCharacter : Kind::kUnsigned, size);
    case kAteAddress:
    case kAteUnsigned:
    case kAteUtf:
      return Scalar(Kind::kUnsigned, size);
    case kAteFloat: {
      // Of 16 bytes there are two: x87's, and one that is passed in vector registers.
      const bool x87 = size == 16 && name == "long double";
      PrototypeType type =
          Scalar(x87 || size == 4 || size == 8 ? Kind::kFloat : Kind::kStruct, size,
                 x87 ? ScalarField::Kind::kLongDouble : ScalarField::Kind::kFloat);
      type.is_vector = !x87 && size == 16;
      return type;
    }
    case kAteComplexFloat: {
      PrototypeType type = Scalar(Kind::kStruct, size);
      const auto half = static_cast<uint32_t>(size / 2);
      type.alignment = std::min<uint32_t>(half, 16);
      const auto kind = half == 16 ? ScalarField::Kind::kLongDouble : ScalarField::Kind::kFloat;
      type.fields = {{0, half, kind}, {half, half, kind}};
      return type;
    }
    case kAteDecimalFloat: {
      PrototypeType type = Scalar(Kind::kStruct, size, ScalarField::Kind::kFloat);
      type.is_vector = size == 16;
      return type;
    }
    default:
      return std::nullopt;
  }
}

std::optional<PrototypeType> PrototypeReader::ReadPointer(const Place& place, int depth) {
  PrototypeType type = Scalar(Kind::kPointer, place.die.byte_size.value_or(kWord));
  std::optional<Place> to = Follow(place, place.die.type);
  for (int i = 0; i < kMaxDepth && to && IsAlias(to->die.tag); ++i) to = Follow(*to, to->die.type);
  if (!to) return type;
  const bool is_reference = place.die.tag != kTagPointerType;
  if (to->die.tag == kTagSubroutineType) {
    type.kind = Kind::kFunction;
  } else if (to->die.tag == kTagBaseType && !is_reference) {
    const std::optional<PrototypeType> pointee = ReadBase(*to, TextOf(*to, to->die.name));
    if (pointee && pointee->kind == Kind::kCharacter && pointee->size == 1) {
      type.kind = Kind::kText;
      type.text = TextLayout::kTerminated;
    }
  } else if (IsStruct(to->die.tag) && is_reference &&
             TextOf(*to, to->die.name).starts_with("basic_string")) {
    const std::optional<PrototypeType> object = TypeAt(*to, depth + 1);
    if (object && object->kind == Kind::kText) {
      type.kind = Kind::kText;
      type.text = object->text;
      type.text_offset = object->text_offset;
      type.length_offset = object->length_offset;
      type.object_size = object->size;
      type.text_is_behind_pointer = true;
    }
  }
  return type;
}

std::optional<PrototypeType> PrototypeReader::ReadEnumeration(const Place& place, int depth) {
  const Die& die = place.die;
  const std::optional<PrototypeType> underlying = TypeOf(place, depth);
  uint64_t size = die.byte_size.value_or(0);
  if (size == 0 && underlying) size = underlying->size;
  if (size == 0 || size > kWord) return std::nullopt;
  PrototypeType type = Scalar(Kind::kEnumeration, size);
  type.is_signed = underlying && underlying->kind == Kind::kSigned;
  auto names = std::make_shared<EnumerationNames>();
  names->name = TextOf(place, die.name);
  DieChildren children(*place.info, *place.unit, die);
  while (const std::optional<Die> child = children.Next()) {
    if (child->tag != kTagEnumerator || !child->const_value) continue;
    if (names->names.size() == kMaxEnumerators) break;
    // As the value stands in `size` bytes, with its sign.
    const unsigned shift = static_cast<unsigned>(64 - 8 * size);
    const auto value = static_cast<int64_t>(*child->const_value << shift) >> shift;
    names->names.emplace_back(value, TextOf(place, child->name));
  }
  type.enumeration = std::move(names);
  return type;
}

std::optional<PrototypeType> PrototypeReader::ReadArray(const Place& place, int depth) {
  const std::optional<PrototypeType> element = TypeOf(place, depth);
  if (!element) return std::nullopt;
  uint64_t count = 1;
  DieChildren children(*place.info, *place.unit, place.die);
  while (const std::optional<Die> child = children.Next()) {
    if (child->tag != kTagSubrangeType) continue;
    // One without a bound is a flexible array: it takes no place.
    uint64_t length = child->count.value_or(0);
    if (!child->count && child->upper_bound) length = *child->upper_bound + 1;
    if (length != 0 && count > UINT32_MAX / length) return std::nullopt;
    count *= length;
  }
  PrototypeType type;
  type.kind = Kind::kStruct;
  type.alignment = element->alignment;
  if (element->size != 0 && count > UINT64_MAX / element->size) return std::nullopt;
  type.size = place.die.byte_size.value_or(count * element->size);
  type.by_reference = element->by_reference;
  if (place.die.is_vector) {
    type.is_vector = true;
    type.alignment =
        static_cast<uint32_t>(std::min<uint64_t>(std::max<uint64_t>(type.size, 1), 64));
    return type;
  }
  const uint64_t in_registers = type.size <= kMaxInRegisters && element->size != 0
                                    ? std::min(count, kMaxInRegisters / element->size)
                                    : 0;
  for (uint64_t i = 0; i < in_registers; ++i) {
    for (ScalarField field : element->fields) {
      field.offset += static_cast<uint32_t>(i * element->size);
      type.fields.push_back(field);
    }
  }
  return type;
}

// False if its type, or where it is, cannot be known.
bool PrototypeReader::AddMember(const Place& member, int depth, PrototypeType& type) {
  const std::optional<PrototypeType> is = TypeOf(member, depth);
  if (!is) return false;
  if (member.die.bit_size) {
    // As much of a bit-field as matters: in which words it is. Those of no size are of no class.
    if (*member.die.bit_size == 0) return true;
    uint64_t first = member.die.data_bit_offset.value_or(0);
    if (!member.die.data_bit_offset) first = 8 * member.die.member_location.value_or(0);
    const uint64_t last = first + std::min<uint64_t>(*member.die.bit_size, 128) - 1;
    for (uint64_t byte = first / 8; byte <= last / 8 && byte < kMaxInRegisters; ++byte) {
      if (type.size > kMaxInRegisters) break;
      type.fields.push_back({.offset = static_cast<uint32_t>(byte), .size = 1});
    }
    type.alignment = std::max(type.alignment, is->alignment);
    return true;
  }
  if (member.die.has_member_location && !member.die.member_location) return false;
  const uint64_t offset = member.die.member_location.value_or(0);
  type.alignment = std::max(type.alignment, is->alignment);
  type.by_reference = type.by_reference || is->by_reference;
  if (type.size > kMaxInRegisters) return true;
  if (is->is_vector) {
    // A struct of one vector goes where that goes.
    type.is_vector = offset == 0 && is->size == type.size;
    type.fields.push_back({.offset = static_cast<uint32_t>(offset),
                           .size = static_cast<uint32_t>(is->size),
                           .kind = ScalarField::Kind::kFloat});
    return true;
  }
  if (type.fields.size() > kMaxFields) return false;
  for (ScalarField field : is->fields) {
    if (offset + field.offset + field.size > kMaxInRegisters) return false;
    field.offset += static_cast<uint32_t>(offset);
    type.fields.push_back(field);
  }
  return true;
}

std::optional<PrototypeType> PrototypeReader::ReadStruct(const Place& place, int depth) {
  const Die& die = place.die;
  if (die.declaration || !die.byte_size || depth > kMaxDepth) return std::nullopt;
  PrototypeType type;
  type.kind = Kind::kStruct;
  type.size = *die.byte_size;
  TextMembers text;
  bool has_destructor = false, is_virtual = false;
  DieChildren children(*place.info, *place.unit, die);
  while (const std::optional<Die> child = children.Next()) {
    const Place at = {place.info, place.unit, *child};
    if (child->tag == kTagMember || child->tag == kTagInheritance) {
      if (child->external || child->declaration) continue;  // static
      is_virtual = is_virtual || child->is_virtual;
      const std::string name = TextOf(at, child->name);
      is_virtual = is_virtual || name.starts_with("_vptr");
      text.Note(name, child->member_location.value_or(0));
      if (!AddMember(at, depth, type)) return std::nullopt;
    } else if (child->tag == kTagSubprogram) {
      has_destructor = has_destructor || TextOf(at, child->name).starts_with('~');
    }
  }
  if (die.alignment) {
    type.alignment = static_cast<uint32_t>(std::min<uint64_t>(*die.alignment, 1 << 16));
  }
  if (die.calling_convention) {
    type.by_reference = *die.calling_convention == kCcPassByReference;
  } else {
    // Compilers that do not say so. Most of what needs it has one of these.
    type.by_reference = type.by_reference || has_destructor || is_virtual;
  }
  text.MakeText(TextOf(place, die.name), type);
  return type;
}

void PrototypeReader::AddOrigins(const Place& instance, std::set<Key>& origins) {
  DieChildren children(*instance.info, *instance.unit, instance.die);
  while (const std::optional<Die> child = children.Next()) {
    if (child->tag != kTagFormalParameter) continue;
    const Place at = {instance.info, instance.unit, *child};
    if (const auto origin = Follow(at, child->origin)) {
      origins.emplace(origin->info, origin->die.offset);
    }
  }
}

void PrototypeReader::ReadParameters(const Place& function,
                                     const std::optional<std::set<Key>>& in_instance,
                                     Prototype& prototype) {
  DieChildren children(*function.info, *function.unit, function.die);
  bool is_first = true;
  while (const std::optional<Die> child = children.Next()) {
    if (child->tag != kTagFormalParameter) continue;
    // Behind `this`, GCC gives constructors and destructors __in_chrg and __vtt_parm. Of the
    // variants that it makes of one (C1, C2, D0, D1, D2: Itanium C++ ABI 5.1.4) none takes the
    // first, and only those of subobjects with virtual bases take the second (ABI 2.6): each
    // instance has those that it takes.
    const bool is_passed = !child->artificial || is_first || !in_instance ||
                           in_instance->contains({function.info, child->offset});
    is_first = false;
    if (!is_passed) continue;
    Place at = {function.info, function.unit, *child};
    std::string name = TextOf(at, child->name);
    // What an instance leaves to its origin.
    for (int i = 0; i < kMaxDepth && !at.die.has_type; ++i) {
      std::optional<Place> origin = Follow(at, at.die.origin);
      if (!origin) break;
      at = *origin;
      if (name.empty()) name = TextOf(at, at.die.name);
    }
    const std::optional<PrototypeType> type = TypeOf(at, 0);
    if (!at.die.has_type || !type || prototype.parameters.size() == kMaxParameters) {
      prototype.why_incomplete = kNotThere;
      return;
    }
    prototype.parameters.push_back({std::move(name), *type});
  }
}

std::expected<Prototype, std::string> PrototypeReader::Read(DebugInfo& info, uint64_t offset) {
  std::optional<Place> place = At(info, offset);
  if (!place) return std::unexpected("its debug information is damaged");
  const std::optional<Die> root = ReadDie(info, *place->unit, place->unit->die_offset);
  if (!root || !root->language || !CallsAsC(*root->language)) {
    return std::unexpected("of a language whose calls are not as C's");
  }
  if (place->die.calling_convention.value_or(kCcNormal) != kCcNormal) {
    return std::unexpected("the compiler has changed how it is called");
  }
  Prototype prototype;
  bool has_parameters = false;
  std::optional<std::set<Key>> in_instance;  // parameters of its origins that it has, too
  for (int i = 0; i < kMaxDepth && place; ++i) {
    // The origin of an instance has all parameters, also those that the instance does not need.
    if (place->die.origin.form_class != FormClass::kNone) {
      if (!in_instance) in_instance.emplace();
      AddOrigins(*place, *in_instance);
    } else if (!has_parameters) {
      ReadParameters(*place, in_instance, prototype);
      has_parameters = !prototype.parameters.empty() || !prototype.why_incomplete.empty();
    }
    if (place->die.has_type) {
      const std::optional<PrototypeType> result = TypeOf(*place, 0);
      prototype.result_is_known = result.has_value();
      if (result) prototype.result = *result;
      if (!result && prototype.why_incomplete.empty()) prototype.why_incomplete = kNotThere;
      if (has_parameters) break;
    }
    const FormValue next = place->die.origin.form_class != FormClass::kNone
                               ? place->die.origin
                               : place->die.specification;
    if (next.form_class == FormClass::kNone) break;
    place = Follow(*place, next);
  }
  return prototype;
}

}  // namespace stackreel::dwarf
