// A command held at the first instruction of its program.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/address.h"
#include "base/error.h"
#include "os/child_process.h"
#include "os/own_thread.h"

namespace stackreel::os {

// Where a started program is held: in a loop of one instruction, since nothing else holds a process
// that nobody traces. Whoever stops it next puts `original` back at `at`, and the program begins.
struct HeldEntry {
  Avma at;
  std::array<uint8_t, 2> original = {};
};

// Starts a prepared child and lets it run to the entry of its program: of a dynamic program behind
// what the dynamic linker does (all libraries are mapped, their constructors have run), of a static
// one to where its C library has set the thread pointer and noted the thread's id. Signals that
// come meanwhile are the child's. If this process dies before it returns, the child is killed.
//
// kNotFound, kPermission: the command cannot be executed. kInterrupted: it ended before it came
// there; its exit code is the child's. kUnsupported: it is no 64-bit x86 program, or a static one
// that sets no thread pointer; it is killed then.
Result<HeldEntry> StartToEntry(ChildProcess& child);

class EntryRun;

// A process that is about to execute another program, followed to the entry of that.
class ExecFollower {
 public:
  // Takes hold of the thread that will call execve(2) next, and lets it go on. Errors are those of
  // ptrace(2).
  static Result<std::unique_ptr<ExecFollower>> Begin(uint32_t pid, uint32_t tid);
  ~ExecFollower();
  ExecFollower(const ExecFollower&) = delete;
  ExecFollower& operator=(const ExecFollower&) = delete;
  // Waits until the program is at its entry, where it is stopped as long as this lives; false:
  // execve failed, and the thread goes on. kUnsupported: the program runs, but cannot be stopped.
  Result<bool> Await();
  // Then: holds it there as StartToEntry leaves it.
  Result<HeldEntry> Hold();
  // From another thread: Await() lets the process go on as if nobody had followed it, and fails
  // with kInterrupted, unless it has come to its entry before that.
  void GiveUp();

 private:
  ExecFollower(uint32_t pid, uint32_t tid);
  std::unique_ptr<EntryRun> run_;
  OwnThread tracer_;
};

}  // namespace stackreel::os
