#include "dwarf/pointer_encoding.h"

namespace stackreel::dwarf {
namespace {

// DW_EH_PE_* formats (low four bits) and applications (bits 4-6).
enum : uint8_t {
  kAbsPtr = 0x00,
  kUleb128 = 0x01,
  kUdata2 = 0x02,
  kUdata4 = 0x03,
  kUdata8 = 0x04,
  kSignedPtr = 0x08,
  kSleb128 = 0x09,
  kSdata2 = 0x0a,
  kSdata4 = 0x0b,
  kSdata8 = 0x0c,
  kPcRel = 0x10,
  kTextRel = 0x20,
  kDataRel = 0x30,
  kFuncRel = 0x40,
  kAligned = 0x50,
  kApplicationMask = 0x70,
};

uint64_t ReadAddress(ByteReader& reader, unsigned address_size, bool is_signed) {
  switch (address_size) {
    case 2:
      return is_signed ? static_cast<uint64_t>(reader.S16()) : reader.U16();
    case 4:
      return is_signed ? static_cast<uint64_t>(reader.S32()) : reader.U32();
    default:
      return reader.U64();
  }
}

std::optional<uint64_t> ReadFormat(ByteReader& reader, uint8_t format, unsigned address_size) {
  switch (format) {
    case kAbsPtr:
    case kSignedPtr:
      return ReadAddress(reader, address_size, format == kSignedPtr);
    case kUleb128:
      return reader.Uleb128();
    case kUdata2:
      return reader.U16();
    case kUdata4:
      return reader.U32();
    case kUdata8:
    case kSdata8:
      return reader.U64();
    case kSleb128:
      return static_cast<uint64_t>(reader.Sleb128());
    case kSdata2:
      return static_cast<uint64_t>(reader.S16());
    case kSdata4:
      return static_cast<uint64_t>(reader.S32());
    default:
      return std::nullopt;
  }
}

std::optional<uint64_t> BaseOf(uint8_t application, uint64_t place, const PointerBases& bases) {
  switch (application) {
    case 0:
      return 0;
    case kPcRel:
      return place;
    case kTextRel:
      return bases.text.value;
    case kDataRel:
      return bases.data.value;
    case kFuncRel:
      return bases.function.value;
    default:
      return std::nullopt;
  }
}

uint64_t Truncate(uint64_t value, unsigned address_size) {
  return address_size >= 8 ? value : value & ((uint64_t{1} << (address_size * 8)) - 1);
}

}  // namespace

std::optional<uint64_t> ReadEncodedPointer(ByteReader& reader, uint8_t encoding,
                                           const PointerBases& bases) {
  if (encoding == kPeOmit) return std::nullopt;
  const unsigned size = bases.address_size;
  const uint64_t place = bases.section.value + reader.offset();
  std::optional<uint64_t> value;
  if ((encoding & kApplicationMask) == kAligned) {
    reader.Skip((size - place % size) % size);
    value = ReadAddress(reader, size, false);
  } else {
    value = ReadFormat(reader, encoding & kPeFormatMask, size);
    const auto base = BaseOf(encoding & kApplicationMask, place, bases);
    if (!base || !value) return std::nullopt;
    if (*value != 0) *value += *base;
  }
  if (!reader.ok()) return std::nullopt;
  value = Truncate(*value, size);
  if ((encoding & kPeIndirect) != 0 && *value != 0) {
    if (bases.loaded_bytes == nullptr || !*bases.loaded_bytes) return std::nullopt;
    ByteReader pointee((*bases.loaded_bytes)(Svma(*value)), reader.endian());
    value = ReadAddress(pointee, size, false);
    if (!pointee.ok()) return std::nullopt;
  }
  return value;
}

unsigned EncodedSize(uint8_t encoding, unsigned address_size) {
  if ((encoding & kApplicationMask) == kAligned) return 0;
  switch (encoding & kPeFormatMask) {
    case kAbsPtr:
    case kSignedPtr:
      return address_size;
    case kUdata2:
    case kSdata2:
      return 2;
    case kUdata4:
    case kSdata4:
      return 4;
    case kUdata8:
    case kSdata8:
      return 8;
    default:
      return 0;
  }
}

}  // namespace stackreel::dwarf
