// Writes small debug information, for tests.
#pragma once

#include <elf.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/byte_writer.h"
#include "base/memory_io.h"
#include "dwarf/constants.h"
#include "dwarf/form.h"
#include "elf/elf_writer.h"

namespace stackreel::dwarf {

inline constexpr Encoding kDwarf5 = {.version = 5, .address_size = 8, .dwarf64 = false};

inline void WriteUleb128(ByteWriter& out, uint64_t value) {
  do {
    const auto byte = static_cast<uint8_t>(value & 0x7f);
    value >>= 7;
    out.U8(value == 0 ? byte : byte | 0x80);
  } while (value != 0);
}

inline void WriteSized(ByteWriter& out, unsigned size, uint64_t value) {
  for (unsigned i = 0; i < size; ++i) {
    const unsigned shift = 8 * (out.endian() == Endian::kLittle ? i : size - 1 - i);
    out.U8(static_cast<uint8_t>(value >> shift));
  }
}

// One attribute of a DIE.
struct NewAttribute {
  uint16_t name = 0;
  uint16_t form = 0;
  uint64_t number = 0;
  std::string text = {};  // for DW_FORM_string and blocks
};

// .debug_info and .debug_abbrev of units, DIE by DIE; each DIE has an abbreviation of its own.
class UnitWriter {
 public:
  explicit UnitWriter(Encoding encoding, Endian endian = Endian::kLittle)
      : encoding_(encoding), info(endian), abbrev(endian) {}

  void BeginUnit(uint8_t type = kUnitCompile, std::optional<uint64_t> id = std::nullopt) {
    start_ = info.size();
    if (encoding_.dwarf64) info.U32(0xffffffff);
    WriteSized(info, encoding_.offset_size(), 0);
    info.U16(encoding_.version);
    const uint64_t abbrevs = abbrev.size();
    if (encoding_.version >= 5) {
      info.U8(type);
      info.U8(encoding_.address_size);
      WriteSized(info, encoding_.offset_size(), abbrevs);
      if (id) info.U64(*id);
    } else {
      WriteSized(info, encoding_.offset_size(), abbrevs);
      info.U8(encoding_.address_size);
    }
    next_code_ = 1;
  }
  // Adds a DIE, which the next ones are children of if `children`, up to EndChildren. Gives its
  // offset in .debug_info.
  uint64_t Die(uint16_t tag, bool children, const std::vector<NewAttribute>& attributes) {
    WriteUleb128(abbrev, next_code_);
    WriteUleb128(abbrev, tag);
    abbrev.U8(children ? 1 : 0);
    const uint64_t offset = info.size();
    WriteUleb128(info, next_code_++);
    for (const NewAttribute& attribute : attributes) {
      WriteUleb128(abbrev, attribute.name);
      WriteUleb128(abbrev, attribute.form);
      if (attribute.form == kFormImplicitConst) {
        WriteUleb128(abbrev, attribute.number);
      } else {
        WriteValue(attribute);
      }
    }
    abbrev.U16(0);
    return offset;
  }
  void EndChildren() { info.U8(0); }
  void EndUnit() {
    abbrev.U8(0);
    const size_t length_at = start_ + (encoding_.dwarf64 ? 4 : 0);
    const uint64_t length = info.size() - length_at - encoding_.offset_size();
    if (encoding_.dwarf64) {
      info.PutAt<uint64_t>(length_at, length);
    } else {
      info.PutAt<uint32_t>(length_at, static_cast<uint32_t>(length));
    }
  }
  // Offset in .debug_info from the start of the unit under way, for DW_FORM_ref4 and the like.
  [[nodiscard]] uint64_t InUnit(uint64_t offset) const { return offset - start_; }

 private:
  void WriteValue(const NewAttribute& attribute) {
    if (const int size = FixedFormSize(attribute.form, encoding_); size >= 0) {
      WriteSized(info, static_cast<unsigned>(size), attribute.number);
    } else if (attribute.form == kFormString) {
      info.Text(attribute.text);
      info.U8(0);
    } else if (attribute.form == kFormExprloc) {
      WriteUleb128(info, attribute.text.size());
      info.Text(attribute.text);
    } else {
      WriteUleb128(info, attribute.number);
    }
  }

  Encoding encoding_;
  size_t start_ = 0;
  uint64_t next_code_ = 1;

 public:
  ByteWriter info;
  ByteWriter abbrev;
};

// An ELF file of debug sections and a .text at [kTextStart, kTextStart + kTextSize).
class DebugFileWriter {
 public:
  static constexpr uint64_t kTextStart = 0x1000;
  static constexpr uint64_t kTextSize = 0x1000;

  explicit DebugFileWriter(uint16_t type = ET_DYN, Endian endian = Endian::kLittle)
      : elf_(elf::Class::k64, endian, EM_X86_64, type) {
    elf_.Add({.name = ".text",
              .type = SHT_NOBITS,
              .flags = SHF_ALLOC | SHF_EXECINSTR,
              .addr = kTextStart,
              .nobits_size = kTextSize});
  }
  DebugFileWriter& Add(std::string name, ByteView bytes) {
    elf_.Add({.name = std::move(name), .bytes = elf::ElfWriter::Copy(bytes)});
    return *this;
  }
  DebugFileWriter& Add(const UnitWriter& units, const std::string& suffix = "") {
    Add(".debug_info" + suffix, units.info.view());
    return Add(".debug_abbrev" + suffix, units.abbrev.view());
  }
  DebugFileWriter& AddSymbols(const std::vector<elf::ElfWriter::NewSymbol>& symbols) {
    elf_.AddSymbols(SHT_SYMTAB, symbols);
    return *this;
  }
  std::shared_ptr<MemoryImage> Take() { return std::make_shared<MemoryImage>(elf_.Take()); }

 private:
  elf::ElfWriter elf_;
};

}  // namespace stackreel::dwarf
