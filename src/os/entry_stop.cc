#include "os/entry_stop.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <asm/prctl.h>
#endif

#include <atomic>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "os/file.h"
#include "os/own_thread.h"

namespace stackreel::os {

#if defined(__x86_64__)

namespace {

constexpr std::array<uint8_t, 2> kLoop = {0xeb, 0xfe};  // jmp to itself
constexpr uint8_t kBreakpoint = 0xcc;

long Ptrace(int request, uint32_t tid, uint64_t address, uint64_t data) {
  return ptrace(static_cast<__ptrace_request>(request), static_cast<pid_t>(tid),
                reinterpret_cast<void*>(address),  // NOLINT(performance-no-int-to-ptr)
                reinterpret_cast<void*>(data));    // NOLINT(performance-no-int-to-ptr)
}

}  // namespace

// One run of the child, all of it on one thread, that of its tracer.
class EntryRun {
 public:
  explicit EntryRun(uint32_t pid) : pid_(pid) {}
  // Of a process that is not a child of ours: what fails leaves it as it is.
  EntryRun(uint32_t pid, uint32_t tid) : pid_(pid), tid_(tid), is_child_(false) {}

  // Takes hold of the thread that is about to execute a program, and lets it go on.
  Status SeizeExecuting() {
    if (Ptrace(PTRACE_SEIZE, tid_, 0, PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD) != 0 ||
        Ptrace(PTRACE_INTERRUPT, tid_, 0, 0) != 0) {
      return Fail(ErrnoError(errno, fmt::format("thread {} cannot be followed", tid_)));
    }
    TRY_ASSIGN(const bool stopped, AwaitStopOf(tid_));
    if (!stopped) return Fail(ErrorKind::kNotFound, "the thread has ended");
    return LetThreadGoOn(tid_, PTRACE_SYSCALL);
  }
  // Whether it has executed a program; else it has been let go.
  Result<bool> ToExec() {
    bool executes = false;
    while (true) {
      // The thread that executes takes the place of the first one.
      const bool is_first = tid_ == pid_;
      TRY_ASSIGN(bool stopped, AwaitStopOf(tid_));
      if (!stopped && !is_first) {
        tid_ = pid_;
        TRY_ASSIGN(stopped, AwaitStopOf(tid_));
      }
      if (!stopped) return Fail(ErrorKind::kNotFound, "the thread has ended");
      if (event_ == PTRACE_EVENT_EXEC) {
        tid_ = pid_;
        return true;
      }
      if (at_system_call_) {
        TRY_ASSIGN(const user_regs_struct regs, Registers());
        const bool is_exec = regs.orig_rax == SYS_execve || regs.orig_rax == SYS_execveat;
        if (executes && is_exec) {
          (void)Ptrace(PTRACE_DETACH, tid_, 0, 0);
          return false;
        }
        executes = is_exec;
      }
      TRY(LetThreadGoOn(tid_, PTRACE_SYSCALL));
    }
  }
  Status ToEntryOfExecuted() {
    TRY(OpenMemory());
    return ToEntryOfProgram();
  }
  void GiveUp() { given_up_ = true; }
  // What GiveUp asks for. The process runs, or is about to stop.
  void LetGoOn() {
    if (Ptrace(PTRACE_INTERRUPT, tid_, 0, 0) != 0) return;
    given_up_ = false;  // one more wait
    if (const auto stopped = AwaitStopOf(tid_); !stopped || !*stopped) return;
    int signal = event_ == 0 && !at_system_call_ ? signal_ : 0;
    if (breakpoint_) {
      auto regs = Registers();
      const bool is_there = regs && signal == SIGTRAP && regs->rip == entry_ + 1;
      if (is_there) {
        regs->rip = entry_;
        (void)SetRegisters(*regs);
        signal = 0;
      }
      (void)Write(entry_, *breakpoint_);
    }
    (void)Ptrace(PTRACE_DETACH, tid_, 0, static_cast<uint64_t>(signal));
  }

  Status Seize() {
    if (Ptrace(PTRACE_SEIZE, pid_, 0,
               PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL) != 0) {
      Error error =
          ErrnoError(errno, fmt::format("the command cannot be traced (process {})", pid_));
      return Fail(std::move(error).WithCure("see what this machine allows: stackreel doctor"));
    }
    return {};
  }

  Result<HeldEntry> ToEntry() {
    do {
      TRY(Next(0));
    } while (event_ != PTRACE_EVENT_EXEC);
    TRY(OpenMemory());
    TRY(ToEntryOfProgram());
    return Hold();
  }
  Result<HeldEntry> Hold() {
    TRY_ASSIGN(const user_regs_struct regs, Registers());
    HeldEntry held;
    held.at = Avma(regs.rip);
    if (!Read(regs.rip, held.original)) {
      return Fail(ErrorKind::kUnsupported, "the command's code is not mapped");
    }
    TRY(Write(regs.rip, kLoop));
    if (Ptrace(PTRACE_DETACH, pid_, 0, 0) != 0) {
      return Fail(ErrnoError(errno, "the command cannot be let go"));
    }
    return held;
  }

 private:
  Status OpenMemory() {
    memory_ = Fd(open(fmt::format("/proc/{}/mem", pid_).c_str(), O_RDWR | O_CLOEXEC));
    if (!memory_.valid()) return Fail(ErrnoError(errno, "cannot open the command's memory"));
    return {};
  }
  Status ToEntryOfProgram() {
    TRY(ReadAuxv());
    TRY(ToBreakpoint());
    return base_ == 0 ? ToThreadPointer() : Status();
  }

  // Waits for a stop of `tid`; false if there is no such thread any more. Never reaps: the end of
  // a child is for who waits for it.
  Result<bool> AwaitStopOf(uint32_t tid) {
    constexpr timespec kPause = {.tv_sec = 0, .tv_nsec = 100'000};
    while (true) {
      if (given_up_) return Fail(ErrorKind::kInterrupted, "it is followed no more");
      siginfo_t info = {};
      const int waited = waitid(P_PID, tid, &info, WSTOPPED | WEXITED | WNOHANG | WNOWAIT | __WALL);
      if (waited != 0 && errno != EINTR) return false;
      if (waited == 0 && info.si_pid != 0) {
        if (info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED) return false;
        break;
      }
      nanosleep(&kPause, nullptr);
      if (access(fmt::format("/proc/{}/task/{}", pid_, tid).c_str(), F_OK) != 0) return false;
    }
    int status = 0;
    if (waitpid(static_cast<pid_t>(tid), &status, WNOHANG | __WALL) != static_cast<pid_t>(tid)) {
      return false;
    }
    TakeStop(status);
    return true;
  }
  void TakeStop(int status) {
    event_ = status >> 16;
    signal_ = WSTOPSIG(status);
    at_system_call_ = event_ == 0 && signal_ == (SIGTRAP | 0x80);
  }
  // With the signal that it stopped for, if it did.
  Status LetThreadGoOn(uint32_t tid, int request) const {
    const int signal = event_ == 0 && !at_system_call_ ? signal_ : 0;
    if (Ptrace(request, tid, 0, static_cast<uint64_t>(signal)) == 0) return {};
    return Fail(ErrnoError(errno, "the thread cannot be let go on"));
  }

  // Lets it go on by `request` (0: as it is) and waits for a stop that is not a signal's, which it
  // gets.
  Status Next(int request) {
    uint64_t signal = 0;
    while (true) {
      if (request != 0 && Ptrace(request, pid_, 0, signal) != 0) {
        return Fail(ErrnoError(errno, "the command cannot be let go on"));
      }
      if (request == 0) request = PTRACE_CONT;
      int status = 0;
      pid_t waited = 0;
      do {
        if (!is_child_) {
          TRY_ASSIGN(const bool stopped, AwaitStopOf(pid_));
          if (stopped) break;
          return Fail(ErrorKind::kInterrupted, "the process ended before its program began");
        }
        // Not reaped: its exit code is for who waits for the child.
        siginfo_t info = {};
        waited = waitid(P_PID, pid_, &info, WEXITED | WSTOPPED | WNOWAIT | __WALL) == 0
                     ? static_cast<pid_t>(pid_)
                     : -1;
        if (waited > 0 && info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED) {
          return Fail(ErrorKind::kInterrupted, "the command ended before its program began");
        }
        if (waited > 0) waited = waitpid(static_cast<pid_t>(pid_), &status, __WALL);
      } while (waited < 0 && errno == EINTR);
      if (waited < 0) return Fail(ErrnoError(errno, "the command cannot be waited for"));
      if (is_child_) TakeStop(status);
      signal = 0;
      if (event_ == PTRACE_EVENT_STOP) continue;  // the seizing itself, SIGCONT, SIGSTOP
      if (event_ != 0 || at_system_call_) return {};
      if (signal_ == SIGTRAP) {
        siginfo_t info = {};
        (void)Ptrace(PTRACE_GETSIGINFO, pid_, 0, reinterpret_cast<uint64_t>(&info));
        if (info.si_code == SI_KERNEL || info.si_code == TRAP_TRACE || info.si_code == TRAP_BRKPT) {
          return {};
        }
      }
      signal = static_cast<uint64_t>(signal_);
    }
  }

  Result<user_regs_struct> Registers() const {
    user_regs_struct regs = {};
    iovec bytes = {&regs, sizeof(regs)};
    if (Ptrace(PTRACE_GETREGSET, tid_, NT_PRSTATUS, reinterpret_cast<uint64_t>(&bytes)) != 0) {
      return Fail(ErrnoError(errno, "cannot read the command's registers"));
    }
    if (bytes.iov_len != sizeof(regs)) {
      return Fail(ErrorKind::kUnsupported,
                  "the command is a 32-bit program; only 64-bit x86 can be "
                  "traced");
    }
    return regs;
  }
  Status SetRegisters(user_regs_struct regs) const {
    iovec bytes = {&regs, sizeof(regs)};
    if (Ptrace(PTRACE_SETREGSET, pid_, NT_PRSTATUS, reinterpret_cast<uint64_t>(&bytes)) != 0) {
      return Fail(ErrnoError(errno, "cannot write the command's registers"));
    }
    return {};
  }
  template <typename T>
  [[nodiscard]] bool Read(uint64_t at, T& out) const {
    return pread(memory_.get(), &out, sizeof(out), static_cast<off_t>(at)) == sizeof(out);
  }
  template <typename T>
  [[nodiscard]] Status Write(uint64_t at, const T& value) const {
    if (pwrite(memory_.get(), &value, sizeof(value), static_cast<off_t>(at)) == sizeof(value)) {
      return {};
    }
    return Fail(ErrnoError(errno, "cannot write the command's code"));
  }

  Status ReadAuxv() {
    TRY(Registers());
    TRY_ASSIGN(const std::string text, ReadTextFile(fmt::format("/proc/{}/auxv", pid_)));
    const ByteView bytes = AsBytes(text);
    for (size_t i = 0; i + 16 <= bytes.size(); i += 16) {
      const auto type = LoadUnaligned<uint64_t>(&bytes[i], Endian::kLittle);
      const auto value = LoadUnaligned<uint64_t>(&bytes[i + 8], Endian::kLittle);
      if (type == AT_ENTRY) entry_ = value;
      if (type == AT_BASE) base_ = value;
    }
    if (entry_ != 0) return {};
    return Fail(ErrorKind::kUnsupported, "the kernel tells no entry of the command's program");
  }

  Status ToBreakpoint() {
    uint8_t original = 0;
    if (!Read(entry_, original)) {
      return Fail(ErrorKind::kUnsupported, "the entry of the command's program is not mapped");
    }
    TRY(Write(entry_, kBreakpoint));
    breakpoint_ = original;
    while (true) {
      TRY(Next(PTRACE_CONT));
      if (event_ != 0 || signal_ != SIGTRAP) continue;
      TRY_ASSIGN(user_regs_struct regs, Registers());
      if (regs.rip != entry_ + 1) continue;
      regs.rip = entry_;
      TRY(SetRegisters(regs));
      breakpoint_.reset();
      return Write(entry_, original);
    }
  }

  // glibc and musl set the thread pointer, then ask for the thread's id and keep it: all before
  // main().
  Status ToThreadPointer() {
    constexpr int kMostCalls = 256;
    bool is_set = false;
    for (int i = 0; i < kMostCalls; ++i) {
      TRY(Next(PTRACE_SYSCALL));  // at its entry
      if (!at_system_call_) continue;
      TRY_ASSIGN(const user_regs_struct entered, Registers());
      // It will not come any more.
      if (entered.orig_rax == SYS_exit_group || entered.orig_rax == SYS_exit) break;
      do {
        TRY(Next(PTRACE_SYSCALL));
      } while (!at_system_call_);
      is_set = is_set || (entered.orig_rax == SYS_arch_prctl && entered.rdi == ARCH_SET_FS);
      if (is_set && entered.orig_rax == SYS_set_tid_address) return ToThreadId();
      if (is_set && entered.orig_rax != SYS_arch_prctl) break;  // a library that asks for none
    }
    if (is_set) return {};
    if (is_child_) (void)kill(static_cast<pid_t>(pid_), SIGKILL);
    return Fail(Error(ErrorKind::kUnsupported,
                      "the command is a static program that sets no thread pointer (fs), which the "
                      "agent knows threads by")
                    .WithCure("profile it instead: stackreel record -- COMMAND"));
  }
  Status ToThreadId() {
    constexpr int kMostSteps = 64;
    constexpr size_t kLook = 1024;
    for (int i = 0; i < kMostSteps; ++i) {
      TRY_ASSIGN(const user_regs_struct regs, Registers());
      std::array<uint32_t, kLook / 4> block = {};
      if (Read(regs.fs_base, block)) {
        for (const uint32_t word : block) {
          if (word == pid_) return {};
        }
      }
      TRY(Next(PTRACE_SINGLESTEP));
    }
    return {};
  }

  uint32_t pid_;
  uint32_t tid_ = pid_;
  bool is_child_ = true;
  Fd memory_;
  uint64_t entry_ = 0, base_ = 0;
  std::optional<uint8_t> breakpoint_;  // what stands there else; nothing: there is none
  int event_ = 0, signal_ = 0;
  bool at_system_call_ = false;
  std::atomic<bool> given_up_ = false;
};

ExecFollower::ExecFollower(uint32_t pid, uint32_t tid)
    : run_(std::make_unique<EntryRun>(pid, tid)) {}
ExecFollower::~ExecFollower() = default;

Result<std::unique_ptr<ExecFollower>> ExecFollower::Begin(uint32_t pid, uint32_t tid) {
  std::unique_ptr<ExecFollower> follower(new ExecFollower(pid, tid));
  TRY(follower->tracer_.Run([&] { return follower->run_->SeizeExecuting(); }));
  return follower;
}

Result<bool> ExecFollower::Await() {
  const auto follow = [&]() -> Result<bool> {
    TRY_ASSIGN(const bool executed, run_->ToExec());
    if (executed) TRY(run_->ToEntryOfExecuted());
    return executed;
  };
  return tracer_.Run([&] {
    auto executed = follow();
    if (!executed && executed.error().kind == ErrorKind::kInterrupted) run_->LetGoOn();
    return executed;
  });
}
Result<HeldEntry> ExecFollower::Hold() {
  return tracer_.Run([&] { return run_->Hold(); });
}
void ExecFollower::GiveUp() { run_->GiveUp(); }

Result<HeldEntry> StartToEntry(ChildProcess& child) {
  OwnThread tracer;
  EntryRun run(child.pid());
  TRY(tracer.Run([&] { return run.Seize(); }));
  TRY(child.Start());
  return tracer.Run([&] { return run.ToEntry(); });
}

#else

class EntryRun {};
ExecFollower::ExecFollower(uint32_t, uint32_t) {}
ExecFollower::~ExecFollower() = default;
Result<std::unique_ptr<ExecFollower>> ExecFollower::Begin(uint32_t, uint32_t) {
  return Fail(ErrorKind::kUnsupported, "only x86-64 programs can be traced");
}
Result<bool> ExecFollower::Await() { return false; }
Result<HeldEntry> ExecFollower::Hold() {
  return Fail(ErrorKind::kUnsupported, "only x86-64 programs can be traced");
}
void ExecFollower::GiveUp() {}

Result<HeldEntry> StartToEntry(ChildProcess&) {
  return Fail(ErrorKind::kUnsupported, "only x86-64 programs can be traced");
}

#endif

}  // namespace stackreel::os
