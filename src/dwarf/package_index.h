// .debug_cu_index of a package file (.dwp): which part of each section belongs to which unit.
// Follows DWARF 5, section 7.3.5, and the version 2 of the GNU debug fission design.
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "dwarf/debug_sections.h"

namespace stackreel::dwarf {

class PackageIndex {
 public:
  // Views `bytes`. Nothing if it is not an index of a version that is known, or runs out of bounds.
  static std::optional<PackageIndex> Parse(ByteView bytes, Endian endian);

  // The parts of `package`, which this index is of, that belong to the unit with that id; strings
  // are whole. Nothing if the unit is not in the package, or a part is out of bounds.
  [[nodiscard]] std::optional<DebugSections> Find(uint64_t dwo_id,
                                                  const DebugSections& package) const;

 private:
  PackageIndex() = default;

  Endian endian_ = Endian::kLittle;
  uint16_t version_ = 0;
  uint64_t columns_ = 0;
  uint64_t slots_ = 0;
  uint64_t units_ = 0;
  ByteView ids_;      // u64 a slot
  ByteView rows_;     // u32 a slot: row from 1, 0: the slot is free
  ByteView kinds_;    // u32 a column: PackageSection
  ByteView offsets_;  // u32 a column, row by row
  ByteView sizes_;
};

}  // namespace stackreel::dwarf
