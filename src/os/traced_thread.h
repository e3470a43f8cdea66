// One thread of another process, stopped by ptrace(2). See ptrace(2), "The PTRACE_SEIZE"
// paragraphs.
#pragma once

#include <array>
#include <cstdint>

#include "base/error.h"

namespace stackreel::os {

struct SystemCallPlace;  // return_frame.h

// What a stopped thread goes on with, of its registers. x86-64 only: kUnsupported elsewhere.
struct TracedRegisters {
  // All of them, as the kernel gives them (user_regs_struct).
  std::array<uint64_t, 27> raw = {};

  [[nodiscard]] uint64_t ip() const;
  [[nodiscard]] uint64_t sp() const;
  [[nodiscard]] uint64_t thread_pointer() const;  // what fs is based on
  // The system call that the thread is returning from; -1: none.
  [[nodiscard]] int64_t system_call() const;
  // What that returns: the kernel's own codes, such as -ERESTARTSYS, as well.
  [[nodiscard]] int64_t result() const;
  // Whether the kernel may have that begin again, with its instruction.
  [[nodiscard]] bool MayRestart() const;
  // Whether that waits with signals let through which are blocked before and after, so that none
  // can come but while it waits (epoll_pwait and its kin). poll, select and sigsuspend have such
  // forms too; those the kernel restarts by itself.
  [[nodiscard]] bool WaitsForSignals() const;
  void set_ip(uint64_t ip);
  void set_sp(uint64_t sp);
  // Turns them into those of a thread about to make a system call with the instruction at `ip`.
  void SetSystemCall(uint64_t ip, int64_t number, const std::array<uint64_t, 6>& arguments);
  // Turns a return from a system call into its beginning.
  void BeginSystemCallAnew();
};

// Signals as /proc/PID/task/TID/status has them: bit n - 1 is signal n.
struct SignalSets {
  uint64_t pending = 0, blocked = 0, caught = 0;
};
Result<SignalSets> ReadSignalSets(uint32_t pid, uint32_t tid);

class TracedThread {
 public:
  enum class State : uint8_t {
    kAsked,  // to stop; it may run still
    kStopped,
    kLetGo,  // it runs on, but is ours until the tracer's thread ends: see LetGo()
    kGone,   // it has ended, or is nobody's
  };

  // Takes hold of thread `tid` of `pid` and asks it to stop. kNotFound: it is gone, or ending.
  // kPermission with the kernel's reason.
  static Result<TracedThread> Seize(uint32_t pid, uint32_t tid);

  [[nodiscard]] uint32_t pid() const { return pid_; }
  [[nodiscard]] uint32_t tid() const { return tid_; }
  [[nodiscard]] State state() const { return state_; }
  // Whether it stopped to take a signal, which it takes when let go.
  [[nodiscard]] bool at_signal() const { return signal_ != 0; }
  // Whether a stopped one has met an int3, and its SIGTRAP is still to come.
  [[nodiscard]] bool AtBreakpoint() const;

  // Takes in what has become of it since; does not wait. Where the whole process has ended that is
  // a child of ours, its exit code is left for who waits for it.
  State Poll();

  // Of a stopped one. kNotFound: it was killed. kUnsupported: it runs 32-bit code.
  Result<TracedRegisters> ReadRegisters() const;
  Status WriteRegisters(const TracedRegisters& registers) const;

  // Has it leave the restartable sequence that it is in (rseq(2)), for where that says it begins
  // anew: the stop has cut it off, and the kernel sees to that only if it finds the thread there
  // when it goes on. `registers`: its own. `memory` is /proc/PID/mem.
  Status LeaveRestartableSequence(int memory, TracedRegisters& registers) const;

  // Makes a system call in it, which must not stop at a signal, at `place`; gives what the kernel
  // returned. All its signals are blocked meanwhile. `memory` is /proc/PID/mem: below the thread's
  // stack stands meanwhile what brings it back if we are killed, where there is room for that.
  Result<int64_t> SystemCall(const SystemCallPlace& place, int memory, int64_t number,
                             const std::array<uint64_t, 6>& arguments);

  // Lets a stopped one go on as it was before it was seized. Most are nobody's then. A thread that
  // waits for signals, in a system call begun anew, cannot be detached without another stop; it is
  // kept until the thread that seized it ends, which must be soon, and for which the kernel
  // detaches it without a stop. Call it again for what Poll() finds stopped until then.
  Status LetGo();

 private:
  TracedThread(uint32_t pid, uint32_t tid) : pid_(pid), tid_(tid) {}
  Status Continue(int request);
  Status ContinueToSystemCall();
  Status Interrupt();
  void TakeStop(int status);
  Result<bool> BeginAnewIfCutShort();

  uint32_t pid_ = 0, tid_ = 0;
  State state_ = State::kAsked;
  int signal_ = 0;  // that it is about to take
  bool at_system_call_ = false;
};

}  // namespace stackreel::os
