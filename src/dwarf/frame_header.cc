#include "dwarf/frame_header.h"

#include <fmt/format.h>

#include <algorithm>

#include "dwarf/pointer_encoding.h"

namespace stackreel::dwarf {

Result<FrameHeader> FrameHeader::Parse(const FrameSections& sections) {
  if (sections.eh_frame_hdr.empty()) return Fail(ErrorKind::kNotFound, "no .eh_frame_hdr");
  ByteReader reader(sections.eh_frame_hdr, sections.endian);
  const uint8_t version = reader.U8();
  const uint8_t pointer_encoding = reader.U8();
  const uint8_t count_encoding = reader.U8();
  const uint8_t table_encoding = reader.U8();
  PointerBases bases;
  bases.section = sections.eh_frame_hdr_svma;
  bases.data = sections.eh_frame_hdr_svma;
  bases.text = sections.text_svma;
  bases.address_size = sections.is_64bit ? 8 : 4;
  const auto eh_frame = ReadEncodedPointer(reader, pointer_encoding, bases);
  const auto count = ReadEncodedPointer(reader, count_encoding, bases);
  FrameHeader header;
  header.field_size_ = EncodedSize(table_encoding, bases.address_size);
  const uint8_t application = table_encoding & 0xf0;
  const bool searchable = application == 0 || application == kPeDataRelative;
  if (version != 1 || !eh_frame || !count || header.field_size_ == 0 || !searchable) {
    return Fail(Error(
        ErrorKind::kDamaged,
        fmt::format(".eh_frame_hdr: version {}, table encoding {:#04x}", version, table_encoding)));
  }
  header.table_ = reader.Rest();
  header.endian_ = sections.endian;
  header.count_ =
      std::min<uint64_t>(*count, header.table_.size() / (size_t{2} * header.field_size_));
  header.base_ = application == kPeDataRelative ? bases.data.value : 0;
  header.address_mask_ = sections.is_64bit ? UINT64_MAX : UINT32_MAX;
  header.is_signed_ = (table_encoding & 0x08) != 0;
  header.eh_frame_ = Svma(*eh_frame);
  if (header.count_ == 0) return Fail(ErrorKind::kDamaged, ".eh_frame_hdr: an empty table");
  return header;
}

uint64_t FrameHeader::Value(uint64_t offset) const {
  const uint8_t* p = table_.data() + offset;
  uint64_t value = 0;
  switch (field_size_) {
    case 2:
      value = LoadUnaligned<uint16_t>(p, endian_);
      if (is_signed_) value = static_cast<uint64_t>(int64_t{static_cast<int16_t>(value)});
      break;
    case 4:
      value = LoadUnaligned<uint32_t>(p, endian_);
      if (is_signed_) value = static_cast<uint64_t>(int64_t{static_cast<int32_t>(value)});
      break;
    default:
      value = LoadUnaligned<uint64_t>(p, endian_);
  }
  return (value + base_) & address_mask_;
}

std::optional<Svma> FrameHeader::Find(Svma svma) const {
  uint64_t low = 0;
  uint64_t high = count_;  // starts below `low` are <= svma, from `high` on they are > svma
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (Start(middle) <= svma.value) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == 0) return std::nullopt;
  return Svma(Value((low - 1) * 2 * field_size_ + field_size_));
}

bool FrameHeader::IsSorted() const {
  for (uint64_t i = 1; i < count_; ++i) {
    if (Start(i) < Start(i - 1)) return false;
  }
  return true;
}

}  // namespace stackreel::dwarf
