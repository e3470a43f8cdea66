#include "tracer/installed_agent.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <linux/memfd.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "agent/stub.h"
#include "os/proc.h"
#include "os/tracing_abilities.h"
#include "tracer/trace_clock.h"

namespace stackreel::tracer {

namespace {

using tracedata::AgentControl;
using tracedata::ChunkHeader;
using tracedata::PoolHeader;

template <typename T>
uint32_t* FutexWord(std::atomic<T>& word) {
  static_assert(sizeof(std::atomic<T>) == sizeof(uint32_t));
  return reinterpret_cast<uint32_t*>(&word);
}

// One that has ended, and that nobody has waited for, is not.
bool IsAlive(uint32_t pid) {
  if (pid == 0 || kill(static_cast<pid_t>(pid), 0) != 0) return false;
  const auto status = os::ReadTextFile(fmt::format("/proc/{}/status", pid));
  return !status || !os::StatusValue(*status, "State").starts_with('Z');
}

Error NoThreadPointer(uint32_t pid, uint32_t tid, bool is_null) {
  Error error(ErrorKind::kUnsupported,
              fmt::format("thread {} of process {} keeps no thread pointer at fs:0: {}", tid, pid,
                          is_null ? "its C library has not set it up yet"
                                  : "it is not of a C library (Go keeps its own)"));
  error.cure = is_null ? "try again once the program has come to main()"
                       : "profile it instead: stackreel record -p PID";
  return error;
}

}  // namespace

uint32_t Pool::RoomFor(uint32_t chunks) {
  // Twice the threads that an agent can record.
  const uint32_t room = chunks + 2 * tracedata::kThreadSlots;
  rlimit limit = {};
  const bool is_limited =
      getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < tracedata::PoolSize(room);
  return is_limited ? chunks : room;
}

Result<std::unique_ptr<Pool>> Pool::Make(os::Fd file, uint32_t chunks) {
  const uint64_t size = SizeFor(chunks);
  if (ftruncate(file.get(), static_cast<off_t>(size)) != 0) {
    return Fail(os::ErrnoError(errno, "cannot size the buffer of the agent"));
  }
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) return Fail(os::ErrnoError(errno, "cannot map the agent's buffer"));
  struct stat info = {};
  fstat(file.get(), &info);
  return std::unique_ptr<Pool>(
      new Pool(std::move(file), static_cast<uint8_t*>(memory), chunks, info.st_ino));
}

Status Pool::Fill() {
  const uint64_t size = tracedata::ChunkOffset(room_, first_);
  // Not by touching it: where memory is short that would be the end by SIGBUS.
  if (fallocate(file_.get(), 0, 0, static_cast<off_t>(size)) != 0) {
    return Fail(os::ErrnoError(
        errno, fmt::format("no memory for the agent's {} MB of buffer", size >> 20)));
  }
  (void)madvise(memory_, size, MADV_POPULATE_WRITE);  // an old kernel does so by faults
  new (memory_) PoolHeader{.chunks = room_, .ready = first_};
  for (uint32_t i = 0; i < room_; ++i) {
    new (memory_ + tracedata::ChunkHeaderOffset(i)) ChunkHeader();
  }
  return {};
}

void Pool::Extend(uint32_t wanted) const {
  const uint32_t ready = chunks();
  wanted = std::min(wanted, room_);
  if (wanted <= ready) return;
  if (fallocate(file_.get(), 0, static_cast<off_t>(tracedata::ChunkOffset(room_, ready)),
                off_t{wanted - ready} * tracedata::kChunkSize) != 0) {
    return;
  }
  header().ready = wanted;
  NoteFreed();
}

Pool::~Pool() { munmap(memory_, tracedata::PoolSize(room_)); }

PoolHeader& Pool::header() const { return *reinterpret_cast<PoolHeader*>(memory_); }

ChunkHeader& Pool::chunk(uint32_t i) const {
  return *reinterpret_cast<ChunkHeader*>(memory_ + tracedata::ChunkHeaderOffset(i));
}

ByteView Pool::words(uint32_t i) const {
  return {memory_ + tracedata::ChunkOffset(room_, i), tracedata::kChunkSize};
}

tracedata::LostCalls Pool::Lost() const {
  tracedata::LostCalls lost = {};
  for (const PoolHeader::Losses& row : header().losses) {
    for (size_t reason = 0; reason < lost.size(); ++reason) lost[reason] += row.calls[reason];
  }
  return lost;
}

void Pool::Drop() {
  static_assert(sizeof(PoolHeader) <= 4096);
  const uint64_t kept = tracedata::RoundUpToPage(1);
  (void)fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(kept),
                  static_cast<off_t>(tracedata::PoolSize(room_) - kept));
}

void Pool::Answer(uint32_t request) const {
  PoolHeader& pool = header();
  pool.answered = request;
  syscall(SYS_futex, FutexWord(pool.answered), FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

std::vector<Pool::Executing> Pool::TakeExecuting() const {
  std::vector<Executing> executing;
  for (tracedata::ExecutingThread& entry : header().executing) {
    const uint32_t pid = entry.pid;
    if (pid == 0 || pid == tracedata::kBeingTaken) continue;
    executing.push_back({.pid = pid, .tid = entry.tid});
    entry.pid = 0;
  }
  return executing;
}

void Pool::WakeCollector() const {
  PoolHeader& pool = header();
  ++pool.filled;
  syscall(SYS_futex, FutexWord(pool.filled), FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

void Pool::AwaitFull(int milliseconds, uint32_t asked) const {
  PoolHeader& pool = header();
  const uint32_t seen = pool.filled;
  pool.tracer_waits = 1;
  if (pool.asked != asked) {
    pool.tracer_waits = 0;
    return;
  }
  const uint32_t ready = chunks();
  for (uint32_t i = 0; i < ready; ++i) {
    if (chunk(i).state == static_cast<uint32_t>(tracedata::ChunkState::kFull)) {
      pool.tracer_waits = 0;
      return;
    }
  }
  const timespec timeout = {.tv_sec = milliseconds / 1000,
                            .tv_nsec = (milliseconds % 1000) * 1'000'000L};
  syscall(SYS_futex, FutexWord(pool.filled), FUTEX_WAIT, seen, &timeout, nullptr, 0);
  pool.tracer_waits = 0;
}

void Pool::NoteFreed() const {
  PoolHeader& pool = header();
  ++pool.freed;
  if (pool.waiting != 0) {
    syscall(SYS_futex, FutexWord(pool.freed), FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
  }
}

Result<uint32_t> LearnTidOffset(Target& target) {
  // glibc's struct pthread has it 720 bytes in; others' are smaller.
  constexpr size_t kLook = 2048;
  std::vector<uint32_t> offsets;
  bool first = true;
  OwnIds own_ids;
  for (const os::StoppedProcess::Thread& thread : target.threads().threads()) {
    if (thread.awaits_vfork || thread.pid != target.pid()) continue;
    std::array<uint32_t, kLook / sizeof(uint32_t)> words = {};
    const auto bytes = std::span(reinterpret_cast<uint8_t*>(words.data()), kLook);
    // What lies behind may not be mapped.
    size_t read = kLook;
    while (read > sizeof(uint64_t) && !target.Read(thread.thread_pointer, bytes.first(read))) {
      read /= 2;
    }
    uint64_t self = 0;
    std::memcpy(&self, words.data(), sizeof(self));
    if (thread.thread_pointer.value == 0 || self != thread.thread_pointer.value) {
      return Fail(NoThreadPointer(target.pid(), thread.tid, thread.thread_pointer.value == 0));
    }
    std::vector<uint32_t> here;
    const uint32_t own = own_ids.Of(thread.pid, thread.tid);
    for (uint32_t i = 0; i < read / sizeof(uint32_t); ++i) {
      if (words[i] == own) here.push_back(i * sizeof(uint32_t));
    }
    // A thread made by clone(2) itself may share another's: it does not count against them.
    if (here.empty()) continue;
    if (first) {
      offsets = here;
      first = false;
    } else {
      std::vector<uint32_t> both;
      std::ranges::set_intersection(offsets, here, std::back_inserter(both));
      offsets = both;
    }
  }
  return offsets.empty() ? tracedata::kNoTidOffset : offsets.front();
}

Result<std::optional<FoundAgent>> FindAgent(const Target& target) {
  TRY_ASSIGN(const std::vector<os::ProcMapping> maps, os::ReadProcMaps(target.pid()));
  const auto found = agent::FindAgent(maps, ReaderOf(target));
  if (!found) return std::nullopt;
  return FoundAgent{*found, IsAlive(found->tracer_pid)};
}

namespace {

// One reservation, of which the code cannot be written and the pool is a file.
class Installer {
 public:
  Installer(Target& target, const InstalledAgent::Options& options)
      : target_(target), options_(options) {}

  Result<AgentPlace> Reserve(const std::optional<FoundAgent>& left) {
    const uint64_t pool_size = Pool::SizeFor(options_.chunks);
    if (left && left->pool_inode != 0 && left->place.pool_size == pool_size) {
      place_ = left->place;
    } else {
      TRY_ASSIGN(const uint64_t at, Map(Avma(0), tracedata::kAgentSize + pool_size, PROT_NONE,
                                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, ~uint64_t{0}));
      place_.code = Avma(at);
      place_.pool_size = pool_size;
    }
    constexpr int kPrivate = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    TRY(Map(place_.code, tracedata::kAgentCodeSize, PROT_READ | PROT_EXEC, kPrivate, ~uint64_t{0}));
    TRY(Map(place_.control(), tracedata::kPrivateSize, PROT_READ | PROT_WRITE,
            kPrivate | MAP_NORESERVE, ~uint64_t{0}));
    return place_;
  }

  // A kernel that cannot clear it in children (before 4.14) has them go on as their parent.
  Status SetForkMark() {
    (void)target_.SystemCall(
        "madvise", SYS_madvise,
        {place_.directory().value, tracedata::kDirectorySize, MADV_WIPEONFORK});
    return target_.WriteObject(place_.directory() + tracedata::kForkMarkOffset,
                               tracedata::kForkMarked);
  }

  Result<std::unique_ptr<Pool>> MakePool() {
    // Its name stands for a moment where the control block will.
    std::array<uint8_t, sizeof(kPoolName)> name = {};
    std::memcpy(name.data(), kPoolName, sizeof(kPoolName));
    TRY(target_.Write(place_.control(), name));
    TRY_ASSIGN(const uint64_t fd, target_.SystemCall("memfd_create", SYS_memfd_create,
                                                     {place_.control().value, os::MemfdFlags()}));
    auto pool = OpenPool(fd);
    auto mapped = pool ? Map(place_.pool(), place_.pool_size, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_FIXED, fd)
                       : Result<uint64_t>(0);
    TRY(target_.SystemCall("close", SYS_close, {fd}));
    TRY(std::move(mapped));
    return pool;
  }

 private:
  Result<uint64_t> Map(Avma at, uint64_t size, int protection, int flags, uint64_t fd) {
    return target_.SystemCall(
        "mmap", SYS_mmap,
        {at.value, size, static_cast<uint64_t>(protection), static_cast<uint64_t>(flags), fd, 0});
  }
  Result<std::unique_ptr<Pool>> OpenPool(uint64_t fd) {
    const std::string path = fmt::format("/proc/{}/fd/{}", target_.pid(), fd);
    os::Fd file(open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!file.valid()) return Fail(os::ErrnoError(errno, "cannot open", path));
    return Pool::Make(std::move(file), options_.chunks);
  }

  Target& target_;
  const InstalledAgent::Options& options_;
  AgentPlace place_;
};

}  // namespace

Result<std::unique_ptr<InstalledAgent>> InstalledAgent::Install(Target& target,
                                                                const Options& options) {
  TRY_ASSIGN(const uint32_t tid_offset, LearnTidOffset(target));
  TRY_ASSIGN(std::optional<FoundAgent> left, FindAgent(target));
  if (left && left->tracer_pid != 0) {
    return Fail(Error(ErrorKind::kPermission,
                      fmt::format("process {} is traced already, by stackreel (process {}{})",
                                  target.pid(), left->tracer_pid,
                                  left->tracer_alive ? "" : ", which has ended without detaching"))
                    .WithCure(left->tracer_alive
                                  ? fmt::format("change what it records: stackreel patch -p {} "
                                                "PATTERN\nor end it: stackreel detach -p {}",
                                                target.pid(), target.pid())
                                  : fmt::format("stackreel detach -p {}", target.pid())));
  }
  // Threads can still be on their way out of an agent of another version: it stays as it is.
  std::vector<uint8_t> code(tracedata::kAgentCodeSize);
  const ByteView ours = agent::AgentCode();
  if (left && (left->version != tracedata::kAgentVersion || !target.Read(left->place.code, code) ||
               std::memcmp(code.data(), ours.data(), ours.size()) != 0)) {
    left.reset();
  }
  std::unique_ptr<InstalledAgent> agent(new InstalledAgent());
  Installer installer(target, options);
  TRY_ASSIGN(agent->place_, installer.Reserve(left));
  TRY(installer.SetForkMark());
  TRY_ASSIGN(agent->pool_, installer.MakePool());
  const AgentPlace& place = agent->place_;
  TRY(target.Write(place.code, ours));
  std::memcpy(&agent->routines_, ours.data(), sizeof(agent->routines_));
  AgentControl control;
  control.pid = OwnIds().Of(target.pid(), target.pid());
  control.tracer_pid = static_cast<uint32_t>(getpid());
  control.tid_offset = tid_offset;
  control.kernel_clock = UsesKernelClock() ? 1 : 0;
  control.short_tid_offset = UsesKernelClock() ? tracedata::kNoTidOffset : tid_offset;
  control.fork_mark_set = 1;
  control.on_full = options.on_full;
  control.answers = 1;
  control.follow = options.follow ? 1 : 0;
  control.own_calls = options.own_calls;
  control.await_libraries = options.await_libraries ? 1 : 0;
  control.pool = place.pool().value;
  control.directory = place.directory().value;
  control.slots = place.slots().value;
  TRY(target.Write(place.control(), {reinterpret_cast<const uint8_t*>(&control), sizeof(control)}));
  return agent;
}

Status InstalledAgent::MapPoolPages(Target& target) const {
  TRY_ASSIGN(const Holding holding, Holding::Of(target));
  // An old kernel has none, and the target takes a fault for each page.
  (void)target.SystemCall("madvise", SYS_madvise,
                          {place_.pool().value, pool_->size(), MADV_POPULATE_WRITE});
  return {};
}

Status InstalledAgent::SetRecording(Target& target, bool recording) const {
  return target.WriteObject<uint32_t>(place_.control() + offsetof(AgentControl, recording),
                                      recording ? 1 : 0);
}

Status PublishActions(Target& target, const AgentPlace& agent, ByteView table) {
  uint64_t at = 0;
  if (!table.empty()) {
    // Never unmapped: a thread that is in the agent may be reading the one before.
    TRY_ASSIGN(at, target.SystemCall("mmap", SYS_mmap,
                                     {0, tracedata::RoundUpToPage(table.size()), PROT_READ,
                                      MAP_PRIVATE | MAP_ANONYMOUS, ~uint64_t{0}, 0}));
    TRY(target.Write(Avma(at), table));
  }
  return target.WriteObject<uint64_t>(agent.control() + offsetof(AgentControl, actions), at);
}

}  // namespace stackreel::tracer
