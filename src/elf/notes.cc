// What says which file belongs to an image: build-id, debuglink, debugaltlink, mini debug info.
#include <elf.h>
#include <libdeflate.h>

#include "base/byte_reader.h"
#include "elf/compression.h"
#include "elf/image.h"

namespace stackreel::elf {

// Notes are { u32 namesz, descsz, type; name, descriptor }, each part padded to `align`.
std::optional<BuildId> FindBuildIdNote(ByteView notes, Endian endian, uint64_t align) {
  const size_t pad = align == 8 ? 8 : 4;
  ByteReader reader(notes, endian);
  while (!reader.AtEnd()) {
    const uint32_t name_size = reader.U32();
    const uint32_t descriptor_size = reader.U32();
    const uint32_t type = reader.U32();
    const std::string_view name = AsText(reader.Bytes(name_size));
    reader.Skip(std::min((pad - reader.offset() % pad) % pad, reader.remaining()));
    const ByteView descriptor = reader.Bytes(descriptor_size);
    if (!reader.ok()) return std::nullopt;
    if (type == NT_GNU_BUILD_ID && name == std::string_view(ELF_NOTE_GNU, sizeof ELF_NOTE_GNU) &&
        !descriptor.empty()) {
      return BuildId(descriptor);
    }
    reader.Skip(std::min((pad - reader.offset() % pad) % pad, reader.remaining()));
  }
  return std::nullopt;
}

std::optional<BuildId> Image::ReadBuildId() const {
  // Sections first: in a file of debug information only, segments may point at what was removed.
  for (const Section& section : sections_) {
    if (section.type != SHT_NOTE) continue;
    if (auto id = FindBuildIdNote(RawBytes(section), endian_, section.align)) return id;
  }
  for (const Segment& segment : segments_) {
    if (segment.type != PT_NOTE || segment.offset > bytes_.size() ||
        segment.file_size > bytes_.size() - segment.offset) {
      continue;
    }
    const ByteView notes = bytes_.subspan(segment.offset, segment.file_size);
    if (auto id = FindBuildIdNote(notes, endian_, segment.align)) return id;
  }
  return std::nullopt;
}

std::optional<DebugLink> Image::ReadDebugLink() const {
  const Section* section = FindSection(".gnu_debuglink");
  if (section == nullptr) return std::nullopt;
  ByteReader reader(RawBytes(*section), endian_);
  DebugLink link;
  link.file_name = reader.CString();
  reader.Skip((4 - reader.offset() % 4) % 4);
  link.crc = reader.U32();
  if (!reader.ok() || link.file_name.empty()) return std::nullopt;
  return link;
}

std::optional<DebugAltLink> Image::ReadDebugAltLink() const {
  const Section* section = FindSection(".gnu_debugaltlink");
  if (section == nullptr) return std::nullopt;
  ByteReader reader(RawBytes(*section), endian_);
  DebugAltLink link;
  link.file_name = reader.CString();
  link.build_id = BuildId(reader.Rest());
  if (!reader.ok() || link.file_name.empty() || link.build_id.empty()) return std::nullopt;
  return link;
}

Result<std::vector<uint8_t>> Image::ReadGnuDebugdata() const {
  const Section* section = FindSection(".gnu_debugdata");
  if (section == nullptr) return Fail(ErrorKind::kNotFound, "no section .gnu_debugdata");
  auto bytes = DecompressXz(RawBytes(*section));
  if (!bytes) return Fail(std::move(bytes.error()).AtOffset(section->offset));
  return bytes;
}

uint32_t DebugLinkCrc(ByteView bytes) { return libdeflate_crc32(0, bytes.data(), bytes.size()); }

}  // namespace stackreel::elf
