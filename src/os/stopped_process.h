// Another process whose threads are all stopped, by ptrace(2), to look at and to change it.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_set>
#include <vector>

#include "base/address.h"
#include "base/bytes.h"
#include "base/error.h"
#include "os/file.h"
#include "os/own_thread.h"
#include "os/return_frame.h"
#include "os/seccomp_filter.h"
#include "os/traced_thread.h"

namespace stackreel::os {

// The cure where ptrace(2), or a file of /proc, refuses a process for want of rights.
std::string HowToBeAllowed();

// All threads of a process, and of those that share its memory (children of vfork(2), clone(2) with
// CLONE_VM), held for as long as this lives: nobody runs its code. Then each goes on as it was, and
// sees nothing of it:
//
// * a signal that came meanwhile is delivered;
// * a system call that the stop interrupted is begun anew where the kernel would have it return
//   EINTR (epoll_wait(2), sigtimedwait(2), semop(2), sockets with a time-out …; signal(7) lists
//   them), unless a signal awaits the thread. Its time-out begins anew too: nobody wakes early.
//   Sleeps that the kernel restarts by itself (nanosleep(2), futex(2), poll(2)) end in time;
// * a process that was stopped (SIGSTOP, Ctrl-Z) stays so;
// * a restartable sequence (rseq(2)) that the stop has cut off begins anew.
//
// If this process dies while it holds another, the kernel lets that one go on.
//
// Nobody else may wait for a child that is held: a wait(2) would take what ptrace(2) has to tell.
class StoppedProcess {
 public:
  struct Thread {
    uint32_t pid = 0;  // the process it is of: not the one asked for where memory is shared
    uint32_t tid = 0;
    // It waits in vfork(2) for a child that is held as well. It cannot be stopped, nor does it run.
    // It cannot be moved; its instruction pointer is behind the system call.
    bool awaits_vfork = false;
    Avma instruction_pointer;
    Avma stack_pointer;
    Avma thread_pointer;  // what fs is based on
    // The kernel may have it make the system call again that ends at instruction_pointer.
    bool may_restart = false;
    // It has met the int3 before instruction_pointer; the signal for that is still to come.
    bool at_breakpoint = false;
  };

  // Stops the process. Fails, and lets all of it go, with
  //   kNotFound     it is gone, or ends while it is being stopped
  //   kPermission   it belongs to somebody else, is held by another tracer (which is named), or the
  //                 kernel does not allow it
  //   kUnsupported  it is of 32 bits, or this CPU's registers are not known here
  //   kInterrupted  a thread did not stop within `patience`: it is deep in the kernel
  static Result<std::unique_ptr<StoppedProcess>> Stop(uint32_t pid,
                                                      std::chrono::milliseconds patience);
  // Lets go what Release() has not.
  ~StoppedProcess();
  StoppedProcess(const StoppedProcess&) = delete;
  StoppedProcess& operator=(const StoppedProcess&) = delete;

  // In rising order of tid. They stay as they are, but for those killed meanwhile: what is done to
  // such a one fails with kNotFound.
  [[nodiscard]] std::span<const Thread> threads() const { return threads_; }

  // Moves a thread to other code.
  Status SetInstructionPointer(size_t thread, Avma to);
  // Memory of the process, also where its protection does not let it be written: a page of a file
  // is copied for this process alone, as for a debugger's breakpoint. kIo: not all mapped.
  Status ReadMemory(Avma at, std::span<uint8_t> out);
  Status WriteMemory(Avma at, ByteView bytes);
  // Lets a thread of the process make a system call, and gives what the kernel returned (-errno
  // where it failed). No other thread moves meanwhile, and no signal is delivered. `tid` is one of
  // SystemCallers(); 0 is the first. kUnsupported if there is none.
  Result<int64_t> SystemCall(int64_t number, const std::array<uint64_t, 6>& arguments,
                             uint32_t tid = 0);
  // Threads of the process that can be had make one: those that did not stop at a signal.
  [[nodiscard]] std::vector<uint32_t> SystemCallers() const;

  // The seccomp filters of each thread that has any, or of one. Errors are those of
  // os::ReadSeccompFilters.
  Result<std::vector<std::vector<SeccompFilter>>> ReadSeccompFilters();
  Result<std::vector<SeccompFilter>> ReadSeccompFilters(uint32_t tid);

  // Lets all threads go on. An error tells of the first that could not be let go by us: the kernel
  // does it, a moment later. Nothing else may be called afterwards.
  Status Release();

 private:
  explicit StoppedProcess(uint32_t pid) : pid_(pid), tracer_(std::in_place) {}
  Status StopAll(std::chrono::milliseconds patience);
  Result<bool> SeizeNewThreads(uint32_t pid);
  void FindMemorySharers();
  Status AwaitAll(std::chrono::steady_clock::time_point deadline);
  [[nodiscard]] bool AwaitsVfork(const TracedThread& thread) const;
  [[nodiscard]] bool CanCall(const TracedThread& thread) const;
  Status Describe();
  Result<SystemCallPlace> FindSystemCall();

  uint32_t pid_;
  Fd memory_;
  std::vector<uint32_t> processes_;
  std::vector<TracedThread> traced_;
  std::unordered_set<uint32_t> seized_;  // tids that were ever among them
  std::vector<Thread> threads_;          // of the same indices, once all are stopped
  std::optional<SystemCallPlace> system_call_;
  std::optional<OwnThread> tracer_;
};

}  // namespace stackreel::os
