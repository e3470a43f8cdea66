// The lists of patch sites that compilers leave in a module, read from their sections' bytes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/address.h"
#include "base/bytes.h"
#include "x86/relative_relocations.h"

namespace stackreel::x86 {

// A section's bytes as they are in the file, and where they are loaded. In position-independent
// modules the file may hold zeros where a relative relocation (ascending by place) has the value.
struct SiteSection {
  Svma start;
  ByteView bytes;
  std::span<const RelativeRelocation> relocations;
};

// __patchable_function_entries (gcc, clang: -fpatchable-function-entry) and __mcount_loc (gcc
// -mrecord-mcount): 8-byte addresses, the one of the first nop and that of the call or nop. Sorted,
// without zeros (of functions that the linker threw away) and repetitions.
std::vector<Svma> ReadAddressTable(const SiteSection& section);

// LLVM: compiler-rt/lib/xray/xray_interface_internal.h and docs/XRay.rst.
enum class SledKind : uint8_t {
  kEntry,
  kExit,
  kTailExit,  // before the jump of a tail call
  kLogArgumentsEntry,
  kCustomEvent,
  kTypedEvent,
};

struct Sled {
  Svma address;
  Svma function;
  SledKind kind = SledKind::kEntry;
  bool always = false;  // by attribute, not by size
  uint8_t version = 0;
  friend bool operator==(const Sled&, const Sled&) = default;
};

// xray_instr_map: entries of 32 bytes {address, function, kind, always, version}; of version 0 and
// 1 with addresses, of 2 with each relative to its own place. Sorted by address; entries with an
// unknown kind or version are left out and counted.
struct SledTable {
  std::vector<Sled> sleds;
  uint64_t unknown = 0;
};
SledTable ReadSledTable(const SiteSection& section);

}  // namespace stackreel::x86
