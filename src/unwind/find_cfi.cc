#include "unwind/find_cfi.h"

namespace stackreel::unwind {
namespace {

// More than _start needs before it has called the program's C code.
constexpr uint64_t kStartCode = 64;

}  // namespace

FoundCfi FindCfi(const UnwindModule& module, Svma pc, bool exact) {
  FoundCfi found;
  found.lookup = exact ? pc : pc - 1;
  const elf::Image* image = module.image();
  // At its first instruction _start has not said yet that it has no caller.
  if (exact && image != nullptr && image->entry() == pc) {
    found.outermost = true;
    return found;
  }
  found.fde = module.frames().FindFde(found.lookup);
  // Where _start has no CFI at all (musl, the dynamic linker), what lies right behind it is part of
  // it.
  const uint64_t behind_entry = image == nullptr ? UINT64_MAX : found.lookup - image->entry();
  if (!found.fde && behind_entry < kStartCode) {
    found.outermost = true;
    return found;
  }
  // A trampoline is returned to at its first byte, so the byte before may be another function's.
  found.try_trampoline = !found.fde || found.fde->end == pc;
  return found;
}

bool SeekRow(dwarf::RowCursor& rows, Svma svma) {
  while (true) {
    const auto more = rows.Next();
    if (!more || !*more) return false;
    if (svma < rows.row().end) return true;
  }
}

}  // namespace stackreel::unwind
