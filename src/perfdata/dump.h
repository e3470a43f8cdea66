// Records as text, every field with its offset.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "perfdata/record.h"

namespace stackreel::perfdata {

struct DumpContext {
  Endian endian = Endian::kLittle;
  const Attr* attr = nullptr;  // of the record's event; null if there is none
  std::string_view arch;       // of the feature ARCH, for names of registers
  bool raw_bytes = false;      // all bytes in hex after the fields
};

// The first line says offset, type, misc and size; one line a field follows:
//   0x1a8 MMAP2 misc 0x2 (user) size 112
//     +0x008 pid: 1234
// Bytes that do not decode are shown as far as they do, and a last line says what is wrong.
std::vector<std::string> DumpRecord(const RawRecord& raw, const DumpContext& context);
// "user", "kernel, exact ip": what misc means for a record of `type`.
std::string MiscText(uint32_t type, uint16_t misc);
// 16 bytes a line: offset, hex, text.
std::vector<std::string> HexLines(ByteView bytes);

}  // namespace stackreel::perfdata
