#include "dwarf/frame_entry.h"

#include <fmt/format.h>

#include <string_view>

namespace stackreel::dwarf {
namespace {

std::unexpected<Error> Damaged(const FrameSection& section, uint64_t offset,
                               std::string_view what) {
  return Fail(Error(ErrorKind::kDamaged,
                    fmt::format("{}: {}", section.is_eh_frame ? ".eh_frame" : ".debug_frame", what))
                  .AtOffset(offset));
}

// Reads what the augmentation letters behind 'z' say; false if one is unknown. Letters behind an
// unknown one cannot be read, but the length lets the instructions be found.
void ReadAugmentation(std::string_view letters, ByteReader& data, const PointerBases& bases,
                      Cie& cie) {
  for (const char letter : letters) {
    switch (letter) {
      case 'L':
        data.U8();
        break;
      case 'P': {
        const uint8_t encoding = data.U8() & static_cast<uint8_t>(~kPeIndirect);
        if (!ReadEncodedPointer(data, encoding, bases)) return;
        break;
      }
      case 'R':
        cie.fde_encoding = data.U8();
        break;
      case 'S':
        cie.signal_frame = true;
        break;
      case 'B':
        cie.b_key = true;
        break;
      case 'G':
        cie.mte_tagged = true;
        break;
      default:
        return;
    }
  }
}

}  // namespace

FrameSection EhFrameOf(const FrameSections& sections) {
  return {sections.eh_frame, sections.eh_frame_svma, true};
}

FrameSection DebugFrameOf(const FrameSections& sections) {
  return {sections.debug_frame, Svma(0), false};
}

PointerBases BasesFor(const FrameSections& sections, const FrameSection& section) {
  PointerBases bases;
  bases.section = section.svma;
  bases.text = sections.text_svma;
  bases.data = sections.data_svma;
  bases.address_size = sections.is_64bit ? 8 : 4;
  bases.loaded_bytes = &sections.loaded_bytes;
  return bases;
}

Result<FrameEntry> ReadFrameEntry(const FrameSections& sections, const FrameSection& section,
                                  uint64_t offset) {
  ByteReader reader(section.bytes, sections.endian);
  reader.Seek(offset);
  FrameEntry entry;
  entry.offset = offset;
  uint64_t length = reader.U32();
  const bool is_long = length == UINT32_MAX;
  if (is_long) length = reader.U64();
  if (!reader.ok() || length > reader.remaining()) {
    return Damaged(section, offset, fmt::format("entry of length {:#x} runs past the end", length));
  }
  entry.end = reader.offset() + length;
  if (length == 0) {
    entry.terminator = true;
    return entry;
  }
  const uint64_t id_offset = reader.offset();
  const unsigned id_size = is_long && !section.is_eh_frame ? 8 : 4;
  if (length < id_size) return Damaged(section, offset, "entry too short for its id");
  const uint64_t id = id_size == 8 ? reader.U64() : reader.U32();
  entry.body = reader.offset();
  if (section.is_eh_frame) {
    entry.is_cie = id == 0;
    if (!entry.is_cie && id > id_offset) return Damaged(section, offset, "no such CIE");
    entry.cie_offset = id_offset - id;
  } else {
    entry.is_cie = id == (id_size == 8 ? UINT64_MAX : UINT32_MAX);
    entry.cie_offset = id;
  }
  return entry;
}

Result<Cie> ReadCie(const FrameSections& sections, const FrameSection& section, uint64_t offset) {
  TRY_ASSIGN(const FrameEntry entry, ReadFrameEntry(sections, section, offset));
  if (entry.terminator || !entry.is_cie) return Damaged(section, offset, "no CIE here");
  ByteReader reader(section.bytes.first(entry.end), sections.endian);
  reader.Seek(entry.body);
  PointerBases bases = BasesFor(sections, section);
  Cie cie;
  cie.address_size = static_cast<uint8_t>(bases.address_size);
  const uint8_t version = reader.U8();
  if (version != 1 && version != 3 && version != 4) {
    return Damaged(section, offset, fmt::format("CIE version {}, expected 1, 3 or 4", version));
  }
  std::string_view augmentation = reader.CString();
  if (augmentation.starts_with("eh")) {  // g++ 2: a pointer to exception data
    reader.Skip(bases.address_size);
    augmentation.remove_prefix(2);
  }
  if (version == 4) {
    cie.address_size = reader.U8();
    const uint8_t segment_size = reader.U8();
    const bool good_size = cie.address_size == 4 || cie.address_size == 8;
    if (!reader.ok() || !good_size || segment_size != 0) {
      return Damaged(section, offset,
                     fmt::format("CIE with address size {} and segment selector size {}",
                                 cie.address_size, segment_size));
    }
    bases.address_size = cie.address_size;
  }
  cie.code_align = reader.Uleb128();
  cie.data_align = reader.Sleb128();
  const uint64_t return_address = version == 1 ? reader.U8() : reader.Uleb128();
  cie.return_address_register = static_cast<uint16_t>(std::min<uint64_t>(return_address, 0xffff));
  if (augmentation.starts_with('z')) {
    cie.has_augmentation_data = true;
    const uint64_t size = reader.Uleb128();
    const uint64_t data_end = reader.offset() + size;
    if (!reader.ok() || size > reader.remaining()) {
      return Damaged(section, offset, "CIE augmentation data runs past its end");
    }
    ByteReader data(section.bytes.first(data_end), sections.endian);
    data.Seek(reader.offset());
    ReadAugmentation(augmentation.substr(1), data, bases, cie);
    reader.Seek(data_end);
  } else if (!augmentation.empty()) {
    return Damaged(section, offset,
                   fmt::format("unknown CIE augmentation \"{}\"", augmentation.substr(0, 16)));
  }
  if (!reader.ok()) return Damaged(section, offset, "CIE cut short");
  cie.instructions = reader.Rest();
  return cie;
}

Result<Fde> ReadFde(const FrameSections& sections, const FrameSection& section,
                    const FrameEntry& entry, const Cie& cie) {
  ByteReader reader(section.bytes.first(entry.end), sections.endian);
  reader.Seek(entry.body);
  PointerBases bases = BasesFor(sections, section);
  bases.address_size = cie.address_size;
  const auto start = ReadEncodedPointer(reader, cie.fde_encoding, bases);
  const auto size = ReadEncodedPointer(reader, cie.fde_encoding & kPeFormatMask, bases);
  if (!start || !size) return Damaged(section, entry.offset, "FDE without a readable range");
  const uint64_t top = cie.address_size == 8 ? UINT64_MAX : UINT32_MAX;
  if (*size > top - *start) {
    return Damaged(section, entry.offset,
                   fmt::format("FDE range {:#x}+{:#x} wraps around", *start, *size));
  }
  if (cie.has_augmentation_data) reader.Skip(reader.Uleb128());
  if (!reader.ok()) return Damaged(section, entry.offset, "FDE cut short");
  Fde fde;
  fde.start = Svma(*start);
  fde.end = Svma(*start + *size);
  fde.cie = cie;
  fde.instructions = reader.Rest();
  fde.in_debug_frame = !section.is_eh_frame;
  return fde;
}

Result<Fde> ReadFdeAt(const FrameSections& sections, const FrameSection& section, uint64_t offset) {
  TRY_ASSIGN(const FrameEntry entry, ReadFrameEntry(sections, section, offset));
  if (entry.terminator || entry.is_cie) return Damaged(section, offset, "no FDE here");
  TRY_ASSIGN(const Cie cie, ReadCie(sections, section, entry.cie_offset));
  return ReadFde(sections, section, entry, cie);
}

}  // namespace stackreel::dwarf
