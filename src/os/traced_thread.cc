#include "os/traced_thread.h"

#include <elf.h>
#include <errno.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "os/file.h"
#include "os/return_frame.h"

namespace stackreel::os {

namespace {

template <typename Data>
long Ptrace(int request, uint32_t tid, uint64_t address, Data data) {
  return ptrace(static_cast<__ptrace_request>(request), static_cast<pid_t>(tid),
                reinterpret_cast<void*>(address),          // NOLINT(performance-no-int-to-ptr)
                reinterpret_cast<void*>(uint64_t(data)));  // NOLINT(performance-no-int-to-ptr)
}

Error PtraceError(int error, std::string_view what, uint32_t tid) {
  Error out = ErrnoError(error, fmt::format("cannot {} thread {}", what, tid));
  if (error == ESRCH) out.kind = ErrorKind::kNotFound;
  return out;
}

#if defined(__x86_64__)
user_regs_struct AsUserRegs(const TracedRegisters& registers) {
  user_regs_struct regs;
  static_assert(sizeof(regs) == sizeof(registers.raw));
  std::memcpy(&regs, registers.raw.data(), sizeof(regs));
  return regs;
}
void FromUserRegs(const user_regs_struct& regs, TracedRegisters& registers) {
  std::memcpy(registers.raw.data(), &regs, sizeof(regs));
}
#endif

}  // namespace

#if defined(__x86_64__)

uint64_t TracedRegisters::ip() const { return AsUserRegs(*this).rip; }
uint64_t TracedRegisters::sp() const { return AsUserRegs(*this).rsp; }
uint64_t TracedRegisters::thread_pointer() const { return AsUserRegs(*this).fs_base; }
int64_t TracedRegisters::system_call() const {
  return static_cast<int64_t>(AsUserRegs(*this).orig_rax);
}
int64_t TracedRegisters::result() const { return static_cast<int64_t>(AsUserRegs(*this).rax); }

void TracedRegisters::set_ip(uint64_t ip) {
  user_regs_struct regs = AsUserRegs(*this);
  regs.rip = ip;
  FromUserRegs(regs, *this);
}

void TracedRegisters::set_sp(uint64_t sp) {
  user_regs_struct regs = AsUserRegs(*this);
  regs.rsp = sp;
  FromUserRegs(regs, *this);
}

void TracedRegisters::SetSystemCall(uint64_t ip, int64_t number,
                                    const std::array<uint64_t, 6>& arguments) {
  user_regs_struct regs = AsUserRegs(*this);
  regs.rip = ip;
  regs.rax = static_cast<uint64_t>(number);
  regs.orig_rax = UINT64_MAX;  // it returns from none: nothing is restarted
  regs.rdi = arguments[0];
  regs.rsi = arguments[1];
  regs.rdx = arguments[2];
  regs.r10 = arguments[3];
  regs.r8 = arguments[4];
  regs.r9 = arguments[5];
  FromUserRegs(regs, *this);
}

// The kernel's own codes are those of its linux/errno.h; EINTR is what we make begin anew.
bool TracedRegisters::MayRestart() const {
  constexpr int64_t kRestartSys = 512, kRestartNoIntr = 513, kRestartNoHand = 514,
                    kRestartBlock = 516;
  if (system_call() < 0) return false;
  const int64_t code = -result();
  return code == EINTR || code == kRestartSys || code == kRestartNoIntr || code == kRestartNoHand ||
         code == kRestartBlock;
}

void TracedRegisters::BeginSystemCallAnew() {
  constexpr uint64_t kInstruction = 2;  // 0f 05
  user_regs_struct regs = AsUserRegs(*this);
  regs.rax = regs.orig_rax;
  regs.rip -= kInstruction;
  FromUserRegs(regs, *this);
}

// The mask is the fifth argument, or (io_pgetevents) in what the sixth points to.
bool TracedRegisters::WaitsForSignals() const {
  const user_regs_struct regs = AsUserRegs(*this);
  switch (regs.orig_rax) {
    case SYS_epoll_pwait:
    case SYS_epoll_pwait2:
      return regs.r8 != 0;
    case SYS_io_pgetevents:
      return regs.r9 != 0;
    default:
      return false;
  }
}

#else

bool TracedRegisters::WaitsForSignals() const { return false; }
uint64_t TracedRegisters::ip() const { return 0; }
uint64_t TracedRegisters::sp() const { return 0; }
uint64_t TracedRegisters::thread_pointer() const { return 0; }
bool TracedRegisters::MayRestart() const { return false; }
int64_t TracedRegisters::system_call() const { return -1; }
int64_t TracedRegisters::result() const { return 0; }
void TracedRegisters::set_ip(uint64_t) {}
void TracedRegisters::set_sp(uint64_t) {}
void TracedRegisters::SetSystemCall(uint64_t, int64_t, const std::array<uint64_t, 6>&) {}
void TracedRegisters::BeginSystemCallAnew() {}

#endif

Result<SignalSets> ReadSignalSets(uint32_t pid, uint32_t tid) {
  TRY_ASSIGN(const std::string text,
             ReadTextFile(fmt::format("/proc/{}/task/{}/status", pid, tid)));
  const auto set_of = [&text](std::string_view key) {
    uint64_t bits = 0;
    const size_t at = text.find(key);
    if (at == std::string::npos) return bits;
    const char* digits = text.data() + at + key.size();
    std::from_chars(digits, text.data() + text.size(), bits, 16);
    return bits;
  };
  return SignalSets{.pending = set_of("\nSigPnd:\t") | set_of("\nShdPnd:\t"),
                    .blocked = set_of("\nSigBlk:\t"),
                    .caught = set_of("\nSigCgt:\t")};
}

Result<TracedThread> TracedThread::Seize(uint32_t pid, uint32_t tid) {
  if (Ptrace(PTRACE_SEIZE, tid, 0, PTRACE_O_TRACESYSGOOD) != 0) {
    return Fail(PtraceError(errno, "take hold of", tid));
  }
  TracedThread thread(pid, tid);
  // A thread that ends between the two is seen by Poll().
  if (auto asked = thread.Interrupt(); !asked && asked.error().kind != ErrorKind::kNotFound) {
    return Fail(std::move(asked.error()));
  }
  return thread;
}

Status TracedThread::Interrupt() {
  if (Ptrace(PTRACE_INTERRUPT, tid_, 0, 0) != 0) return Fail(PtraceError(errno, "stop", tid_));
  return {};
}

TracedThread::State TracedThread::Poll() {
  if (state_ == State::kStopped || state_ == State::kGone) return state_;
  siginfo_t info = {};
  if (waitid(P_PID, tid_, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT | __WALL) != 0) {
    if (errno == ECHILD) state_ = State::kGone;
    return state_;
  }
  if (info.si_pid == 0) return state_;
  const bool ended =
      info.si_code == CLD_EXITED || info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED;
  if (ended) state_ = State::kGone;
  if (ended && pid_ == tid_) {
    const auto parent = ReadTextFile(fmt::format("/proc/{}/status", pid_));
    if (parent && parent->contains(fmt::format("\nPPid:\t{}\n", getpid()))) return state_;
  }
  int status = 0;
  if (waitpid(static_cast<pid_t>(tid_), &status, WNOHANG | __WALL) != static_cast<pid_t>(tid_)) {
    return state_;
  }
  if (!WIFSTOPPED(status)) {
    state_ = State::kGone;
    return state_;
  }
  state_ = State::kStopped;
  TakeStop(status);
  return state_;
}

Result<TracedRegisters> TracedThread::ReadRegisters() const {
#if defined(__x86_64__)
  TracedRegisters registers;
  iovec bytes = {registers.raw.data(), sizeof(registers.raw)};
  if (Ptrace(PTRACE_GETREGSET, tid_, NT_PRSTATUS, reinterpret_cast<uint64_t>(&bytes)) != 0) {
    return Fail(PtraceError(errno, "read the registers of", tid_));
  }
  if (bytes.iov_len != sizeof(registers.raw)) {
    return Fail(ErrorKind::kUnsupported, fmt::format("thread {} runs 32-bit code", tid_));
  }
  return registers;
#else
  return Fail(ErrorKind::kUnsupported, "only x86-64 programs can be changed while they run");
#endif
}

Status TracedThread::WriteRegisters(const TracedRegisters& registers) const {
  TracedRegisters copy = registers;
  iovec bytes = {copy.raw.data(), sizeof(copy.raw)};
  if (Ptrace(PTRACE_SETREGSET, tid_, NT_PRSTATUS, reinterpret_cast<uint64_t>(&bytes)) != 0) {
    return Fail(PtraceError(errno, "write the registers of", tid_));
  }
  return {};
}

// Lets it run to its next stop, and waits for that.
Status TracedThread::Continue(int request) {
  if (Ptrace(request, tid_, 0, signal_) != 0) return Fail(PtraceError(errno, "continue", tid_));
  int status = 0;
  pid_t waited = 0;
  do {
    waited = waitpid(static_cast<pid_t>(tid_), &status, __WALL);
  } while (waited < 0 && errno == EINTR);
  if (waited < 0 || !WIFSTOPPED(status)) {
    state_ = State::kGone;
    return Fail(PtraceError(ESRCH, "continue", tid_));
  }
  TakeStop(status);
  return {};
}

// In a process that was stopped (SIGSTOP, Ctrl-Z) a thread reports that once more on its way.
Status TracedThread::ContinueToSystemCall() {
  constexpr int kMostStops = 16;
  for (int i = 0; i < kMostStops; ++i) {
    TRY(Continue(PTRACE_SYSCALL));
    if (at_system_call_) return {};
  }
  return Fail(ErrorKind::kUnsupported, fmt::format("thread {} stops over and over", tid_));
}

void TracedThread::TakeStop(int status) {
  const bool has_event = (status >> 16) != 0;
  at_system_call_ = !has_event && WSTOPSIG(status) == (SIGTRAP | 0x80);
  signal_ = has_event || at_system_call_ ? 0 : WSTOPSIG(status);
}

bool TracedThread::AtBreakpoint() const {
  siginfo_t info = {};
  if (signal_ == SIGTRAP &&
      Ptrace(PTRACE_GETSIGINFO, tid_, 0, reinterpret_cast<uint64_t>(&info)) == 0) {
    return info.si_code == SI_KERNEL;
  }
  // It stopped before it took the signal: that is in its own queue.
  constexpr size_t kMost = 16;
  std::array<siginfo_t, kMost> queue = {};
  __ptrace_peeksiginfo_args which = {.off = 0, .flags = 0, .nr = kMost};
  const long found = Ptrace(PTRACE_PEEKSIGINFO, tid_, reinterpret_cast<uint64_t>(&which),
                            reinterpret_cast<uint64_t>(queue.data()));
  for (long i = 0; i < found; ++i) {
    const siginfo_t& queued = queue[static_cast<size_t>(i)];
    if (queued.si_signo == SIGTRAP && queued.si_code == SI_KERNEL) return true;
  }
  return false;
}

namespace {

// A frame that lies in a thread's memory, and what was there before.
struct LaidFrame {
  uint64_t at = 0;  // 0: none
  std::vector<uint8_t> before;
};

template <typename T>
bool ReadAt(int memory, uint64_t at, T& out) {
  return pread(memory, &out, sizeof(out), static_cast<off_t>(at)) == sizeof(out);
}
bool WriteAt(int memory, uint64_t at, std::span<const uint8_t> bytes) {
  return pwrite(memory, bytes.data(), bytes.size(), static_cast<off_t>(at)) ==
         static_cast<ssize_t>(bytes.size());
}

// NT_X86_XSTATE; empty where the kernel has none.
std::vector<uint8_t> ReadVectorState(uint32_t tid) {
  constexpr size_t kMost = size_t{64} << 10;
  std::vector<uint8_t> state(kMost);
  iovec bytes = {state.data(), state.size()};
  if (Ptrace(PTRACE_GETREGSET, tid, NT_X86_XSTATE, reinterpret_cast<uint64_t>(&bytes)) != 0) {
    return {};
  }
  state.resize(bytes.iov_len);
  return state;
}

// Nothing is laid where it cannot be: a stack that ends, a process without the code for it.
LaidFrame LayReturnFrame(uint32_t tid, const SystemCallPlace& place, int memory,
                         const TracedRegisters& registers, uint64_t mask) {
  if (place.restorer == 0) return {};
  const ReturnFrame frame = MakeReturnFrame(registers, mask, ReadVectorState(tid), place.restorer);
  if (frame.bytes.empty()) return {};
  LaidFrame laid{.at = frame.at, .before = std::vector<uint8_t>(frame.bytes.size())};
  if (pread(memory, laid.before.data(), laid.before.size(), static_cast<off_t>(frame.at)) !=
      static_cast<ssize_t>(laid.before.size())) {
    return {};
  }
  if (WriteAt(memory, frame.at, frame.bytes)) return laid;
  // Its first part may stand there by now.
  (void)WriteAt(memory, frame.at, laid.before);
  return {};
}

}  // namespace

Status TracedThread::LeaveRestartableSequence(int memory, TracedRegisters& registers) const {
  // PTRACE_GET_RSEQ_CONFIGURATION and its struct, of linux/ptrace.h since Linux 5.13; before that
  // nobody can know.
  constexpr int kGetArea = 0x420f;
  struct Area {
    uint64_t at;
    uint32_t size, signature, flags, padding;
  };
  // struct rseq_cs of linux/rseq.h, and where struct rseq has its address.
  struct Sequence {
    uint32_t version, flags;
    uint64_t start, size, abort;
  };
  constexpr uint64_t kSequenceOffset = 8;
  Area area = {};
  if (Ptrace(kGetArea, tid_, sizeof(area), reinterpret_cast<uint64_t>(&area)) < 0 || area.at == 0) {
    return {};
  }
  uint64_t at = 0;
  Sequence sequence = {};
  if (!ReadAt(memory, area.at + kSequenceOffset, at) || at == 0 || !ReadAt(memory, at, sequence) ||
      registers.ip() - sequence.start >= sequence.size) {
    return {};
  }
  // What the kernel would end the program for is left to the kernel.
  uint32_t signature = 0;
  if (!ReadAt(memory, sequence.abort - sizeof(signature), signature) ||
      signature != area.signature || sequence.abort - sequence.start < sequence.size) {
    return {};
  }
  registers.set_ip(sequence.abort);
  return WriteRegisters(registers);
}

Result<int64_t> TracedThread::SystemCall(const SystemCallPlace& place, int memory, int64_t number,
                                         const std::array<uint64_t, 6>& arguments) {
  TRY_ASSIGN(const TracedRegisters before, ReadRegisters());
  uint64_t mask = 0;
  const auto set_mask = [this](uint64_t to) -> Status {
    if (Ptrace(PTRACE_SETSIGMASK, tid_, sizeof(to), reinterpret_cast<uint64_t>(&to)) == 0) {
      return {};
    }
    return Fail(PtraceError(errno, "block the signals of", tid_));
  };
  if (Ptrace(PTRACE_GETSIGMASK, tid_, sizeof(mask), reinterpret_cast<uint64_t>(&mask)) != 0) {
    return Fail(PtraceError(errno, "read the blocked signals of", tid_));
  }
  const LaidFrame frame = LayReturnFrame(tid_, place, memory, before, mask);
  TracedRegisters call = before;
  call.SetSystemCall(place.instruction, number, arguments);
  if (frame.at != 0) call.set_sp(frame.at);
  // From here until they are as before, registers and mask come back through the frame if we are
  // killed: so the mask is changed, and changed back, while the registers lead there.
  const auto make = [&]() -> Result<int64_t> {
    TRY(WriteRegisters(call));
    TRY(set_mask(~uint64_t{0}));
    // The first stop is at the entry of the system call. Single steps would do as well, but each
    // would force a SIGTRAP on a program that may ignore or block it, and change that.
    TRY(ContinueToSystemCall());
    TRY(ContinueToSystemCall());
    TRY_ASSIGN(const TracedRegisters after, ReadRegisters());
    return after.result();
  };
  const Result<int64_t> made = make();
  const Status unblocked = set_mask(mask);
  // Being let go wakes the thread as a signal would, so that the kernel restarts on its way out
  // what these registers say is to be restarted.
  const Status restored = WriteRegisters(before);
  // Whose registers lead there still will need it.
  if (frame.at != 0 && restored) (void)WriteAt(memory, frame.at, frame.before);
  if (!made) return made;
  TRY(unblocked);
  TRY(restored);
  return made;
}

// Most system calls that a stop interrupts are restarted by the kernel. For some it has decided on
// EINTR by now, as if a signal had come; the program shall not see that when none has. close(2) is
// not among those that may be made again: its descriptor may be somebody else's by then.
// True if it waits anew, at the entry of its system call.
Result<bool> TracedThread::BeginAnewIfCutShort() {
  auto registers = ReadRegisters();
  if (!registers) {
    if (registers.error().kind == ErrorKind::kUnsupported) return false;
    return Fail(std::move(registers.error()));
  }
  if (registers->system_call() < 0 || registers->result() != -EINTR) return false;
  if (registers->system_call() == SYS_close) return false;
  TRY_ASSIGN(const SignalSets signals, ReadSignalSets(pid_, tid_));
  // Signals that are ignored reach a process as soon as it is traced, and not before: they do not
  // count.
  const auto is_caught = [this, &signals] {
    return signal_ != 0 && (signals.caught >> (signal_ - 1) & 1) != 0;
  };
  if (is_caught() || (signals.pending & ~signals.blocked & signals.caught) != 0) return false;
  const TracedRegisters cut_short = *registers;
  registers->BeginSystemCallAnew();
  TRY(WriteRegisters(*registers));
  if (!cut_short.WaitsForSignals()) return false;
  // A signal that comes now must find the thread inside the system call, or else it returns EINTR
  // after all: the handler may have made what the program waits for true.
  do {
    TRY(Continue(PTRACE_SYSCALL));
  } while (signal_ != 0 && !is_caught());
  if (is_caught()) TRY(WriteRegisters(cut_short));
  return at_system_call_;
}

Status TracedThread::LetGo() {
  if (state_ == State::kGone) return {};
  const Result<bool> waits_anew = BeginAnewIfCutShort();
  const bool detach = !waits_anew || !*waits_anew;
  if (Ptrace(detach ? PTRACE_DETACH : PTRACE_CONT, tid_, 0, signal_) != 0 && errno != ESRCH) {
    return Fail(PtraceError(errno, "let go of", tid_));
  }
  state_ = detach ? State::kGone : State::kLetGo;
  if (waits_anew || waits_anew.error().kind == ErrorKind::kNotFound) return {};
  return Fail(waits_anew.error());
}

}  // namespace stackreel::os
