// Relocatable files (.o, .ko): where their sections will lie, and their bytes as they are then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "elf/image.h"

namespace stackreel::elf {

// The svmas of the sections, as Linux lays a module out: executable sections from 0 on, each at the
// next multiple of its alignment, in the order of the section table; those of initialisation
// (".init…", which are thrown away) behind them, then the other ones that take memory. Sections
// that take none are at 0.
class RelocatableLayout {
 public:
  explicit RelocatableLayout(const Image& image);
  // Of the section with that number in image.sections(); 0 for other numbers.
  [[nodiscard]] uint64_t AddressOf(size_t section) const {
    return section < addresses_.size() ? addresses_[section] : 0;
  }
  // Whether it is code that stays.
  [[nodiscard]] bool IsCode(size_t section) const {
    return section < is_code_.size() && is_code_[section];
  }

 private:
  std::vector<uint64_t> addresses_;
  std::vector<bool> is_code_;
};

// A section's bytes (Image::ReadSection) with the relocations for it done: addresses of 32 and 64
// bits, absolute or relative to their place, of x86-64, i386 and arm64 (their psABIs, section
// "Relocation Types"). Others are left undone and counted in `not_done`.
Result<std::vector<uint8_t>> ReadRelocated(const Image& image, const Section& section,
                                           const RelocatableLayout& layout, uint64_t& not_done);

}  // namespace stackreel::elf
