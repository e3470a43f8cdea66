// What a thread does that met an int3. The part of patching that runs inside the traced process: no
// allocation, no lock, no library call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/address.h"
#include "patch/site.h"

namespace stackreel::patch {

// Where a thread that met a trap goes on.
struct TrapEntry {
  Avma address;         // of the int3
  Avma target;          // jump there …
  Avma return_address;  // … having pushed this, unless it is 0: the branch replaced is a call
  friend bool operator==(const TrapEntry&, const TrapEntry&) = default;
};

// `entries` by address, none twice. Null if there is none.
[[nodiscard]] inline const TrapEntry* FindTrap(std::span<const TrapEntry> entries, Avma address) {
  size_t first = 0;
  size_t last = entries.size();
  while (first < last) {
    const size_t middle = first + (last - first) / 2;
    if (entries[middle].address < address) {
      first = middle + 1;
    } else {
      last = middle;
    }
  }
  if (first == entries.size() || entries[first].address != address) return nullptr;
  return &entries[first];
}

enum class TrapAction : uint8_t {
  kGoOn,     // at `to`, having pushed return_address unless it is 0
  kRetry,    // at `to`, the int3's address: another instruction stands there now
  kProgram,  // the trap is the program's own, if the table is still the one looked at
};
struct TrapDecision {
  TrapAction action = TrapAction::kProgram;
  Avma to;
  Avma return_address;
};

// `ip` is the thread's after the int3, `byte` what is at ip - 1 now.
[[nodiscard]] inline TrapDecision DecideTrap(std::span<const TrapEntry> entries, Avma ip,
                                             uint8_t byte) {
  if (const TrapEntry* entry = FindTrap(entries, ip - 1)) {
    return {TrapAction::kGoOn, entry->target, entry->return_address};
  }
  if (byte != kTrapByte) return {TrapAction::kRetry, ip - 1, Avma(0)};
  return {};
}

// The whole of the handler's decision, only for a SIGTRAP that an int3 raised (si_code SI_KERNEL).
// `load_table` returns the published table as anything with a data(), size() and an identity that
// compares equal only if no table was published in between; it loads with acquire order.
// `load_byte(address)` loads a byte of code as data, after what was loaded before.
//
// Publication. A table is immutable. The tracer makes a new one, then publishes it by one pointer
// store (release), and only then stores the int3s that need it; it publishes a table without an
// entry only when the int3 has been overwritten. So:
// * A thread that met one of our int3s and loads the table after that finds the entry, or the int3
//   is gone from memory and was replaced by whole instructions: it retries.
// * That an int3 is in memory and not in a table says nothing if another table has been published
//   since: the site may have been patched anew. So the table is looked at a second time, and the
//   trap is the program's own only if it is the same one.
// * A table may be freed when no thread is in the handler that was so when the next was published
//   (see SlotRooms in room.h); simplest is never.
// * Retrying ends: taking a trap and returning from its handler (iret) serialises, so the next
// fetch
//   sees what memory holds.
template <typename LoadTable, typename LoadByte>
TrapDecision HandleTrap(LoadTable load_table, LoadByte load_byte, Avma ip) {
  auto table = load_table();
  while (true) {
    const TrapDecision decision =
        DecideTrap(std::span<const TrapEntry>(table.data(), table.size()), ip, load_byte(ip - 1));
    if (decision.action != TrapAction::kProgram) return decision;
    auto again = load_table();
    if (again == table) return decision;
    table = again;
  }
}

}  // namespace stackreel::patch
