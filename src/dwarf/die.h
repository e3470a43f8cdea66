// A DIE with the attributes that types and prototypes are made of, and its children.
#pragma once

#include <cstdint>
#include <optional>

#include "dwarf/form.h"
#include "dwarf/unit.h"

namespace stackreel::dwarf {

struct Die {
  uint64_t offset = 0;    // in .debug_info
  uint64_t children = 0;  // where the first one, or the end of their list, stands; 0: it has none
  uint64_t sibling = 0;   // where the DIE behind the children stands; 0: not told
  uint16_t tag = 0;

  FormValue name;
  FormValue type;
  bool has_type = false;    // also where `type` is no reference that can be followed
  FormValue origin;         // DW_AT_abstract_origin
  FormValue specification;  // DW_AT_specification
  std::optional<uint64_t> byte_size, bit_size, data_bit_offset;
  std::optional<uint64_t> encoding, language, calling_convention, alignment;
  std::optional<uint64_t> member_location;  // where it is a constant
  bool has_member_location = false;
  std::optional<uint64_t> const_value, upper_bound, count;
  bool external = false, declaration = false, artificial = false;
  bool is_vector = false, is_virtual = false;
};

// Reads the DIE at an offset; nothing if there is none, or it is damaged.
[[nodiscard]] std::optional<Die> ReadDie(DebugInfo& info, const Unit& unit, uint64_t offset);

// The children of a DIE, one after another.
class DieChildren {
 public:
  DieChildren(DebugInfo& info, const Unit& unit, const Die& parent)
      : info_(info), unit_(unit), at_(parent.children) {}
  // Nothing: that was the last, or what comes is damaged.
  std::optional<Die> Next();

 private:
  // Where the DIE behind a DIE and what is below it stands; 0 if that is not to be found.
  [[nodiscard]] uint64_t Behind(const Die& die);

  DebugInfo& info_;
  const Unit& unit_;
  uint64_t at_;  // 0: at the end
};

}  // namespace stackreel::dwarf
