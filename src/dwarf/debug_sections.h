// The .debug_* sections of one file, decompressed where need be.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/build_id.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/io.h"
#include "elf/image.h"
#include "elf/relocation.h"

namespace stackreel::dwarf {

// [lo, hi), svmas.
struct AddressRange {
  uint64_t lo = 0;
  uint64_t hi = 0;
};

// Views; a section that is not there is empty. Those of lines are not here, but in
// DebugSectionFile.
struct DebugSections {
  Endian endian = Endian::kLittle;
  ByteView info, abbrev, str, str_offsets, addr, ranges, rnglists, aranges;
};

// A file that the debug information refers to for what it shares with others (dwz).
struct SupplementaryLink {
  std::string_view path;
  ByteView build_id;
};

// For use by one thread at a time: the sections that not everybody needs are read on first need.
class DebugSectionFile {
 public:
  enum class Kind : uint8_t {
    kLinked,         // an executable, library or separate debug file: ".debug_info"
    kSupplementary,  // what dwz moved out of several of these; it has no code, and so no addresses
    kSplit,          // a .dwo or .dwp: ".debug_info.dwo"
  };
  // Keeps `file`. Of a relocatable one (a .o or .ko) addresses are those of elf::RelocatableLayout.
  // kNotFound: it has no .debug_info.
  static Result<std::shared_ptr<const DebugSectionFile>> Open(FileImagePtr file, Kind kind);

  [[nodiscard]] const DebugSections& sections() const { return sections_; }
  // .debug_line and .debug_line_str; empty of a split file, whose lines are in that of its
  // skeleton.
  [[nodiscard]] ByteView line() const { return OnNeed(line_, ".debug_line"); }
  [[nodiscard]] ByteView line_str() const { return OnNeed(line_str_, ".debug_line_str"); }
  // The sections that could not be decompressed; grows with those that are read on first need.
  [[nodiscard]] uint64_t bad_sections() const { return bad_sections_; }
  // Relocations of a relocatable file that were left undone.
  [[nodiscard]] uint64_t relocations_not_done() const { return relocations_not_done_; }
  // .debug_cu_index of a package; empty if it is none.
  [[nodiscard]] ByteView package_index() const { return package_index_; }
  [[nodiscard]] const std::optional<SupplementaryLink>& supplementary() const {
    return supplementary_;
  }
  // Whether code can be at an address: false for what a linker left of a function it dropped, whose
  // addresses start at 0, 1 or the highest number.
  [[nodiscard]] bool MayHoldCode(uint64_t svma) const;

 private:
  DebugSectionFile(FileImagePtr file, elf::Image image, Kind kind)
      : file_(std::move(file)), image_(std::move(image)), kind_(kind) {}
  ByteView Load(std::string_view name) const;
  ByteView OnNeed(std::optional<ByteView>& section, std::string_view name) const;
  void ReadSupplementaryLink();
  void ReadCodeRanges();

  FileImagePtr file_;
  elf::Image image_;  // of file_
  Kind kind_;
  mutable std::vector<elf::SectionBytes> loaded_;
  mutable std::optional<ByteView> line_, line_str_;
  DebugSections sections_;
  ByteView package_index_;
  BuildId supplementary_id_;
  std::optional<SupplementaryLink> supplementary_;
  std::vector<AddressRange> code_;                // sorted; empty: not known
  std::optional<elf::RelocatableLayout> layout_;  // of a relocatable file
  mutable uint64_t bad_sections_ = 0;
  mutable uint64_t relocations_not_done_ = 0;
};

}  // namespace stackreel::dwarf
