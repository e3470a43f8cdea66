// What a function takes and gives back, as debug information tells: enough to find the values in
// registers and memory, and to show them.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/counters.h"
#include "dwarf/die.h"
#include "dwarf/unit.h"

namespace stackreel::dwarf {

// A scalar inside of a value.
struct ScalarField {
  uint32_t offset = 0;  // of its first byte
  uint32_t size = 0;
  // kInteger: whatever is passed like one.
  enum class Kind : uint8_t { kInteger, kFloat, kLongDouble };
  Kind kind = Kind::kInteger;
  friend bool operator==(const ScalarField&, const ScalarField&) = default;
};

struct EnumerationNames {
  std::string name;
  std::vector<std::pair<int64_t, std::string>> names;
};

// Where an object keeps its text.
enum class TextLayout : uint8_t {
  kNone,
  kTerminated,        // a char* is the value: up to a NUL
  kPointerAndLength,  // a pointer and a length, at the offsets told
  kLengthBefore,  // a pointer, at the offset told; the length is the u64 24 bytes before its text
  kLibcxx,        // std::string of libc++ (its stable ABI): short ones within the object
};

struct PrototypeType {
  enum class Kind : uint8_t {
    kVoid,
    kSigned,
    kUnsigned,
    kBool,
    kCharacter,  // char
    kFloat,      // by size: float, double, long double
    kEnumeration,
    kPointer,
    kFunction,  // pointer to one
    kText,      // see `text`
    kStruct,    // and whatever else is made of others
  };
  Kind kind = Kind::kVoid;
  uint64_t size = 0;       // bytes
  uint32_t alignment = 1;  // bytes
  bool is_signed = false;  // of an enumeration's values
  // C++: it must not be copied by its bytes, so that its address is passed.
  bool by_reference = false;
  bool is_vector = false;  // all of it is in one vector register
  // kText: the value is the address of the object that has the text.
  bool text_is_behind_pointer = false;
  TextLayout text = TextLayout::kNone;
  uint32_t text_offset = 0, length_offset = 0;
  uint64_t object_size = 0;  // of the object with the text
  // Of all scalars, for values of up to 16 bytes.
  std::vector<ScalarField> fields;
  std::shared_ptr<const EnumerationNames> enumeration;
};

struct PrototypeParameter {
  std::string name;
  PrototypeType type;
};

struct Prototype {
  PrototypeType result;
  std::vector<PrototypeParameter> parameters;
  // Empty, or why the parameters behind these, or the result, are not known.
  std::string why_incomplete;
  bool result_is_known = true;
};

// Reads types of one file's debug information, each once.
class PrototypeReader {
 public:
  // `supplementary` gives dwz's file, or null. What is read of must outlive it.
  explicit PrototypeReader(std::function<DebugInfo*()> supplementary)
      : supplementary_(std::move(supplementary)) {}

  // Of the DW_TAG_subprogram at an offset. An error text where it is of a language whose calls are
  // not as C's, or the compiler has changed how it is called.
  [[nodiscard]] std::expected<Prototype, std::string> Read(DebugInfo& info, uint64_t die);

 private:
  // A DIE, and whose it is.
  struct Place {
    DebugInfo* info = nullptr;
    Unit* unit = nullptr;
    Die die;
  };
  using Key = std::pair<const DebugInfo*, uint64_t>;

  std::optional<Place> At(DebugInfo& info, uint64_t offset);
  // What a reference in `from` leads to.
  std::optional<Place> Follow(const Place& from, const FormValue& reference);
  // The type that a DIE has; nothing if it is not to be known.
  std::optional<PrototypeType> TypeOf(const Place& place, int depth);
  // The type that a place is. While it is being read it is not known: types may go in circles.
  std::optional<PrototypeType> TypeAt(const Place& place, int depth);
  std::optional<PrototypeType> ReadType(const Place& place, int depth);
  std::optional<PrototypeType> ReadPointer(const Place& place, int depth);
  std::optional<PrototypeType> ReadStruct(const Place& place, int depth);
  std::optional<PrototypeType> ReadArray(const Place& place, int depth);
  std::optional<PrototypeType> ReadEnumeration(const Place& place, int depth);
  static std::optional<PrototypeType> ReadBase(const Place& place, const std::string& name);
  bool AddMember(const Place& member, int depth, PrototypeType& type);
  std::string TextOf(const Place& place, const FormValue& text);
  // Adds the DIEs that an instance's parameters have as their origins.
  void AddOrigins(const Place& instance, std::set<Key>& origins);
  // `in_instance`: those that the instance has which is meant; nothing: the function is no origin.
  void ReadParameters(const Place& function, const std::optional<std::set<Key>>& in_instance,
                      Prototype& prototype);

  std::function<DebugInfo*()> supplementary_;
  std::map<Key, std::optional<PrototypeType>> types_;
};

}  // namespace stackreel::dwarf
