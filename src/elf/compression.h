// Decompression with a bound on what comes out. For elf/ itself and for compressed kernel modules.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "elf/image.h"

namespace stackreel::elf {

// The most that `compressed` bytes may become: 1,032 times as many (the limit of zlib's format),
// 64 KiB at least, 1 GiB at most.
uint64_t DecompressedLimit(size_t compressed);

// A section with SHF_COMPRESSED: an Elf32_Chdr or Elf64_Chdr, then a zlib or zstd stream that must
// give exactly the size stated there.
Result<std::vector<uint8_t>> DecompressSection(ByteView raw, Class elf_class, Endian endian);
// The old GNU form: "ZLIB", the size as 8 big-endian bytes, a zlib stream.
Result<std::vector<uint8_t>> DecompressZdebug(ByteView raw);

// Whole streams of unknown size, up to DecompressedLimit.
Result<std::vector<uint8_t>> DecompressXz(ByteView stream);
Result<std::vector<uint8_t>> DecompressZstd(ByteView stream);
Result<std::vector<uint8_t>> DecompressGzip(ByteView stream);

}  // namespace stackreel::elf
