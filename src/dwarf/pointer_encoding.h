// Pointers as .eh_frame writes them: DW_EH_PE_* (LSB Core, 10.5.1).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "base/address.h"
#include "base/byte_reader.h"

namespace stackreel::dwarf {

inline constexpr uint8_t kPeAbsolute = 0x00;
inline constexpr uint8_t kPeOmit = 0xff;
inline constexpr uint8_t kPeFormatMask = 0x0f;
inline constexpr uint8_t kPeSigned4 = 0x0b;
inline constexpr uint8_t kPeDataRelative = 0x30;
inline constexpr uint8_t kPeIndirect = 0x80;

// What an encoded pointer may be relative to.
struct PointerBases {
  Svma section;  // address of the reader's offset 0: DW_EH_PE_pcrel, DW_EH_PE_aligned
  Svma text;
  Svma data;
  Svma function;
  unsigned address_size = 8;
  const std::function<ByteView(Svma)>* loaded_bytes = nullptr;  // DW_EH_PE_indirect
};

// The pointer at the reader's place, which is moved past it. As in libgcc a stored 0 is a null
// pointer whatever it is relative to. Nothing if it runs past the end, is kPeOmit or cannot be
// known from the file.
std::optional<uint64_t> ReadEncodedPointer(ByteReader& reader, uint8_t encoding,
                                           const PointerBases& bases);

// The bytes that an encoded pointer of this format takes; 0 if that varies or is unknown.
unsigned EncodedSize(uint8_t encoding, unsigned address_size);

}  // namespace stackreel::dwarf
