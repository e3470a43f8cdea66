#include "tracer/chunk_collector.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "os/proc.h"
#include "tracedata/call_event.h"

namespace stackreel::tracer {

namespace {

using tracedata::ChunkHeader;
using tracedata::ChunkState;
using tracedata::EventKind;

// How long a look at the chunks may wait, where nobody says that one is full: long enough to cost
// nothing, short enough for Ctrl-C.
constexpr int kPauseMs = 50;

std::string CommOf(uint32_t pid, uint32_t tid) {
  const auto status = os::ReadProcStatus(pid, tid);
  return status ? status->comm : "";
}

}  // namespace

ChunkCollector::ChunkCollector(Pool& pool, TraceOutput& output, uint32_t pid)
    : pool_(pool),
      output_(output),
      pid_(pid),
      libraries_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  processes_.emplace(pid, 0);
}

ChunkCollector::~ChunkCollector() { (void)Stop(); }

void ChunkCollector::Start() {
  ends_ = false;
  thread_ = std::jthread([this] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    Work();
  });
}

void ChunkCollector::Work() {
  uint32_t libraries = 0;
  while (!ends_) {
    if (const uint32_t now = pool_.header().libraries_changed; now != libraries) {
      libraries = now;
      const uint64_t one = 1;
      (void)!write(libraries_fd_.get(), &one, sizeof(one));
    }
    bool any = false;
    if (Status taken = TakeFull(&any); !taken) {
      const std::scoped_lock lock(mutex_);
      if (status_) status_ = std::move(taken);
    }
    if (!any) pool_.AwaitFull(kPauseMs, libraries);
  }
}

Status ChunkCollector::Stop() {
  if (!thread_.joinable()) return status();
  ends_ = true;
  thread_.join();
  bool any = true;
  while (any) TRY(TakeFull(&any));
  return status();
}

CollectedCounts ChunkCollector::counts() const {
  const std::scoped_lock lock(mutex_);
  return counts_;
}

Status ChunkCollector::status() const {
  const std::scoped_lock lock(mutex_);
  return status_;
}

Status ChunkCollector::TakeFull(bool* any) {
  *any = false;
  Status result;
  for (uint32_t i = 0; i < pool_.chunks(); ++i) {
    if (pool_.chunk(i).state.load(std::memory_order_acquire) !=
        static_cast<uint32_t>(ChunkState::kFull)) {
      continue;
    }
    *any = true;
    // A disk that is full must not hold the program up: the chunk is given back in any case.
    if (Status taken = Take(i, {}); !taken && result) result = std::move(taken);
  }
  return result;
}

Status ChunkCollector::TakeOwned(uint32_t pid, const OpenCalls& open) {
  Status result;
  for (uint32_t i = 0; i < pool_.chunks(); ++i) {
    const ChunkHeader& header = pool_.chunk(i);
    const auto state = static_cast<ChunkState>(header.state.load(std::memory_order_acquire));
    if (state == ChunkState::kFree || (pid != 0 && header.pid != pid)) continue;
    const auto more = open.find({header.pid, header.tid});
    Status taken =
        Take(i, state == ChunkState::kOwned && more != open.end() ? more->second
                                                                  : std::vector<uint32_t>());
    if (!taken && result) result = std::move(taken);
  }
  return result;
}

Status ChunkCollector::Take(uint32_t i, const std::vector<uint32_t>& more) {
  ChunkHeader& header = pool_.chunk(i);
  const uint32_t used =
      std::min(header.used.load(std::memory_order_acquire) & ~uint32_t{3}, tracedata::kChunkSize);
  Status written;
  if (used != 0 || !more.empty()) {
    const ByteView words = pool_.words(i).first(used);
    if (more.empty()) {
      written = Write(header, words);
    } else {
      std::vector<uint8_t> all(words.begin(), words.end());
      const auto* first = reinterpret_cast<const uint8_t*>(more.data());
      all.insert(all.end(), first, first + (more.size() * sizeof(uint32_t)));
      written = Write(header, all);
    }
  }
  header.used.store(0, std::memory_order_relaxed);
  header.state.store(static_cast<uint32_t>(ChunkState::kFree), std::memory_order_release);
  pool_.NoteFreed();
  return written;
}

Status ChunkCollector::Write(const ChunkHeader& header, ByteView words) {
  TRY(NoteProcess(header));
  TRY_ASSIGN(const uint32_t thread, ThreadIndex(header));
  Count(words);
  return output_.Add(tracedata::TraceChunk{
      .thread = thread, .sequence = header.sequence, .base = header.base, .words = words});
}

Status ChunkCollector::NoteProcess(const ChunkHeader& header) {
  const auto [at, is_new] = processes_.emplace(header.pid, header.fork_generation);
  if (!is_new) return {};
  const auto status = os::ReadProcStatus(header.pid, header.pid);
  return output_.Add(tracedata::ProcessFork{
      .ticks = header.base, .pid = header.pid, .parent_pid = status ? status->ppid : pid_});
}

Result<uint32_t> ChunkCollector::ThreadIndex(const ChunkHeader& header) {
  const auto [at, is_new] = threads_.emplace(std::pair(header.pid, header.tid), ThreadState());
  // A thread's first chunk has number 0; another thread with that id begins anew. Chunks lie in any
  // order, so that the first can be found after its second.
  const bool is_first = header.sequence == 0;
  const bool is_another = is_new || (is_first && at->second.has_first);
  at->second.has_first = is_first || (at->second.has_first && !is_another);
  if (is_another) {
    at->second.index = next_index_++;
    TRY(output_.Add(tracedata::TraceThread{.index = at->second.index,
                                           .pid = header.pid,
                                           .tid = header.tid,
                                           .comm = CommOf(header.pid, header.tid)}));
    const std::scoped_lock lock(mutex_);
    ++counts_.threads;
  }
  return at->second.index;
}

void ChunkCollector::Count(ByteView bytes) {
  CollectedCounts here;
  const auto word = [&bytes](size_t i) {
    return LoadUnaligned<uint32_t>(&bytes[i * sizeof(uint32_t)], Endian::kLittle);
  };
  const size_t words = bytes.size() / sizeof(uint32_t);
  for (size_t i = 0; i < words;) {
    const uint32_t head = word(i);
    const uint8_t bits = tracedata::KindBitsOf(head);
    if (bits >= tracedata::kEventKinds) break;
    const auto kind = static_cast<EventKind>(bits);
    size_t length = tracedata::EventWords(kind);
    if (kind == EventKind::kEnd || i + length > words) break;
    const bool ends = kind == EventKind::kExit || kind == EventKind::kLeft;
    here.calls += kind == EventKind::kCall || ends ? 1 : 0;
    here.entries += kind == EventKind::kEntry ? 1 : 0;
    if (kind == EventKind::kLost) {
      const uint32_t reason = tracedata::FunctionOf(head);
      if (reason < tracedata::kLossReasons) here.lost[reason] += word(i + 2);
    }
    if (tracedata::HasValues(head) && i + length < words) {
      length += 1 + ((word(i + length) + 3) / sizeof(uint32_t));
    }
    i += length;
  }
  const std::scoped_lock lock(mutex_);
  ++counts_.chunks;
  counts_.bytes += bytes.size();
  counts_.calls += here.calls;
  counts_.entries += here.entries;
  for (size_t i = 0; i < counts_.lost.size(); ++i) counts_.lost[i] += here.lost[i];
}

}  // namespace stackreel::tracer
