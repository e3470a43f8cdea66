// The sorted table of .eh_frame_hdr (LSB Core, 10.6.2).
#pragma once

#include <cstdint>
#include <optional>

#include "base/error.h"
#include "dwarf/cfi.h"

namespace stackreel::dwarf {

// version(1) · encodings of eh_frame_ptr, fde_count, table (1 each) · eh_frame_ptr · fde_count ·
// fde_count × {start of the function, address of its FDE}, sorted by start.
class FrameHeader {
 public:
  // kNotFound: no header. kDamaged: not one that can be searched.
  static Result<FrameHeader> Parse(const FrameSections& sections);

  [[nodiscard]] uint64_t count() const { return count_; }
  // Where .eh_frame is, as the header says.
  [[nodiscard]] Svma eh_frame() const { return eh_frame_; }
  // The address of the FDE with the greatest start not above `svma`.
  [[nodiscard]] std::optional<Svma> Find(Svma svma) const;
  // Reads the whole table.
  [[nodiscard]] bool IsSorted() const;

 private:
  [[nodiscard]] uint64_t Value(uint64_t offset) const;
  [[nodiscard]] uint64_t Start(uint64_t index) const { return Value(index * 2 * field_size_); }

  ByteView table_;
  Endian endian_ = Endian::kLittle;
  uint64_t count_ = 0;
  uint64_t base_ = 0;  // added to each field
  uint64_t address_mask_ = UINT64_MAX;
  unsigned field_size_ = 4;
  bool is_signed_ = false;
  Svma eh_frame_;
};

}  // namespace stackreel::dwarf
