// A bounds-checked view of an ELF file's bytes: 32 and 64 bit, both byte orders.
// Follows the System V gABI, chapters 4 and 5, and the GNU notes and sections it names.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/address.h"
#include "base/build_id.h"
#include "base/bytes.h"
#include "base/error.h"

namespace stackreel::elf {

enum class Class : uint8_t { k32, k64 };

// A program header.
struct Segment {
  uint32_t type = 0;   // PT_*
  uint32_t flags = 0;  // PF_*
  uint64_t offset = 0;
  uint64_t vaddr = 0;
  uint64_t file_size = 0;
  uint64_t mem_size = 0;
  uint64_t align = 0;

  [[nodiscard]] bool executable() const { return (flags & 1) != 0; }
};

// A section header. `name` points into the image.
struct Section {
  std::string_view name;
  uint32_t type = 0;
  uint64_t flags = 0;
  uint64_t addr = 0;
  uint64_t offset = 0;
  uint64_t size = 0;
  uint32_t link = 0;
  uint32_t info = 0;
  uint64_t align = 0;
  uint64_t entry_size = 0;
};

// A symbol table entry. `name` points into the image.
struct Symbol {
  std::string_view name;
  uint64_t value = 0;
  uint64_t size = 0;
  uint8_t type = 0;     // STT_*
  uint8_t binding = 0;  // STB_*
  uint8_t other = 0;
  uint16_t section = 0;  // SHN_UNDEF 0: not defined here; SHN_XINDEX: an index past 65,279
};

// The bytes of a section: a view into the image, or what they decompressed to.
class SectionBytes {
 public:
  explicit SectionBytes(ByteView view) : view_(view) {}
  explicit SectionBytes(std::vector<uint8_t> owned) : owned_(std::move(owned)), view_(owned_) {}
  SectionBytes(SectionBytes&&) noexcept = default;
  SectionBytes& operator=(SectionBytes&&) noexcept = default;
  SectionBytes(const SectionBytes&) = delete;
  SectionBytes& operator=(const SectionBytes&) = delete;
  ~SectionBytes() = default;
  [[nodiscard]] ByteView view() const { return view_; }

 private:
  std::vector<uint8_t> owned_;  // moving a vector keeps its bytes where they are
  ByteView view_;
};

struct DebugLink {
  std::string_view file_name;
  uint32_t crc = 0;
};
struct DebugAltLink {
  std::string_view file_name;
  BuildId build_id;
};

// Walks a symbol table without a copy of it.
class SymbolCursor {
 public:
  SymbolCursor() = default;
  // `entry_size` is at least that of the class's own Elf_Sym.
  SymbolCursor(ByteView table, ByteView names, size_t entry_size, Class elf_class, Endian endian);
  // How many entries there are, entry 0 (which is reserved) among them.
  [[nodiscard]] size_t count() const { return entry_size_ == 0 ? 0 : table_.size() / entry_size_; }
  // The next entry, from 0 on; false at the end. A name that is not in the string table is empty
  // and has null data.
  bool Next(Symbol* symbol);
  // The same, but the name is given apart, as text up to a NUL (or null): to measure all of them is
  // to read the whole string table.
  bool NextUnmeasured(Symbol* symbol, const char** name);
  // The next entry is that of index `i`.
  void Seek(size_t i) { next_ = i; }

 private:
  ByteView table_;
  std::string_view names_;  // ends in a NUL
  size_t entry_size_ = 0;
  size_t next_ = 0;
  Class class_ = Class::k64;
  Endian endian_ = Endian::kLittle;
};

class ImageParser;

class Image {
 public:
  // Views `bytes`, which must outlive the image. kDamaged if the ELF header or the program header
  // table is bad; a bad section table is an image without sections (see damage()).
  static Result<Image> Parse(ByteView bytes);

  [[nodiscard]] Class elf_class() const { return class_; }
  [[nodiscard]] Endian endian() const { return endian_; }
  [[nodiscard]] uint16_t machine() const { return machine_; }  // EM_*
  [[nodiscard]] uint16_t type() const { return type_; }        // ET_*
  [[nodiscard]] Svma entry() const { return entry_; }
  [[nodiscard]] ByteView bytes() const { return bytes_; }
  [[nodiscard]] std::span<const Segment> segments() const { return segments_; }
  [[nodiscard]] std::span<const Section> sections() const { return sections_; }
  // What was wrong but could be read past; empty if nothing.
  [[nodiscard]] const std::string& damage() const { return damage_; }

  // The first section of that name, or null.
  [[nodiscard]] const Section* FindSection(std::string_view name) const;
  // A section's bytes as they lie in the file; empty for SHT_NOBITS or out of bounds.
  [[nodiscard]] ByteView RawBytes(const Section& section) const;
  // A section's bytes, decompressed where SHF_COMPRESSED (zlib, zstd) or the old ".zdebug" form
  // says so. Never gives more than 1,032 times (zlib's limit) the compressed size, or 1 GiB.
  [[nodiscard]] Result<SectionBytes> ReadSection(const Section& section) const;
  // Bytes of the file that are loaded at `svma`, up to the end of that segment's file part.
  [[nodiscard]] ByteView BytesAt(Svma svma) const;

  // All symbols of .symtab, or of .dynsym; undefined ones too. Bad entries are left out.
  [[nodiscard]] std::vector<Symbol> ReadSymtab() const { return ReadSymbols(/*SHT_SYMTAB*/ 2); }
  [[nodiscard]] std::vector<Symbol> ReadDynsym() const { return ReadSymbols(/*SHT_DYNSYM*/ 11); }
  // The same tables, entry by entry.
  [[nodiscard]] SymbolCursor Symtab() const { return Symbols(/*SHT_SYMTAB*/ 2); }
  [[nodiscard]] SymbolCursor Dynsym() const { return Symbols(/*SHT_DYNSYM*/ 11); }

  // From a PT_NOTE or SHT_NOTE.
  [[nodiscard]] std::optional<BuildId> ReadBuildId() const;
  [[nodiscard]] std::optional<DebugLink> ReadDebugLink() const;
  [[nodiscard]] std::optional<DebugAltLink> ReadDebugAltLink() const;
  // The inner ELF of .gnu_debugdata, decompressed; kNotFound if there is none.
  [[nodiscard]] Result<std::vector<uint8_t>> ReadGnuDebugdata() const;

  // Through the PT_LOAD segments; nothing if no segment holds it.
  [[nodiscard]] std::optional<Svma> SvmaOf(FileOffset offset) const;
  [[nodiscard]] std::optional<FileOffset> OffsetOf(Svma svma) const;

 private:
  friend class ImageParser;
  Image() = default;
  [[nodiscard]] std::vector<Symbol> ReadSymbols(uint32_t section_type) const;
  [[nodiscard]] SymbolCursor Symbols(uint32_t section_type) const;

  ByteView bytes_;
  Class class_ = Class::k64;
  Endian endian_ = Endian::kLittle;
  uint16_t machine_ = 0;
  uint16_t type_ = 0;
  Svma entry_;
  std::vector<Segment> segments_;
  std::vector<Section> sections_;
  std::string damage_;
};

// The build-id among notes, such as /sys/kernel/notes; `align` is 4 or 8.
std::optional<BuildId> FindBuildIdNote(ByteView notes, Endian endian, uint64_t align = 4);

// The checksum that .gnu_debuglink carries (CRC-32, as in the GDB manual, "Separate Debug Files").
uint32_t DebugLinkCrc(ByteView bytes);

}  // namespace stackreel::elf
