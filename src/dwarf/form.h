// The values of DIE attributes as their forms encode them. Follows DWARF 5, section 7.5.6, and the
// forms that GNU split DWARF and dwz added to version 4.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/byte_reader.h"

namespace stackreel::dwarf {

// What the size of a form depends on.
struct Encoding {
  uint16_t version = 0;
  uint8_t address_size = 8;
  bool dwarf64 = false;

  [[nodiscard]] uint8_t offset_size() const { return dwarf64 ? 8 : 4; }
  friend bool operator==(const Encoding&, const Encoding&) = default;
};

// How FormValue::number is to be read.
enum class FormClass : uint8_t {
  kNone,  // no such attribute, or of a form that holds none of the below (a block, a signature)
  kAddress,
  kAddressIndex,  // into .debug_addr, from the unit's base
  kConstant,      // also a flag, and an offset into a section in DWARF 2 and 3 (data4, data8)
  kSectionOffset,
  kRangeListIndex,  // into the offsets at the unit's .debug_rnglists base
  kText,            // the text itself, in FormValue::text
  kTextOffset,      // in .debug_str
  kLineTextOffset,  // in .debug_line_str
  kAltTextOffset,   // in .debug_str of the supplementary file
  kTextIndex,       // into .debug_str_offsets, from the unit's base
  kUnitRef,         // a DIE, from the start of this unit
  kInfoRef,         // a DIE, in this file's .debug_info
  kAltRef,          // a DIE, in the supplementary file's .debug_info
};

struct FormValue {
  FormClass form_class = FormClass::kNone;
  uint64_t number = 0;
  std::string_view text;
};

// Reads a value; `implicit` is that of DW_FORM_implicit_const. False if the form is unknown or the
// bytes end too early: then nothing behind it can be read either.
bool ReadForm(ByteReader& reader, uint16_t form, int64_t implicit, const Encoding& encoding,
              FormValue* value);
bool SkipForm(ByteReader& reader, uint16_t form, const Encoding& encoding);

// The number of bytes each value of that form takes, or -1 if it varies or the form is unknown.
int FixedFormSize(uint16_t form, const Encoding& encoding);

// An unsigned number of 1, 2, 4 or 8 bytes; other sizes fail as a read past the end does.
uint64_t ReadSized(ByteReader& reader, unsigned size);

}  // namespace stackreel::dwarf
