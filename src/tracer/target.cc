#include "tracer/target.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace stackreel::tracer {

namespace {

using std::chrono::steady_clock;

// How long a thread deep in the kernel is waited for.
constexpr auto kPatience = std::chrono::milliseconds(3000);

Error Gone(uint32_t pid) {
  return Error(ErrorKind::kNotFound, fmt::format("there is no process {}", pid))
      .WithCure("see which there are: ps -e, or pgrep -l NAME");
}

Status RefuseOtherMachine(uint32_t pid) {
  const std::string path = fmt::format("/proc/{}/exe", pid);
  const os::Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) {
    if (errno == ENOENT) {
      // A process that has ended but is not waited for, or a kernel thread.
      return Fail(Error(ErrorKind::kNotFound, fmt::format("process {} runs no program: it has "
                                                          "ended, or is one of the kernel's",
                                                          pid)));
    }
    if (errno != EACCES && errno != EPERM) {
      return Fail(os::ErrnoError(errno, "cannot open", path));
    }
    return Fail(Error(ErrorKind::kPermission,
                      fmt::format("process {} may not be traced: it belongs to another user, or "
                                  "has rights that you have not",
                                  pid))
                    .WithCure(os::HowToBeAllowed()));
  }
  std::array<uint8_t, sizeof(Elf64_Ehdr)> header = {};
  if (pread(file.get(), header.data(), header.size(), 0) != static_cast<ssize_t>(header.size()) ||
      memcmp(header.data(), ELFMAG, SELFMAG) != 0) {
    return {};  // its modules will tell
  }
  if (header[EI_CLASS] != ELFCLASS64 ||
      LoadUnaligned<uint16_t>(&header[offsetof(Elf64_Ehdr, e_machine)], Endian::kLittle) !=
          EM_X86_64) {
    return Fail(Error(ErrorKind::kUnsupported,
                      fmt::format("process {} is a {} program; only 64-bit x86 can be traced", pid,
                                  header[EI_CLASS] == ELFCLASS32 ? "32-bit" : "foreign"))
                    .WithCure("profile it instead: stackreel record -p PID"));
  }
  return {};
}

}  // namespace

std::vector<patch::AddressRange> RangesOf(const std::vector<os::ProcMapping>& maps) {
  std::vector<patch::AddressRange> ranges;
  ranges.reserve(maps.size());
  for (const os::ProcMapping& mapping : maps) {
    ranges.push_back({Avma(mapping.start), Avma(mapping.end)});
  }
  return ranges;
}

Result<std::unique_ptr<Target>> Target::Open(uint32_t pid) {
  if (pid == static_cast<uint32_t>(getpid())) {
    return Fail(ErrorKind::kUsage, fmt::format("process {} is stackreel itself", pid));
  }
  if (os::ListThreads(pid).empty()) return Fail(Gone(pid));
  TRY(RefuseOtherMachine(pid));
  const std::string path = fmt::format("/proc/{}/mem", pid);
  os::Fd memory(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!memory.valid()) {
    if (errno == ENOENT || errno == ESRCH) return Fail(Gone(pid));
    Error error = os::ErrnoError(errno, "cannot open", path);
    if (errno == EACCES || errno == EPERM) {
      error.kind = ErrorKind::kPermission;
      error.cure = os::HowToBeAllowed();
    }
    return Fail(std::move(error));
  }
  return std::unique_ptr<Target>(new Target(pid, std::move(memory)));
}

Status Target::Read(Avma at, std::span<uint8_t> out) const {
  for (size_t done = 0; done < out.size();) {
    const ssize_t got = pread(memory_.get(), out.data() + done, out.size() - done,
                              static_cast<off_t>(at.value + done));
    if (got < 0 && errno == EINTR) continue;
    // The kernel's way to say that the memory is nobody's any more.
    if (got == 0) {
      return Fail(ErrorKind::kNotFound,
                  fmt::format("process {} has ended, or runs another program now", pid_));
    }
    if (got < 0) {
      return Fail(ErrorKind::kNotFound,
                  fmt::format("process {}: nothing is mapped at {:#x}", pid_, at.value + done));
    }
    done += static_cast<size_t>(got);
  }
  return {};
}

Status Target::Write(Avma at, ByteView bytes) const {
  ssize_t put = 0;
  do {
    put = pwrite(memory_.get(), bytes.data(), bytes.size(), static_cast<off_t>(at.value));
  } while (put < 0 && errno == EINTR);
  if (put == static_cast<ssize_t>(bytes.size())) return {};
  const int error = put < 0 ? errno : EIO;
  std::vector<uint8_t> there(bytes.size());
  TRY(Read(at, there));
  return Fail(ErrorKind::kIo, fmt::format("process {}: memory at {:#x} cannot be written: {}", pid_,
                                          at.value, strerror(error)));
}

bool Target::MemoryIsGone() const {
  // What is mapped nowhere is an error where there is a memory at all.
  uint8_t byte = 0;
  ssize_t got = 0;
  do {
    got = pread(memory_.get(), &byte, 1, 0);
  } while (got < 0 && errno == EINTR);
  return got == 0;
}

Status Target::Hold() {
  if (holders_ == 0) {
    urgent_.emplace();
    held_since_ = steady_clock::now();
    auto held = os::StoppedProcess::Stop(pid_, kPatience);
    if (!held) {
      urgent_.reset();
      return Fail(std::move(held.error()));
    }
    held_ = std::move(*held);
    ++holds_;
    filters_.Forget();
  }
  ++holders_;
  return {};
}

Status Target::LetGo() {
  if (--holders_ != 0) return {};
  const Status released = held_->Release();
  held_.reset();
  last_hold_ =
      std::chrono::duration_cast<std::chrono::microseconds>(steady_clock::now() - held_since_);
  longest_hold_ = std::max(longest_hold_, last_hold_);
  urgent_.reset();  // behind which those that were held may run first
  return released;
}

Result<uint64_t> Target::SystemCall(const char* name, int64_t number,
                                    const std::array<uint64_t, 6>& arguments) {
  TRY_ASSIGN(const uint32_t tid, filters_.ThreadFor(*held_, {name, number, arguments}));
  TRY_ASSIGN(const int64_t result, held_->SystemCall(number, arguments, tid));
  constexpr int64_t kMaxErrno = 4095;
  if (result >= 0 || result < -kMaxErrno) return static_cast<uint64_t>(result);
  return Fail(os::ErrnoError(static_cast<int>(-result),
                             fmt::format("process {} cannot be prepared: {} failed", pid_, name)));
}

}  // namespace stackreel::tracer
