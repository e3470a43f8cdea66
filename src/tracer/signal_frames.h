// Contexts that signals have interrupted: where a thread will go on when its handlers return.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/address.h"
#include "base/error.h"
#include "os/proc.h"
#include "patch/room.h"

namespace stackreel::tracer {

struct SignalFrame {
  Avma ip;        // where it goes on
  Avma sp;        // with this stack pointer
  Avma ip_place;  // the word that holds ip
  // An int3 raised it, and its handler has not changed where it goes on.
  bool of_breakpoint = false;
};

// Reads memory of the process; fails where not all is mapped.
using MemoryRead = std::function<Status(Avma, std::span<uint8_t>)>;

// Finds the signal frames of stopped threads, as x86-64 Linux lays them out
// (arch/x86/include/asm/sigframe.h: the restorer's address, a ucontext, a siginfo). A frame is
// known by the restorer, whose code is rt_sigreturn(2) and nothing else; a handler may run on
// another stack (sigaltstack(2)), from which the frame leads on.
class SignalFrameFinder {
 public:
  // `mapped` are the process's mappings, ascending. What they are, and code, must stay as it is
  // while this lives.
  SignalFrameFinder(std::span<const os::ProcMapping> mapped, MemoryRead read);

  // Of one thread, innermost first.
  std::vector<SignalFrame> Find(Avma ip, Avma sp);

 private:
  bool IsRestorer(Avma at);
  bool IsInRestorer(Avma ip);
  [[nodiscard]] const os::ProcMapping* MappingOf(Avma at) const;
  std::optional<SignalFrame> FrameAt(Avma at);
  std::optional<Avma> FindAbove(Avma sp, std::vector<SignalFrame>& frames);

  std::span<const os::ProcMapping> mapped_;
  std::vector<patch::AddressRange> code_;  // those that may be executed: every stack word is sought
  MemoryRead read_;
  std::map<Avma, bool> restorers_;
};

}  // namespace stackreel::tracer
