// The places of a module where the dynamic linker puts an address of the module itself.
#pragma once

#include <functional>
#include <vector>

#include "base/address.h"
#include "base/bytes.h"
#include "x86/function_flow.h"

namespace stackreel::x86 {

struct RelativeRelocation {
  Svma place;
  Svma value;
  friend bool operator==(const RelativeRelocation&, const RelativeRelocation&) = default;
};

// Those of .rela.dyn: entries Elf64_Rela of type R_X86_64_RELATIVE (x86-64 psABI, table 4.10).
std::vector<RelativeRelocation> ReadRela(ByteView rela);
// Those of .relr.dyn (gABI, "Relative Relocation Table"): it holds places only, the values are in
// the loaded bytes.
std::vector<RelativeRelocation> ReadRelr(ByteView relr, const LoadedBytes& loaded);

}  // namespace stackreel::x86
