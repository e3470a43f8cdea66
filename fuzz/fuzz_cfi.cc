// Any bytes as .eh_frame_hdr, .eh_frame and .debug_frame: everything is looked up and read.
//   flags 1 · size of .eh_frame_hdr 2 · size of .eh_frame 2 · the three sections
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "base/byte_reader.h"
#include "dwarf/cfi.h"

namespace {

constexpr size_t kMaxFunctions = 200;

void ReadFunctions(const stackreel::dwarf::FrameTable& table) {
  const auto fdes = table.AllFdes();
  for (size_t i = 0; i < std::min(fdes.size(), kMaxFunctions); ++i) {
    const auto rows = table.ReadRows(fdes[i]);
    if (!rows) continue;
    stackreel::Svma at = fdes[i].start;
    for (const auto& row : *rows) {  // they cover the function, in order, without a gap
      if (row.start != at || row.end <= row.start) std::abort();
      at = row.end;
    }
    if (at != fdes[i].end) std::abort();
  }
  for (size_t i = 0; i < std::min(fdes.size(), kMaxFunctions); ++i) {
    for (const stackreel::Svma svma : {fdes[i].start - 1, fdes[i].start, fdes[i].end - 1}) {
      const auto found = table.FindFde(svma);
      if (found && (svma < found->start || svma >= found->end)) std::abort();
      (void)table.FindRow(svma);
    }
  }
  (void)table.counters();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  stackreel::ByteReader reader(stackreel::ByteView(data, size));
  const uint8_t flags = reader.U8();
  const uint16_t header_size = reader.U16();
  const uint16_t eh_frame_size = reader.U16();
  stackreel::dwarf::FrameSections sections;
  sections.is_64bit = (flags & 1) == 0;
  sections.endian = (flags & 2) != 0 ? stackreel::Endian::kBig : stackreel::Endian::kLittle;
  sections.machine = (flags & 4) != 0 ? 183 : 62;
  sections.eh_frame_hdr = reader.Bytes(std::min<size_t>(header_size, reader.remaining()));
  sections.eh_frame_hdr_svma = stackreel::Svma(0x800);
  sections.eh_frame = reader.Bytes(std::min<size_t>(eh_frame_size, reader.remaining()));
  sections.eh_frame_svma = stackreel::Svma(0x1000);
  sections.debug_frame = reader.Rest();
  sections.text_svma = stackreel::Svma(0x4000);
  sections.data_svma = stackreel::Svma(0x3000);
  sections.loaded_bytes = [&](stackreel::Svma svma) {
    return svma.value < size ? stackreel::ByteView(data, size).subspan(svma.value)
                             : stackreel::ByteView();
  };
  ReadFunctions(stackreel::dwarf::FrameTable(sections));
  return 0;
}
