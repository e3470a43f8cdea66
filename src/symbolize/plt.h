// Names for the stubs of the procedure linkage table, which have no symbols of their own.
#pragma once

#include "elf/image.h"
#include "symbolize/symbol_table_builder.h"

namespace stackreel::symbolize {

// Adds "name@plt" for each stub of .plt, .plt.sec and .plt.got whose jump goes through a GOT slot
// that a relocation fills. x86-64 and arm64.
void AddPltSymbols(const elf::Image& image, SymbolTableBuilder& builder);

}  // namespace stackreel::symbolize
