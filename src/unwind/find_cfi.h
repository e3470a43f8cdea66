// The call-frame information of one pc, and the cases in which it must not be believed.
#pragma once

#include <optional>

#include "base/address.h"
#include "dwarf/cfi.h"
#include "unwind/unwind.h"

namespace stackreel::unwind {

struct FoundCfi {
  Svma lookup;  // pc, or pc - 1 for a return address
  std::optional<dwarf::Fde> fde;
  bool outermost = false;       // whatever the FDE says
  bool try_trampoline = false;  // pc may be in a signal trampoline without CFI
};

// `exact`: pc is an instruction's address, not a return address.
FoundCfi FindCfi(const UnwindModule& module, Svma pc, bool exact);

// Moves to the row in force at `svma`; false if there is none or it cannot be read.
bool SeekRow(dwarf::RowCursor& rows, Svma svma);

}  // namespace stackreel::unwind
