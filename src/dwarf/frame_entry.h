// CIEs and FDEs as they lie in .eh_frame and .debug_frame.
#pragma once

#include <cstdint>
#include <functional>

#include "base/error.h"
#include "dwarf/cfi.h"
#include "dwarf/pointer_encoding.h"

namespace stackreel::dwarf {

// One of the two sections.
struct FrameSection {
  ByteView bytes;
  Svma svma;
  bool is_eh_frame = true;
};
FrameSection EhFrameOf(const FrameSections& sections);
FrameSection DebugFrameOf(const FrameSections& sections);

PointerBases BasesFor(const FrameSections& sections, const FrameSection& section);

// The head of an entry:
//   .eh_frame     length (4, or ffffffff + 8) · id (4): 0 is a CIE, else the distance back to it
//   .debug_frame  length (4, or ffffffff + 8) · id (4 or 8): all ones is a CIE, else its offset
struct FrameEntry {
  uint64_t offset = 0;  // of the length field
  uint64_t body = 0;    // behind the id
  uint64_t end = 0;
  bool terminator = false;  // a length of 0; may stand in the middle of a section
  bool is_cie = false;
  uint64_t cie_offset = 0;  // of an FDE's CIE
};
Result<FrameEntry> ReadFrameEntry(const FrameSections& sections, const FrameSection& section,
                                  uint64_t offset);

Result<Cie> ReadCie(const FrameSections& sections, const FrameSection& section, uint64_t offset);
// `entry` must be an FDE, `cie` its CIE.
Result<Fde> ReadFde(const FrameSections& sections, const FrameSection& section,
                    const FrameEntry& entry, const Cie& cie);
// The FDE at `offset`, with its CIE.
Result<Fde> ReadFdeAt(const FrameSections& sections, const FrameSection& section, uint64_t offset);

// A range that no code can be in: empty, or what linkers write for functions they left out (0 from
// GNU ld, 1, -1 and -2 from lld and gold).
inline bool IsDeleted(const Fde& fde, bool is_64bit) {
  const uint64_t top = is_64bit ? UINT64_MAX - 1 : UINT32_MAX - 1;
  return fde.end <= fde.start || fde.start.value <= 1 || fde.start.value >= top;
}

}  // namespace stackreel::dwarf
