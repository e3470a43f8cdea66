#include "os/stopped_process.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/kcmp.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>

#include "os/proc.h"

namespace stackreel::os {

namespace {

using std::chrono::steady_clock;

// The letter of its state in /proc/PID/task/TID/stat: "12 (comm) S 1 …", where comm may hold
// anything. Nothing if it is gone.
std::optional<char> StateOf(uint32_t pid, uint32_t tid) {
  const auto text = ReadTextFile(fmt::format("/proc/{}/task/{}/stat", pid, tid));
  if (!text) return std::nullopt;
  const size_t end = text->rfind(") ");
  if (end == std::string::npos || end + 2 >= text->size()) return std::nullopt;
  return (*text)[end + 2];
}

bool IsDead(std::optional<char> state) { return !state || *state == 'Z' || *state == 'X'; }

// What a blocked thread is doing: /proc/PID/task/TID/syscall, "NR ARG… SP PC".
struct BlockedCall {
  int64_t number = -1;
  uint64_t sp = 0, ip = 0;
};
std::optional<BlockedCall> BlockedCallOf(uint32_t pid, uint32_t tid) {
  auto text = ReadTextFile(fmt::format("/proc/{}/task/{}/syscall", pid, tid));
  if (!text || text->starts_with("running")) return std::nullopt;
  std::vector<std::string_view> words;
  for (std::string_view rest = *text; !rest.empty();) {
    const size_t end = std::min(rest.find_first_of(" \n"), rest.size());
    if (end != 0) words.push_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (words.size() < 3) return std::nullopt;
  const auto hex = [](std::string_view word) {
    uint64_t value = 0;
    if (word.starts_with("0x")) word.remove_prefix(2);
    std::from_chars(word.data(), word.data() + word.size(), value, 16);
    return value;
  };
  BlockedCall call;
  std::from_chars(words[0].data(), words[0].data() + words[0].size(), call.number);
  call.sp = hex(words[words.size() - 2]);
  call.ip = hex(words.back());
  return call;
}

std::vector<uint32_t> ChildrenOf(uint32_t pid, uint32_t tid) {
  std::vector<uint32_t> children;
  const auto text = ReadTextFile(fmt::format("/proc/{}/task/{}/children", pid, tid));
  if (!text) return children;
  const char *at = text->data(), *end = at + text->size();
  while (at < end) {
    uint32_t child = 0;
    const auto read = std::from_chars(at, end, child);
    if (read.ec == std::errc()) children.push_back(child);
    at = std::max(read.ptr, at) + 1;
  }
  return children;
}

bool SharesMemory(uint32_t a, uint32_t b) { return syscall(SYS_kcmp, a, b, KCMP_VM, 0, 0) == 0; }

Error WhyNotSeized(uint32_t pid, Error error) {
  if (error.kind != ErrorKind::kPermission) return error;
  const auto status = ReadTextFile(fmt::format("/proc/{}/status", pid));
  constexpr std::string_view kTracer = "\nTracerPid:\t";
  if (const size_t at = status ? status->find(kTracer) : std::string::npos;
      at != std::string::npos) {
    uint32_t tracer = 0;
    std::from_chars(status->data() + at + kTracer.size(), status->data() + status->size(), tracer);
    if (tracer != 0) {
      const auto who = ReadProcStatus(tracer, tracer);
      return Error(ErrorKind::kPermission,
                   fmt::format("process {} is traced already, by {} ({})", pid, tracer,
                               who ? who->comm : "of another namespace"))
          .WithCure("end that tracer (a debugger, strace), then try again");
    }
  }
  std::string cure = HowToBeAllowed();
  const auto scope = ReadNumberFile("/proc/sys/kernel/yama/ptrace_scope");
  if (scope && *scope != 0) {
    cure += fmt::format(
        "\nor let users trace what they own: sysctl kernel.yama.ptrace_scope=0 (it is {})", *scope);
  }
  error.message = fmt::format("process {} may not be traced: {}", pid, error.message);
  return std::move(error).WithCure(std::move(cure));
}

}  // namespace

std::string HowToBeAllowed() {
  if (geteuid() != 0) return "run as the user who owns the process, or as root";
  return "run outside of this container: root has not all capabilities here";
}

Result<std::unique_ptr<StoppedProcess>> StoppedProcess::Stop(uint32_t pid,
                                                             std::chrono::milliseconds patience) {
  std::unique_ptr<StoppedProcess> process(new StoppedProcess(pid));
  process->tracer_->RunBeforeOthers();
  TRY(process->tracer_->Run([&]() -> Status { return process->StopAll(patience); }));
  return process;
}

StoppedProcess::~StoppedProcess() {
  if (tracer_) (void)Release();
}

Status StoppedProcess::StopAll(std::chrono::milliseconds patience) {
  const auto deadline = steady_clock::now() + patience;
  if (IsDead(StateOf(pid_, pid_)) && ListThreads(pid_).size() <= 1) {
    return Fail(ErrorKind::kNotFound, fmt::format("there is no process {}", pid_));
  }
  processes_.push_back(pid_);
  // A thread that does not run makes no other, so that this ends: when all that are seen are
  // stopped and a look at the lists finds no more, there are none.
  while (true) {
    bool any_new = false;
    for (const uint32_t process : processes_) {
      TRY_ASSIGN(const bool found, SeizeNewThreads(process));
      any_new = any_new || found;
    }
    if (!any_new) break;
    TRY(AwaitAll(deadline));
    FindMemorySharers();
  }
  std::erase_if(traced_, [](const TracedThread& thread) {
    return thread.state() == TracedThread::State::kGone;
  });
  if (std::ranges::none_of(traced_, [this](const auto& thread) { return thread.pid() == pid_; })) {
    return Fail(ErrorKind::kNotFound, fmt::format("process {} has ended", pid_));
  }
  std::ranges::sort(traced_, {}, &TracedThread::tid);
  const std::string path = fmt::format("/proc/{}/mem", pid_);
  memory_ = Fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!memory_.valid()) {
    if (errno == ENOENT || errno == ESRCH) {
      return Fail(ErrorKind::kNotFound, fmt::format("process {} has ended", pid_));
    }
    return Fail(ErrnoError(errno, "cannot open", path));
  }
  return Describe();
}

Result<bool> StoppedProcess::SeizeNewThreads(uint32_t pid) {
  bool any = false;
  for (const uint32_t tid : ListThreads(pid)) {
    if (seized_.contains(tid)) continue;
    auto thread = TracedThread::Seize(pid, tid);
    if (thread) {
      traced_.push_back(*thread);
      seized_.insert(tid);
      any = true;
    } else if (thread.error().kind != ErrorKind::kNotFound && !IsDead(StateOf(pid, tid))) {
      return Fail(WhyNotSeized(pid, std::move(thread.error())));
    }
  }
  return any;
}

// Children that run in the same memory: to be held too, with their threads.
void StoppedProcess::FindMemorySharers() {
  for (const TracedThread& thread : traced_) {
    for (const uint32_t child : ChildrenOf(thread.pid(), thread.tid())) {
      if (std::ranges::find(processes_, child) != processes_.end()) continue;
      if (SharesMemory(pid_, child)) processes_.push_back(child);
    }
  }
}

bool StoppedProcess::AwaitsVfork(const TracedThread& thread) const {
  if (StateOf(thread.pid(), thread.tid()) != 'D') return false;
  const auto children = ChildrenOf(thread.pid(), thread.tid());
  const bool child_shares =
      std::ranges::any_of(children, [this](uint32_t child) { return SharesMemory(pid_, child); });
  if (!child_shares) return false;
  const auto call = BlockedCallOf(thread.pid(), thread.tid());
#if defined(SYS_vfork)
  if (call && call->number == SYS_vfork) return true;
#endif
  return call && (call->number == SYS_clone || call->number == SYS_clone3);
}

Status StoppedProcess::AwaitAll(steady_clock::time_point deadline) {
  constexpr auto kFirstPause = std::chrono::microseconds(20),
                 kLongest = std::chrono::microseconds(500);
  auto pause = kFirstPause;
  while (true) {
    const TracedThread* running = nullptr;
    bool progress = false;
    for (TracedThread& thread : traced_) {
      if (thread.state() != TracedThread::State::kAsked) continue;
      if (thread.Poll() == TracedThread::State::kAsked) {
        if (running == nullptr && !AwaitsVfork(thread)) running = &thread;
      } else {
        progress = true;
      }
    }
    if (running == nullptr) return {};
    if (steady_clock::now() > deadline) {
      return Fail(ErrorKind::kInterrupted,
                  fmt::format("thread {} does not stop: it is in state {}", running->tid(),
                              StateOf(running->pid(), running->tid()).value_or('?')));
    }
    pause = progress ? kFirstPause : std::min(2 * pause, kLongest);
    std::this_thread::sleep_for(pause);
  }
}

Status StoppedProcess::Describe() {
  threads_.reserve(traced_.size());
  for (const TracedThread& thread : traced_) {
    Thread out;
    out.pid = thread.pid();
    out.tid = thread.tid();
    if (thread.state() == TracedThread::State::kAsked) {
      out.awaits_vfork = true;
      const auto call = BlockedCallOf(thread.pid(), thread.tid());
      if (call) {
        out.instruction_pointer = Avma(call->ip);
        out.stack_pointer = Avma(call->sp);
        out.may_restart = true;
      }
    } else {
      TRY_ASSIGN(TracedRegisters registers, thread.ReadRegisters());
      TRY(thread.LeaveRestartableSequence(memory_.get(), registers));
      out.instruction_pointer = Avma(registers.ip());
      out.stack_pointer = Avma(registers.sp());
      out.thread_pointer = Avma(registers.thread_pointer());
      out.may_restart = registers.MayRestart();
      out.at_breakpoint = thread.AtBreakpoint();
    }
    threads_.push_back(out);
  }
  return {};
}

Status StoppedProcess::SetInstructionPointer(size_t thread, Avma to) {
  return tracer_->Run([&]() -> Status {
    if (threads_[thread].awaits_vfork) {
      return Fail(ErrorKind::kUnsupported,
                  fmt::format("thread {} waits in vfork", threads_[thread].tid));
    }
    TRY_ASSIGN(TracedRegisters registers, traced_[thread].ReadRegisters());
    registers.set_ip(to.value);
    TRY(traced_[thread].WriteRegisters(registers));
    threads_[thread].instruction_pointer = to;
    return {};
  });
}

Status StoppedProcess::ReadMemory(Avma at, std::span<uint8_t> out) {
  const ssize_t got = pread(memory_.get(), out.data(), out.size(), static_cast<off_t>(at.value));
  if (got == static_cast<ssize_t>(out.size())) return {};
  return Fail(ErrorKind::kIo, fmt::format("process {}: {} bytes at {:#x} cannot be read", pid_,
                                          out.size(), at.value));
}

Status StoppedProcess::WriteMemory(Avma at, ByteView bytes) {
  const ssize_t put =
      pwrite(memory_.get(), bytes.data(), bytes.size(), static_cast<off_t>(at.value));
  if (put == static_cast<ssize_t>(bytes.size())) return {};
  return Fail(ErrorKind::kIo, fmt::format("process {}: {} bytes at {:#x} cannot be written", pid_,
                                          bytes.size(), at.value));
}

// Looked for once a process, since that takes longer than all that is done while it is held.
Result<SystemCallPlace> StoppedProcess::FindSystemCall() {
  static std::mutex mutex;
  static std::unordered_map<uint32_t, SystemCallPlace> known;
  const MemoryRead read = [this](uint64_t at, std::span<uint8_t> out) {
    return ReadMemory(Avma(at), out);
  };
  const std::lock_guard lock(mutex);
  const auto found = known.find(pid_);
  if (found != known.end() && HoldsSystemCallPlace(found->second, read)) return found->second;
  TRY_ASSIGN(std::vector<ProcMapping> maps, ReadProcMaps(pid_));
  TRY_ASSIGN(const SystemCallPlace place, FindSystemCallPlace(std::move(maps), read));
  // One without a way back is looked for again: a C library may have been loaded.
  if (place.restorer != 0) known[pid_] = place;
  return place;
}

bool StoppedProcess::CanCall(const TracedThread& thread) const {
  return thread.state() == TracedThread::State::kStopped && !thread.at_signal() &&
         thread.pid() == pid_;
}

std::vector<uint32_t> StoppedProcess::SystemCallers() const {
  std::vector<uint32_t> tids;
  for (const TracedThread& thread : traced_) {
    if (CanCall(thread)) tids.push_back(thread.tid());
  }
  return tids;
}

Result<int64_t> StoppedProcess::SystemCall(int64_t number, const std::array<uint64_t, 6>& arguments,
                                           uint32_t tid) {
  return tracer_->Run([&]() -> Result<int64_t> {
    if (!system_call_) {
      TRY_ASSIGN(system_call_, FindSystemCall());
    }
    for (TracedThread& thread : traced_) {
      if (CanCall(thread) && (tid == 0 || thread.tid() == tid)) {
        return thread.SystemCall(*system_call_, memory_.get(), number, arguments);
      }
    }
    return Fail(ErrorKind::kUnsupported,
                fmt::format("all threads of process {} are at a signal; try again", pid_));
  });
}

Result<std::vector<std::vector<SeccompFilter>>> StoppedProcess::ReadSeccompFilters() {
  return tracer_->Run([&]() -> Result<std::vector<std::vector<SeccompFilter>>> {
    std::vector<std::vector<SeccompFilter>> all;
    for (const TracedThread& thread : traced_) {
      if (thread.state() != TracedThread::State::kStopped) continue;
      TRY_ASSIGN(auto filters, os::ReadSeccompFilters(thread.tid()));
      if (!filters.empty()) all.push_back(std::move(filters));
    }
    return all;
  });
}

Result<std::vector<SeccompFilter>> StoppedProcess::ReadSeccompFilters(uint32_t tid) {
  return tracer_->Run([&] { return os::ReadSeccompFilters(tid); });
}

Status StoppedProcess::Release() {
  Status result = tracer_->RunLast([&]() -> Status {
    Status first;
    const auto let_go = [&first](TracedThread& thread) {
      if (Status done = thread.LetGo(); !done && first) first = std::move(done);
    };
    for (TracedThread& thread : traced_) {
      if (thread.state() == TracedThread::State::kStopped) let_go(thread);
    }
    for (TracedThread& thread : traced_) {
      const bool ours = thread.state() == TracedThread::State::kLetGo;
      if (ours && thread.Poll() == TracedThread::State::kStopped) let_go(thread);
    }
    return first;
  });
  // With its tracer's end the kernel lets go of the others, and of those that had not stopped.
  tracer_.reset();
  return result;
}

}  // namespace stackreel::os
