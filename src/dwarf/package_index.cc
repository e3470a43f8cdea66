#include "dwarf/package_index.h"

#include "base/byte_reader.h"
#include "dwarf/constants.h"

namespace stackreel::dwarf {

// u32 version 2, or u16 version 5 and u16 0; u32 columns, units, slots;
// u64 ids[slots]; u32 rows[slots]; u32 kinds[columns]; u32 offsets[units][columns], sizes likewise
std::optional<PackageIndex> PackageIndex::Parse(ByteView bytes, Endian endian) {
  PackageIndex index;
  index.endian_ = endian;
  ByteReader reader(bytes, endian);
  const uint32_t version = reader.U32();
  reader.Seek(0);
  if (version == 2) {
    index.version_ = 2;
    reader.Skip(4);
  } else {
    index.version_ = reader.U16();
    reader.Skip(2);
    if (index.version_ != 5) return std::nullopt;
  }
  index.columns_ = reader.U32();
  index.units_ = reader.U32();
  index.slots_ = reader.U32();
  index.ids_ = reader.Bytes(index.slots_ * 8);
  index.rows_ = reader.Bytes(index.slots_ * 4);
  index.kinds_ = reader.Bytes(index.columns_ * 4);
  // Below 2^32 each, so that the product is exact, but times four it may not be.
  const uint64_t cells = index.columns_ * index.units_;
  if (!reader.ok() || cells > reader.remaining() / 8) return std::nullopt;
  index.offsets_ = reader.Bytes(cells * 4);
  index.sizes_ = reader.Bytes(cells * 4);
  return index;
}

std::optional<DebugSections> PackageIndex::Find(uint64_t dwo_id,
                                                const DebugSections& package) const {
  if (slots_ == 0 || (slots_ & (slots_ - 1)) != 0) return std::nullopt;
  const auto u32 = [&](ByteView table, uint64_t i) {
    return LoadUnaligned<uint32_t>(table.data() + i * 4, endian_);
  };
  // Open addressing with a step that visits every slot, as the table's size is a power of two.
  const uint64_t mask = slots_ - 1;
  const uint64_t step = ((dwo_id >> 32) & mask) | 1;
  uint64_t row = 0;
  uint64_t slot = dwo_id & mask;
  for (uint64_t tries = 0; tries < slots_; ++tries, slot = (slot + step) & mask) {
    row = u32(rows_, slot);
    if (row == 0) return std::nullopt;
    if (LoadUnaligned<uint64_t>(ids_.data() + slot * 8, endian_) == dwo_id) break;
    row = 0;
  }
  if (row == 0 || row > units_) return std::nullopt;
  DebugSections parts;
  parts.endian = package.endian;
  parts.str = package.str;
  for (uint64_t column = 0; column < columns_; ++column) {
    const auto part = [&](ByteView section, ByteView* out) {
      const uint64_t offset = u32(offsets_, (row - 1) * columns_ + column);
      const uint64_t size = u32(sizes_, (row - 1) * columns_ + column);
      if (offset > section.size() || size > section.size() - offset) return false;
      *out = section.subspan(offset, size);
      return true;
    };
    bool good = true;
    switch (u32(kinds_, column)) {
      case kSectInfo:
        good = part(package.info, &parts.info);
        break;
      case kSectAbbrev:
        good = part(package.abbrev, &parts.abbrev);
        break;
      case kSectStrOffsets:
        good = part(package.str_offsets, &parts.str_offsets);
        break;
      case kSectRnglists:  // macros in version 2
        if (version_ == 5) good = part(package.rnglists, &parts.rnglists);
        break;
      default:
        break;
    }
    if (!good) return std::nullopt;
  }
  return parts;
}

}  // namespace stackreel::dwarf
