// Where the System V ABI for x86-64 (3.2.3, "Parameter Passing") puts arguments and return values.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace stackreel::x86 {

// A scalar inside of a value, of a class that the ABI knows.
enum class FieldClass : uint8_t { kInteger, kSse, kX87 };
struct ValueField {
  uint32_t offset = 0, size = 0;  // bytes
  FieldClass field_class = FieldClass::kInteger;
};

struct PassedValue {
  uint64_t size = 0;  // bytes; 0: void
  uint32_t alignment = 1;
  bool by_reference =
      false;               // in C++, not trivial for the purposes of calls: its address is passed
  bool is_vector = false;  // one vector register has all of it, whatever its size
  // Of values of up to 16 bytes; none: an empty class, which is not passed at all.
  std::vector<ValueField> fields;
};

enum class PlaceKind : uint8_t {
  kNowhere,
  kInteger,  // number: 0 … 5 rdi, rsi, rdx, rcx, r8, r9; of a result 0 rax, 1 rdx
  kVector,   // number: of the xmm register
  kStack,    // number: bytes above the return address, as the function is entered
  kX87,      // st(0)
};
struct Place {
  PlaceKind kind = PlaceKind::kNowhere;
  uint32_t number = 0;
  friend bool operator==(const Place&, const Place&) = default;
};

struct ValuePlaces {
  // Of the value's first and second eight bytes. All of one that is on the stack, and of a vector,
  // is at the first.
  std::array<Place, 2> eightbytes;
  // There stands its address.
  bool by_reference = false;
  friend bool operator==(const ValuePlaces&, const ValuePlaces&) = default;
};

struct CallPlaces {
  std::vector<ValuePlaces> arguments;
  ValuePlaces result;
};
[[nodiscard]] CallPlaces PlacesOf(std::span<const PassedValue> arguments,
                                  const PassedValue& result);

}  // namespace stackreel::x86
