// Writes small ELF files: for tests and fuzz seeds.
#pragma once

#include <elf.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/byte_writer.h"
#include "elf/image.h"

namespace stackreel::elf {

// The file lies so: ELF header, program headers, sections' bytes in order, section headers.
class ElfWriter {
 public:
  struct NewSection {
    std::string name = {};
    uint32_t type = SHT_PROGBITS;
    uint64_t flags = 0;
    uint64_t addr = 0;
    std::vector<uint8_t> bytes = {};
    uint64_t nobits_size = 0;  // for SHT_NOBITS
    uint32_t link = 0;
    uint32_t info = 0;
    uint64_t align = 1;
    uint64_t entry_size = 0;
  };
  struct NewSymbol {
    std::string name = {};
    uint64_t value = 0;
    uint64_t size = 0;
    uint8_t type = STT_FUNC;
    uint8_t binding = STB_GLOBAL;
    uint16_t section = 1;
    uint8_t other = 0;
  };

  explicit ElfWriter(Class elf_class = Class::k64, Endian endian = Endian::kLittle,
                     uint16_t machine = EM_X86_64, uint16_t type = ET_DYN)
      : class_(elf_class), endian_(endian), machine_(machine), type_(type) {}

  // Gives the section's index.
  uint32_t Add(NewSection section) {
    sections_.push_back(std::move(section));
    return static_cast<uint32_t>(sections_.size());
  }
  // A PT_LOAD or other segment of one section's bytes at the section's address.
  void AddSegment(uint32_t type, uint32_t flags, uint32_t section) {
    segments_.push_back({.header = {.type = type, .flags = flags}, .section = section});
  }
  // A segment with everything as given.
  void AddSegment(const Segment& segment) { segments_.push_back({.header = segment}); }
  // A symbol table and its string table; SHT_SYMTAB or SHT_DYNSYM.
  uint32_t AddSymbols(uint32_t type, const std::vector<NewSymbol>& symbols) {
    ByteWriter table(endian_);
    std::string names(1, '\0');
    WriteSymbol(table, {.type = 0, .binding = 0, .section = 0}, 0);
    for (const NewSymbol& symbol : symbols) {
      WriteSymbol(table, symbol, static_cast<uint32_t>(names.size()));
      names += symbol.name + '\0';
    }
    const bool dynamic = type == SHT_DYNSYM;
    const uint32_t strings = Add({.name = dynamic ? ".dynstr" : ".strtab",
                                  .type = SHT_STRTAB,
                                  .bytes = Copy(AsBytes(names))});
    return Add({.name = dynamic ? ".dynsym" : ".symtab",
                .type = type,
                .bytes = table.Take(),
                .link = strings,
                .info = 1,
                .align = 8,
                .entry_size = Is64() ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym)});
  }
  void AddBuildId(const BuildId& id) {
    ByteWriter note(endian_);
    note.U32(4);
    note.U32(static_cast<uint32_t>(id.bytes().size()));
    note.U32(NT_GNU_BUILD_ID);
    note.Text(std::string_view("GNU\0", 4));
    note.Bytes(id.bytes());
    Add({.name = ".note.gnu.build-id", .type = SHT_NOTE, .bytes = note.Take(), .align = 4});
  }
  void AddDebugLink(std::string_view file_name, uint32_t crc) {
    ByteWriter link(endian_);
    link.Text(file_name);
    link.U8(0);
    link.AlignTo(4);
    link.U32(crc);
    Add({.name = ".gnu_debuglink", .bytes = link.Take(), .align = 4});
  }

  std::vector<uint8_t> Take() {
    std::string names(1, '\0');
    std::vector<uint32_t> name_offsets;
    Add({.name = ".shstrtab", .type = SHT_STRTAB});
    for (const NewSection& section : sections_) {
      name_offsets.push_back(static_cast<uint32_t>(names.size()));
      names += section.name + '\0';
    }
    sections_.back().bytes = Copy(AsBytes(names));
    ByteWriter out(endian_);
    out.Zeros(Is64() ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr));
    const size_t segments_at = out.size();
    out.Zeros(segments_.size() * (Is64() ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr)));
    std::vector<uint64_t> offsets;
    for (const NewSection& section : sections_) {
      out.AlignTo(section.align);
      offsets.push_back(out.size());
      out.Bytes(section.bytes);
    }
    out.AlignTo(8);
    const size_t sections_at = out.size();
    WriteSectionHeader(out, {.type = SHT_NULL, .align = 0}, 0, 0);
    for (size_t i = 0; i < sections_.size(); ++i) {
      WriteSectionHeader(out, sections_[i], name_offsets[i], offsets[i]);
    }
    std::vector<uint8_t> file = out.Take();
    Overwrite(file, 0, FileHeader(segments_at, sections_at));
    Overwrite(file, segments_at, ProgramHeaders(offsets));
    return file;
  }

  static std::vector<uint8_t> Copy(ByteView bytes) { return {bytes.begin(), bytes.end()}; }

 private:
  struct NewSegment {
    Segment header;
    uint32_t section = 0;  // 0: header holds everything
  };

  [[nodiscard]] bool Is64() const { return class_ == Class::k64; }
  void Word(ByteWriter& out, uint64_t value) const {
    if (Is64()) {
      out.U64(value);
    } else {
      out.U32(static_cast<uint32_t>(value));
    }
  }
  static void Overwrite(std::vector<uint8_t>& file, size_t at, const std::vector<uint8_t>& bytes) {
    std::copy(bytes.begin(), bytes.end(), file.begin() + static_cast<std::ptrdiff_t>(at));
  }

  void WriteSymbol(ByteWriter& out, const NewSymbol& symbol, uint32_t name) const {
    const auto info = static_cast<uint8_t>(symbol.binding << 4 | symbol.type);
    out.U32(name);
    if (Is64()) {
      out.U8(info);
      out.U8(symbol.other);
      out.U16(symbol.section);
      out.U64(symbol.value);
      out.U64(symbol.size);
    } else {
      out.U32(static_cast<uint32_t>(symbol.value));
      out.U32(static_cast<uint32_t>(symbol.size));
      out.U8(info);
      out.U8(symbol.other);
      out.U16(symbol.section);
    }
  }

  void WriteSectionHeader(ByteWriter& out, const NewSection& section, uint32_t name,
                          uint64_t offset) const {
    out.U32(name);
    out.U32(section.type);
    Word(out, section.flags);
    Word(out, section.addr);
    Word(out, offset);
    Word(out, section.type == SHT_NOBITS ? section.nobits_size : section.bytes.size());
    out.U32(section.link);
    out.U32(section.info);
    Word(out, section.align);
    Word(out, section.entry_size);
  }

  [[nodiscard]] std::vector<uint8_t> FileHeader(size_t segments_at, size_t sections_at) const {
    ByteWriter out(endian_);
    out.Text(ELFMAG);
    out.U8(Is64() ? ELFCLASS64 : ELFCLASS32);
    out.U8(endian_ == Endian::kLittle ? ELFDATA2LSB : ELFDATA2MSB);
    out.U8(EV_CURRENT);
    out.Zeros(EI_NIDENT - 7);
    out.U16(type_);
    out.U16(machine_);
    out.U32(EV_CURRENT);
    Word(out, 0x1000);  // e_entry
    Word(out, segments_.empty() ? 0 : segments_at);
    Word(out, sections_at);
    out.U32(0);  // e_flags
    out.U16(Is64() ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr));
    out.U16(Is64() ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr));
    out.U16(static_cast<uint16_t>(segments_.size()));
    out.U16(Is64() ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr));
    out.U16(static_cast<uint16_t>(sections_.size() + 1));
    out.U16(static_cast<uint16_t>(sections_.size()));
    return out.Take();
  }

  [[nodiscard]] std::vector<uint8_t> ProgramHeaders(const std::vector<uint64_t>& offsets) const {
    ByteWriter out(endian_);
    for (const NewSegment& added : segments_) {
      Segment segment = added.header;
      if (added.section != 0) {
        const NewSection& section = sections_[added.section - 1];
        segment.offset = offsets[added.section - 1];
        segment.vaddr = section.addr;
        segment.file_size = section.bytes.size();
        segment.mem_size = section.bytes.size() + section.nobits_size;
        segment.align = section.align;
      }
      out.U32(segment.type);
      if (Is64()) out.U32(segment.flags);
      Word(out, segment.offset);
      Word(out, segment.vaddr);
      Word(out, segment.vaddr);
      Word(out, segment.file_size);
      Word(out, segment.mem_size);
      if (!Is64()) out.U32(segment.flags);
      Word(out, segment.align);
    }
    return out.Take();
  }

  Class class_;
  Endian endian_;
  uint16_t machine_;
  uint16_t type_;
  std::vector<NewSection> sections_;
  std::vector<NewSegment> segments_;
};

}  // namespace stackreel::elf
