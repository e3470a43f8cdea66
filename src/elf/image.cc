#include "elf/image.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/byte_reader.h"
#include "elf/compression.h"

namespace stackreel::elf {

namespace {

// The table of program or section headers as the ELF header tells of it.
struct TableLocation {
  uint64_t offset = 0;
  uint64_t count = 0;
  uint16_t entry_size = 0;
};

// The ELF header behind e_ident.
struct FileHeader {
  uint16_t type = 0;
  uint16_t machine = 0;
  uint64_t entry = 0;
  TableLocation segments;
  TableLocation sections;
  uint32_t names_index = 0;  // e_shstrndx
};

// Reads fields that are as wide as an address of the file's class.
class WordReader : public ByteReader {
 public:
  WordReader(ByteView bytes, Class elf_class, Endian endian)
      : ByteReader(bytes, endian), class_(elf_class) {}
  uint64_t Word() { return class_ == Class::k64 ? U64() : U32(); }

 private:
  Class class_;
};

FileHeader ReadFileHeader(WordReader& reader) {
  FileHeader header;
  reader.Skip(EI_NIDENT);
  header.type = reader.U16();
  header.machine = reader.U16();
  reader.Skip(4);  // e_version
  header.entry = reader.Word();
  header.segments.offset = reader.Word();
  header.sections.offset = reader.Word();
  reader.Skip(4 + 2);  // e_flags, e_ehsize
  header.segments.entry_size = reader.U16();
  header.segments.count = reader.U16();
  header.sections.entry_size = reader.U16();
  header.sections.count = reader.U16();
  header.names_index = reader.U16();
  return header;
}

Segment ReadSegment(WordReader reader, Class elf_class) {
  Segment segment;
  segment.type = reader.U32();
  if (elf_class == Class::k64) segment.flags = reader.U32();
  segment.offset = reader.Word();
  segment.vaddr = reader.Word();
  reader.Word();  // p_paddr
  segment.file_size = reader.Word();
  segment.mem_size = reader.Word();
  if (elf_class == Class::k32) segment.flags = reader.U32();
  segment.align = reader.Word();
  return segment;
}

// Gives the offset of the name in `name_offset`.
Section ReadSectionHeader(WordReader reader, uint32_t* name_offset) {
  Section section;
  *name_offset = reader.U32();
  section.type = reader.U32();
  section.flags = reader.Word();
  section.addr = reader.Word();
  section.offset = reader.Word();
  section.size = reader.Word();
  section.link = reader.U32();
  section.info = reader.U32();
  section.align = reader.Word();
  section.entry_size = reader.Word();
  return section;
}

// The table's bytes, whole entries only; nothing if it is not wholly inside the file.
std::optional<ByteView> TableBytes(ByteView file, const TableLocation& table, size_t least_entry) {
  if (table.entry_size < least_entry || table.offset > file.size() ||
      table.count > (file.size() - table.offset) / table.entry_size) {
    return std::nullopt;
  }
  return file.subspan(table.offset, table.count * table.entry_size);
}

std::optional<std::string_view> NameAt(ByteView names, uint64_t offset) {
  if (offset >= names.size()) return std::nullopt;
  const std::string_view rest = AsText(names.subspan(offset));
  const size_t end = rest.find('\0');
  if (end == std::string_view::npos) return std::nullopt;
  return rest.substr(0, end);
}

std::string DescribeTable(const char* what, const TableLocation& table, size_t file_size) {
  return fmt::format(
      "{} table of {} entries of {} bytes at offset {:#x} does not fit in a file of {:#x} bytes",
      what, table.count, table.entry_size, table.offset, file_size);
}

}  // namespace

// Fills in one image from its bytes.
class ImageParser {
 public:
  explicit ImageParser(ByteView bytes) { image_.bytes_ = bytes; }

  Result<Image> Parse() {
    TRY(ReadIdent());
    WordReader reader = ReaderAt(image_.bytes_);
    FileHeader header = ReadFileHeader(reader);
    if (!reader.ok()) {
      return Fail(Error(ErrorKind::kDamaged,
                        fmt::format("ELF header cut off: the file has {} bytes", FileSize()))
                      .AtOffset(FileSize()));
    }
    image_.type_ = header.type;
    image_.machine_ = header.machine;
    image_.entry_ = Svma(header.entry);
    ReadExtendedCounts(header);
    TRY(ReadSegments(header.segments));
    ReadSections(header);
    return std::move(image_);
  }

 private:
  [[nodiscard]] size_t FileSize() const { return image_.bytes_.size(); }
  [[nodiscard]] WordReader ReaderAt(ByteView bytes) const {
    return {bytes, image_.class_, image_.endian_};
  }

  Status ReadIdent() {
    const ByteView bytes = image_.bytes_;
    if (bytes.size() < EI_NIDENT || !std::ranges::equal(bytes.first(SELFMAG), AsBytes(ELFMAG))) {
      return Fail(Error(ErrorKind::kDamaged, "not an ELF file").AtOffset(0));
    }
    if (bytes[EI_CLASS] != ELFCLASS32 && bytes[EI_CLASS] != ELFCLASS64) {
      return Fail(Error(ErrorKind::kDamaged, fmt::format("ELF class {} is neither 1 nor 2 (32 or "
                                                         "64 bit)",
                                                         bytes[EI_CLASS]))
                      .AtOffset(EI_CLASS));
    }
    if (bytes[EI_DATA] != ELFDATA2LSB && bytes[EI_DATA] != ELFDATA2MSB) {
      return Fail(Error(ErrorKind::kDamaged,
                        fmt::format("ELF byte order {} is neither 1 nor 2", bytes[EI_DATA]))
                      .AtOffset(EI_DATA));
    }
    image_.class_ = bytes[EI_CLASS] == ELFCLASS64 ? Class::k64 : Class::k32;
    image_.endian_ = bytes[EI_DATA] == ELFDATA2LSB ? Endian::kLittle : Endian::kBig;
    return {};
  }

  // Counts that do not fit in the ELF header stand in section header 0 (gABI, "ELF Header").
  void ReadExtendedCounts(FileHeader& header) {
    const bool many_sections = header.sections.count == 0 && header.sections.offset != 0;
    const bool far_names = header.names_index == SHN_XINDEX;
    const bool many_segments = header.segments.count == PN_XNUM;
    if (!many_sections && !far_names && !many_segments) return;
    TableLocation first = header.sections;
    first.count = 1;
    const auto bytes = TableBytes(image_.bytes_, first, SectionHeaderSize());
    if (!bytes) return;
    uint32_t name = 0;
    const Section section = ReadSectionHeader(ReaderAt(*bytes), &name);
    if (many_sections) header.sections.count = section.size;
    if (far_names) header.names_index = section.link;
    if (many_segments) header.segments.count = section.info;
  }

  [[nodiscard]] size_t SectionHeaderSize() const {
    return image_.class_ == Class::k64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
  }

  Status ReadSegments(const TableLocation& table) {
    if (table.count == 0) return {};
    const size_t least = image_.class_ == Class::k64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
    const auto bytes = TableBytes(image_.bytes_, table, least);
    if (!bytes) {
      return Fail(Error(ErrorKind::kDamaged, DescribeTable("program header", table, FileSize()))
                      .AtOffset(table.offset));
    }
    image_.segments_.reserve(table.count);
    for (uint64_t i = 0; i < table.count; ++i) {
      const ByteView entry = bytes->subspan(i * table.entry_size, table.entry_size);
      image_.segments_.push_back(ReadSegment(ReaderAt(entry), image_.class_));
    }
    return {};
  }

  void ReadSections(const FileHeader& header) {
    const TableLocation& table = header.sections;
    if (table.count == 0) return;
    const auto bytes = TableBytes(image_.bytes_, table, SectionHeaderSize());
    if (!bytes) {
      image_.damage_ = DescribeTable("section header", table, FileSize());
      return;
    }
    std::vector<uint32_t> name_offsets(table.count);
    image_.sections_.reserve(table.count);
    for (uint64_t i = 0; i < table.count; ++i) {
      const ByteView entry = bytes->subspan(i * table.entry_size, table.entry_size);
      image_.sections_.push_back(ReadSectionHeader(ReaderAt(entry), &name_offsets[i]));
    }
    if (header.names_index == SHN_UNDEF) return;
    if (header.names_index >= table.count) {
      image_.damage_ = fmt::format("section names are said to be in section {} of {}",
                                   header.names_index, table.count);
      return;
    }
    const ByteView names = image_.RawBytes(image_.sections_[header.names_index]);
    for (uint64_t i = 0; i < table.count; ++i) {
      if (const auto name = NameAt(names, name_offsets[i])) {
        image_.sections_[i].name = *name;
      } else {
        image_.damage_ = fmt::format("the name of section {} lies outside the name table", i);
      }
    }
  }

  Image image_;
};

Result<Image> Image::Parse(ByteView bytes) { return ImageParser(bytes).Parse(); }

const Section* Image::FindSection(std::string_view name) const {
  const auto it = std::ranges::find(sections_, name, &Section::name);
  return it == sections_.end() ? nullptr : &*it;
}

ByteView Image::RawBytes(const Section& section) const {
  if (section.type == SHT_NOBITS || section.offset > bytes_.size() ||
      section.size > bytes_.size() - section.offset) {
    return {};
  }
  return bytes_.subspan(section.offset, section.size);
}

Result<SectionBytes> Image::ReadSection(const Section& section) const {
  const ByteView raw = RawBytes(section);
  if (section.type != SHT_NOBITS && raw.size() != section.size) {
    return Fail(Error(ErrorKind::kDamaged,
                      fmt::format("section {} of {:#x} bytes does not fit in a file of {:#x} bytes",
                                  section.name, section.size, bytes_.size()))
                    .AtOffset(section.offset));
  }
  if ((section.flags & SHF_COMPRESSED) != 0 && section.type != SHT_NOBITS) {
    auto bytes = DecompressSection(raw, class_, endian_);
    if (!bytes) return Fail(std::move(bytes.error()).AtOffset(section.offset));
    return SectionBytes(std::move(*bytes));
  }
  if (section.name.starts_with(".zdebug")) {
    auto bytes = DecompressZdebug(raw);
    if (!bytes) return Fail(std::move(bytes.error()).AtOffset(section.offset));
    return SectionBytes(std::move(*bytes));
  }
  return SectionBytes(raw);
}

ByteView Image::BytesAt(Svma svma) const {
  for (const Segment& segment : segments_) {
    if (segment.type != PT_LOAD || svma.value < segment.vaddr) continue;
    const uint64_t skip = svma.value - segment.vaddr;
    if (skip >= segment.file_size || segment.offset > bytes_.size()) continue;
    const uint64_t in_file = std::min(segment.file_size, bytes_.size() - segment.offset);
    if (skip >= in_file) continue;
    return bytes_.subspan(segment.offset + skip, in_file - skip);
  }
  return {};
}

std::optional<Svma> Image::SvmaOf(FileOffset offset) const {
  const Segment* found = nullptr;
  for (const Segment& segment : segments_) {
    if (segment.type != PT_LOAD || offset.value < segment.offset ||
        offset.value - segment.offset >= segment.file_size) {
      continue;
    }
    if (found == nullptr || (segment.executable() && !found->executable())) found = &segment;
  }
  if (found == nullptr) return std::nullopt;
  return Svma(found->vaddr + (offset.value - found->offset));
}

std::optional<FileOffset> Image::OffsetOf(Svma svma) const {
  for (const Segment& segment : segments_) {
    if (segment.type != PT_LOAD || svma.value < segment.vaddr ||
        svma.value - segment.vaddr >= segment.file_size) {
      continue;
    }
    return FileOffset(segment.offset + (svma.value - segment.vaddr));
  }
  return std::nullopt;
}

}  // namespace stackreel::elf
