// The units of .debug_info: headers, root DIEs, and what the values of their DIEs mean.
// Follows DWARF 5, sections 3.1 and 7.5.1, and the GNU split DWARF extensions of version 4.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/byte_reader.h"
#include "base/counters.h"
#include "dwarf/abbrev.h"
#include "dwarf/debug_sections.h"
#include "dwarf/form.h"

namespace stackreel::dwarf {

struct Unit {
  // From the header. Offsets are in .debug_info.
  uint64_t offset = 0;
  uint64_t end = 0;
  uint64_t die_offset = 0;  // of the root DIE
  uint64_t abbrev_offset = 0;
  Encoding encoding;
  uint8_t type = 0;  // UnitType

  // From the root DIE, once DebugInfo::ReadRoot was called.
  bool root_read = false;
  uint16_t tag = 0;
  std::optional<uint64_t> low_pc;  // the base address of range lists
  FormValue high_pc;
  FormValue ranges;
  std::optional<uint64_t> stmt_list;
  FormValue comp_dir;  // for DebugInfo::TextOf
  std::string_view dwo_name;
  std::optional<uint64_t> dwo_id;
  uint64_t addr_base = 0;
  uint64_t str_offsets_base = 0;
  uint64_t rnglists_base = 0;
  uint64_t gnu_ranges_base = 0;
  // For the unit of a .dwo: the sections of the file with its skeleton, which hold the addresses.
  const DebugSections* skeleton_sections = nullptr;
};

// What is known of a function DIE's name after its own attributes were read.
struct DieName {
  FormValue name;
  FormValue linkage_name;
  FormValue origin;  // DW_AT_abstract_origin or DW_AT_specification
};

// The units of one file (or of one unit's part of a package).
class DebugInfo {
 public:
  // `file` holds what `sections` view.
  DebugInfo(std::shared_ptr<const DebugSectionFile> file, const DebugSections& sections,
            Counters& counters);

  [[nodiscard]] const DebugSectionFile& file() const { return *file_; }
  [[nodiscard]] const DebugSections& sections() const { return sections_; }
  // .debug_line, read on first need.
  [[nodiscard]] ByteView line() const;
  // In order of offset; type units are left out.
  [[nodiscard]] std::span<Unit> units() { return units_; }
  // The unit that holds an offset in .debug_info, or null.
  Unit* UnitAt(uint64_t offset);
  // Reads the root DIE, if that was not done. Does not read the whole abbreviation table.
  void ReadRoot(Unit& unit);
  const AbbrevTable& AbbrevsOf(const Unit& unit);

  // A reader at `offset` that ends where the unit does.
  [[nodiscard]] ByteReader ReaderAt(const Unit& unit, uint64_t offset) const;
  // Reads the name attributes of the DIE at an offset; false if there is no DIE.
  bool ReadDieName(Unit& unit, uint64_t offset, DieName* name);

  // An address, from .debug_addr where the form says so.
  [[nodiscard]] std::optional<uint64_t> AddressOf(const Unit& unit, const FormValue& value) const;
  // The address at an index from the unit's base in .debug_addr.
  [[nodiscard]] std::optional<uint64_t> IndexedAddress(const Unit& unit, uint64_t index) const;
  // Text of any form but those in the supplementary file; empty where there is none.
  [[nodiscard]] std::string_view TextOf(const Unit& unit, const FormValue& value) const;
  // An offset into a section: DW_FORM_sec_offset, or data4/data8 in DWARF 2 and 3.
  [[nodiscard]] static std::optional<uint64_t> SectionOffsetOf(const FormValue& value);

 private:
  void ReadHeaders(Counters& counters);
  [[nodiscard]] size_t CountHeaders() const;
  // A section that the file reads on first need.
  [[nodiscard]] ByteView OnNeed(ByteView (DebugSectionFile::*section)() const) const;
  // False if it cannot be a unit; `unit->end` is 0 if nothing behind it can be read either.
  bool ReadHeader(uint64_t offset, Unit* unit) const;
  void TakeRootAttributes(Unit& unit, ByteReader& reader, const AbbrevTable& table,
                          const Abbrev& abbrev);

  std::shared_ptr<const DebugSectionFile> file_;
  DebugSections sections_;
  Counters& counters_;
  std::vector<Unit> units_;
  std::unordered_map<uint64_t, AbbrevTable> abbrevs_;  // by offset and encoding
  // The abbreviation last found for a root DIE: units that share a table share it too.
  AbbrevTable root_abbrev_;
  uint64_t root_abbrev_offset_ = UINT64_MAX;
  // How many attributes may be passed over, in all tables; a file that needs more is damaged.
  uint64_t abbrev_steps_left_;
};

// Text up to a NUL at an offset of a section; empty if out of bounds.
std::string_view TextAt(ByteView section, uint64_t offset);

}  // namespace stackreel::dwarf
