#include "tracer/value_plan.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "x86/value_places.h"

namespace stackreel::tracer {

namespace {

using dwarf::PrototypeType;
using dwarf::TextLayout;
using tracedata::ValueFormat;
using tracedata::ValueRead;
using tracedata::WordPlace;
using x86::PlaceKind;
using How = ValueRead::How;

constexpr uint32_t kWord = 8;
constexpr uint32_t kLongestText = 256;  // bytes recorded of one
// The arguments of which so many are recorded: more would be no help to a reader.
constexpr size_t kMaxValues = 32;

x86::PassedValue Passed(const PrototypeType& type) {
  x86::PassedValue value{.size = type.size,
                         .alignment = type.alignment,
                         .by_reference = type.by_reference,
                         .is_vector = type.is_vector,
                         .fields = {}};
  for (const dwarf::ScalarField& field : type.fields) {
    using FieldKind = dwarf::ScalarField::Kind;
    const auto of = field.kind == FieldKind::kInteger ? x86::FieldClass::kInteger
                    : field.kind == FieldKind::kFloat ? x86::FieldClass::kSse
                                                      : x86::FieldClass::kX87;
    value.fields.push_back({field.offset, field.size, of});
  }
  return value;
}

WordPlace WordOf(const x86::Place& place, uint32_t behind = 0) {
  switch (place.kind) {
    case PlaceKind::kVector:
      return {.kind = WordPlace::Kind::kVector, .number = 2 * place.number + behind};
    case PlaceKind::kStack:
      return {.kind = WordPlace::Kind::kStack, .number = place.number + behind * kWord};
    case PlaceKind::kInteger:
    case PlaceKind::kNowhere:
    case PlaceKind::kX87:
      break;
  }
  return {.kind = WordPlace::Kind::kInteger, .number = place.number};
}

ValueFormat::Kind KindOf(PrototypeType::Kind kind) {
  switch (kind) {
    case PrototypeType::Kind::kSigned:
      return ValueFormat::Kind::kSigned;
    case PrototypeType::Kind::kUnsigned:
      return ValueFormat::Kind::kUnsigned;
    case PrototypeType::Kind::kBool:
      return ValueFormat::Kind::kBool;
    case PrototypeType::Kind::kCharacter:
      return ValueFormat::Kind::kCharacter;
    case PrototypeType::Kind::kFloat:
      return ValueFormat::Kind::kFloat;
    case PrototypeType::Kind::kEnumeration:
      return ValueFormat::Kind::kEnumeration;
    case PrototypeType::Kind::kPointer:
      return ValueFormat::Kind::kPointer;
    case PrototypeType::Kind::kFunction:
      return ValueFormat::Kind::kFunction;
    case PrototypeType::Kind::kText:
      return ValueFormat::Kind::kString;
    case PrototypeType::Kind::kVoid:
    case PrototypeType::Kind::kStruct:
      break;
  }
  return ValueFormat::Kind::kStruct;
}

// A text, in registers or in memory. False if where it is can not be read.
bool ReadText(const PrototypeType& type, const x86::ValuePlaces& places, ValueRead& read) {
  const x86::Place& first = places.eightbytes[0];
  read.first = WordOf(first);
  if (type.text == TextLayout::kTerminated) {
    read.how = How::kTerminated;
    return true;
  }
  if (type.text_is_behind_pointer || places.by_reference) {
    // There stands the object's address.
  } else if (first.kind == PlaceKind::kStack) {
    read.first.kind = WordPlace::Kind::kStackAddress;
  } else if (type.text == TextLayout::kPointerAndLength && type.size == 2 * kWord) {
    read.how = How::kCounted;
    read.first = WordOf(places.eightbytes[type.text_offset == 0 ? 0 : 1]);
    read.second = WordOf(places.eightbytes[type.length_offset == 0 ? 0 : 1]);
    return true;
  } else {
    return false;
  }
  read.how = type.text == TextLayout::kLibcxx         ? How::kLibcxx
             : type.text == TextLayout::kLengthBefore ? How::kLengthBefore
                                                      : How::kObject;
  read.bytes =
      static_cast<uint8_t>(std::min<uint64_t>(type.object_size, tracedata::kMaxObjectBytes));
  read.text_offset = static_cast<uint16_t>(type.text_offset);
  read.length_offset = static_cast<uint16_t>(type.length_offset);
  return read.text_offset + kWord <= read.bytes && read.length_offset + kWord <= read.bytes;
}

PlannedValue Plan(const PrototypeType& type, const x86::ValuePlaces& places) {
  PlannedValue value;
  value.format.kind = KindOf(type.kind);
  value.format.bytes = static_cast<uint8_t>(std::min<uint64_t>(type.size, 2 * kWord));
  value.enumeration = type.enumeration;
  const x86::Place& first = places.eightbytes[0];
  if (type.kind == PrototypeType::Kind::kText) {
    if (!ReadText(type, places, value.read)) value.format.kind = ValueFormat::Kind::kStruct;
    return value;
  }
  const bool is_shown = value.format.kind != ValueFormat::Kind::kStruct && type.size <= 2 * kWord &&
                        !places.by_reference && first.kind != PlaceKind::kNowhere;
  if (!is_shown) {
    value.format.kind = ValueFormat::Kind::kStruct;
    value.format.bytes = 0;
    return value;
  }
  if (first.kind == PlaceKind::kX87) {
    value.read.how = How::kX87;
    return value;
  }
  value.read.bytes = value.format.bytes;
  value.read.first = WordOf(first);
  if (type.size > kWord) {
    value.read.second =
        first.kind == PlaceKind::kInteger ? WordOf(places.eightbytes[1]) : WordOf(first, 1);
    // Views have no decimal numbers of that size.
    if (value.format.kind != ValueFormat::Kind::kFloat) {
      value.format.kind = ValueFormat::Kind::kHex;
    }
  }
  return value;
}

}  // namespace

ValuePlan PlanValues(const dwarf::Prototype& prototype) {
  ValuePlan plan;
  // Who does not know whether the address of the result is handed in knows no argument.
  if (!prototype.result_is_known) return plan;
  std::vector<x86::PassedValue> arguments;
  for (const dwarf::PrototypeParameter& parameter : prototype.parameters) {
    arguments.push_back(Passed(parameter.type));
  }
  const x86::CallPlaces places = x86::PlacesOf(arguments, Passed(prototype.result));
  for (size_t i = 0; i < arguments.size() && i < kMaxValues; ++i) {
    PlannedValue value = Plan(prototype.parameters[i].type, places.arguments[i]);
    value.format.name = prototype.parameters[i].name;
    plan.arguments.push_back(std::move(value));
  }
  if (prototype.result.size != 0) plan.results.push_back(Plan(prototype.result, places.result));
  return plan;
}

ValuePlan PlanValues(std::span<const ValueSpec> specs) {
  ValuePlan plan;
  for (const ValueSpec& spec : specs) {
    auto& values = spec.is_result ? plan.results : plan.arguments;
    values.push_back({.format = spec.format, .read = spec.read, .enumeration = nullptr});
  }
  return plan;
}

std::vector<uint8_t> EncodeReads(const ValuePlan& plan) {
  tracedata::ValueReads head;
  std::vector<ValueRead> reads;
  const auto add = [&](const std::vector<PlannedValue>& values) {
    const size_t first = reads.size();
    uint32_t others = 0, texts = 0;
    for (const PlannedValue& value : values) {
      if (value.format.kind == ValueFormat::Kind::kStruct) continue;
      reads.push_back(value.read);
      if (value.format.kind == ValueFormat::Kind::kString) {
        ++texts;
      } else {
        others += tracedata::MostBytesOf(value.read);
      }
      const auto is_vector = [](const WordPlace& place) {
        return place.kind == WordPlace::Kind::kVector;
      };
      if (is_vector(value.read.first) || is_vector(value.read.second)) head.vectors = 1;
    }
    if (texts != 0) {
      head.texts = 1;
      const uint32_t left = tracedata::kMaxValueBytes - std::min(others, tracedata::kMaxValueBytes);
      const uint32_t limit = std::min(kLongestText, left / texts > 16 ? left / texts - 16 : 0);
      for (ValueRead& read : std::span(reads).subspan(first)) {
        if (read.how == How::kNumber || read.how == How::kX87) continue;
        read.limit = static_cast<uint16_t>(limit);
      }
    }
    return static_cast<uint16_t>(reads.size() - first);
  };
  head.arguments = add(plan.arguments);
  head.results = add(plan.results);
  if (reads.empty()) return {};
  std::vector<uint8_t> bytes(sizeof(head) + reads.size() * sizeof(ValueRead));
  std::memcpy(bytes.data(), &head, sizeof(head));
  std::memcpy(bytes.data() + sizeof(head), reads.data(), reads.size() * sizeof(ValueRead));
  return bytes;
}

}  // namespace stackreel::tracer
