#include "x86/value_places.h"

#include <algorithm>

namespace stackreel::x86 {

namespace {

constexpr uint32_t kWord = 8;
constexpr uint32_t kIntegerRegisters = 6, kVectorRegisters = 8;

enum class Class : uint8_t { kNone, kInteger, kSse, kX87, kX87Up };

struct Classes {
  bool memory = false;
  std::array<Class, 2> of = {Class::kNone, Class::kNone};
};

Class Merge(Class a, Class b) {
  if (a == b || b == Class::kNone) return a;
  if (a == Class::kNone) return b;
  if (a == Class::kInteger || b == Class::kInteger) return Class::kInteger;
  return Class::kSse;  // with x87 in the same eight bytes it would be memory: see below
}

Classes ClassesOf(const PassedValue& value) {
  Classes classes;
  if (value.is_vector) {
    classes.of[0] = Class::kSse;
    return classes;
  }
  classes.memory = value.size > 2 * kWord;
  if (classes.memory) return classes;
  for (const ValueField& field : value.fields) {
    if (field.size == 0) continue;
    const uint32_t last = field.offset + field.size - 1;
    // A scalar that is not where its size wants it. (Wider ones than a word are integers of two.)
    const uint32_t natural = std::min(field.size, kWord);
    const bool unaligned = (natural & (natural - 1)) == 0 && field.offset % natural != 0;
    if (unaligned || last >= 2 * kWord) {
      classes.memory = true;
      return classes;
    }
    if (field.field_class == FieldClass::kX87) {
      // x87 with anything else is in memory.
      const bool alone = value.fields.size() == 1 && field.offset == 0;
      classes.memory = !alone;
      classes.of = {Class::kX87, Class::kX87Up};
      if (classes.memory) return classes;
      continue;
    }
    for (uint32_t word = field.offset / kWord; word <= last / kWord; ++word) {
      classes.of[word] =
          Merge(classes.of[word],
                field.field_class == FieldClass::kInteger ? Class::kInteger : Class::kSse);
    }
  }
  return classes;
}

class Registers {
 public:
  // Puts an argument into registers if all of it finds room there, else on the stack.
  ValuePlaces Take(const PassedValue& value) {
    ValuePlaces places;
    if (value.by_reference) {
      places.by_reference = true;
      places.eightbytes[0] = TakeInteger();
      return places;
    }
    const Classes classes = ClassesOf(value);
    const auto count = [&](Class wanted) {
      return static_cast<uint32_t>(std::ranges::count(classes.of, wanted));
    };
    const bool x87 = classes.of[0] == Class::kX87;
    if (!classes.memory && !x87 && count(Class::kNone) == 2) return places;  // an empty class
    if (classes.memory || x87 || count(Class::kInteger) > kIntegerRegisters - integers_ ||
        count(Class::kSse) > kVectorRegisters - vectors_) {
      places.eightbytes[0] = TakeStack(value.size, value.alignment);
      return places;
    }
    for (size_t i = 0; i < classes.of.size(); ++i) {
      if (classes.of[i] == Class::kInteger) places.eightbytes[i] = TakeInteger();
      if (classes.of[i] == Class::kSse) {
        places.eightbytes[i] = {PlaceKind::kVector, vectors_++};
      }
    }
    return places;
  }
  Place TakeInteger() {
    if (integers_ == kIntegerRegisters) return TakeStack(kWord, kWord);
    return {PlaceKind::kInteger, integers_++};
  }

 private:
  Place TakeStack(uint64_t size, uint32_t alignment) {
    // rsp + 8 is aligned to 16 at the entry.
    alignment = std::max(alignment, kWord);
    stack_ = (stack_ - kWord + alignment - 1) / alignment * alignment + kWord;
    const Place place = {PlaceKind::kStack, stack_};
    stack_ +=
        static_cast<uint32_t>((std::min<uint64_t>(size, 1 << 20) + kWord - 1) / kWord * kWord);
    return place;
  }

  uint32_t integers_ = 0, vectors_ = 0;
  uint32_t stack_ = kWord;  // behind the return address
};

// _Complex long double: a value of more than 16 bytes of which the scalars are told.
bool IsComplexX87(const PassedValue& value) {
  return value.size == 4 * kWord && value.fields.size() == 2 &&
         value.fields[0].field_class == FieldClass::kX87;
}

// Sets whether the caller must hand in where the result goes.
ValuePlaces ResultOf(const PassedValue& result, bool& handed_in) {
  ValuePlaces places;
  if (IsComplexX87(result)) {
    places.eightbytes[0] = {PlaceKind::kX87, 0};
    return places;
  }
  const Classes classes = ClassesOf(result);
  handed_in = result.size != 0 && (result.by_reference || classes.memory);
  if (handed_in) {
    places.by_reference = true;
    places.eightbytes[0] = {PlaceKind::kInteger, 0};
    return places;
  }
  uint32_t integers = 0, vectors = 0;
  for (size_t i = 0; i < classes.of.size(); ++i) {
    if (classes.of[i] == Class::kInteger) places.eightbytes[i] = {PlaceKind::kInteger, integers++};
    if (classes.of[i] == Class::kSse) places.eightbytes[i] = {PlaceKind::kVector, vectors++};
    if (classes.of[i] == Class::kX87) places.eightbytes[i] = {PlaceKind::kX87, 0};
  }
  return places;
}

}  // namespace

CallPlaces PlacesOf(std::span<const PassedValue> arguments, const PassedValue& result) {
  CallPlaces places;
  Registers registers;
  bool handed_in = false;
  places.result = ResultOf(result, handed_in);
  if (handed_in) (void)registers.TakeInteger();
  for (const PassedValue& argument : arguments) {
    places.arguments.push_back(registers.Take(argument));
  }
  return places;
}

}  // namespace stackreel::x86
