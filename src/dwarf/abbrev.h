// Abbreviation tables: which attributes, in which forms, a DIE of a code has. Follows DWARF 5,
// section 7.5.3.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/byte_reader.h"
#include "dwarf/form.h"

namespace stackreel::dwarf {

struct AttributeSpec {
  uint16_t name = 0;  // UINT16_MAX: a number too large to be one that is read
  uint16_t form = 0;
  int64_t implicit = 0;  // the value, for DW_FORM_implicit_const
};

struct Abbrev {
  static constexpr uint32_t kVaries = UINT32_MAX;

  uint64_t code = 0;
  uint16_t tag = 0;
  bool has_children = false;
  uint32_t first_attribute = 0;
  uint32_t attribute_count = 0;
  uint32_t fixed_size = kVaries;  // bytes of all values together, where that does not vary
};

class AbbrevTable {
 public:
  // Reads up to the end of the table, or where it stops making sense (then damaged() is true).
  // Values will be read in `encoding`. Each abbreviation and attribute takes one of `steps`; none
  // left is damage.
  static AbbrevTable Read(ByteReader reader, const Encoding& encoding, uint64_t* steps);
  // Reads until the abbreviation of `code`, and keeps only that one.
  static AbbrevTable ReadOne(ByteReader reader, const Encoding& encoding, uint64_t code,
                             uint64_t* steps);

  [[nodiscard]] const Abbrev* Find(uint64_t code) const;
  [[nodiscard]] std::span<const AttributeSpec> AttributesOf(const Abbrev& abbrev) const {
    return std::span(attributes_).subspan(abbrev.first_attribute, abbrev.attribute_count);
  }
  [[nodiscard]] bool damaged() const { return damaged_; }
  [[nodiscard]] const Encoding& encoding() const { return encoding_; }

 private:
  // False at the end of the table, and where it is damaged.
  bool ReadAbbrev(ByteReader& reader, uint64_t* steps);

  Encoding encoding_;
  std::vector<Abbrev> abbrevs_;  // by code
  std::vector<AttributeSpec> attributes_;
  bool damaged_ = false;
};

}  // namespace stackreel::dwarf
