#include "tracer/chunk_collector.h"

#include <errno.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <set>
#include <string>

#include "os/own_ids.h"
#include "os/proc.h"
#include "tracedata/call_event.h"
#include "tracer/trace_clock.h"

namespace stackreel::tracer {

namespace {

using tracedata::ChunkHeader;
using tracedata::ChunkState;
using tracedata::EventKind;
using tracedata::LossReason;

// How long a look at the chunks may wait, where nobody says that one is full: long enough to cost
// nothing, short enough for Ctrl-C.
constexpr int kPauseMs = 50;
// The same where chunks are few because forked children own them, and somebody may wait for one;
// and where threads may not wake us.
constexpr int kShortPauseMs = 5;
// How much longer than a look at which processes there are, it is to the next.
constexpr int kListShare = 4;

std::string ReadComm(uint32_t pid, uint32_t tid) {
  const auto status = os::ReadProcStatus(pid, tid);
  return status ? status->comm : "";
}

// Whether there is a process that /proc does not show (hidepid).
bool IsHidden(uint32_t pid) {
  const bool is_there = kill(static_cast<pid_t>(pid), 0) == 0 || errno != ESRCH;
  return is_there && access(fmt::format("/proc/{}", pid).c_str(), F_OK) != 0;
}

uint32_t WordAt(ByteView words, size_t i) {
  return LoadUnaligned<uint32_t>(&words[i * sizeof(uint32_t)], Endian::kLittle);
}
// Calls each(kind, words before the event), for whole events.
template <typename Each>
void ForEachEvent(ByteView bytes, Each each) {
  const size_t words = bytes.size() / sizeof(uint32_t);
  for (size_t i = 0; i < words;) {
    const uint32_t head = WordAt(bytes, i);
    const uint8_t bits = tracedata::KindBitsOf(head);
    if (bits >= tracedata::kEventKinds) break;
    const auto kind = static_cast<EventKind>(bits);
    size_t length = tracedata::EventWords(kind);
    if (kind == EventKind::kEnd || i + length > words) break;
    each(kind, i);
    if (tracedata::HasValues(head) && i + length < words) {
      length += 1 + ((WordAt(bytes, i + length) + 3) / sizeof(uint32_t));
    }
    i += length;
  }
}

CollectedCounts CountsOf(ByteView bytes) {
  CollectedCounts counts;
  counts.bytes = bytes.size();
  ForEachEvent(bytes, [&](EventKind kind, size_t i) {
    const bool ends = kind == EventKind::kExit || kind == EventKind::kLeft;
    counts.calls += kind == EventKind::kCall || ends ? 1 : 0;
    counts.entries += kind == EventKind::kEntry ? 1 : 0;
    if (kind != EventKind::kLost) return;
    const uint32_t reason = tracedata::FunctionOf(WordAt(bytes, i));
    if (reason < tracedata::kLossReasons) counts.lost[reason] += WordAt(bytes, i + 2);
  });
  return counts;
}

}  // namespace

CollectedCounts& CollectedCounts::operator+=(const CollectedCounts& other) {
  chunks += other.chunks;
  bytes += other.bytes;
  calls += other.calls;
  entries += other.entries;
  for (size_t i = 0; i < lost.size(); ++i) lost[i] += other.lost[i];
  unwritten += other.unwritten;
  threads += other.threads;
  return *this;
}

ChunkCollector::ChunkCollector(Pool& pool, TraceOutput& output, uint32_t pid)
    : pool_(pool), output_(output), pid_(pid), asked_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
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
  uint32_t asked = 0;
  while (!ends_) {
    if (const uint32_t now = pool_.header().asked; now != asked) {
      asked = now;
      const uint64_t one = 1;
      (void)!write(asked_fd_.get(), &one, sizeof(one));
    }
    bool any = false;
    Status taken = TakeFull(&any);
    const bool is_short = ChildrenHoldMany();
    if (Status ended = is_short ? TakeOfEnded() : Status(); taken) taken = std::move(ended);
    if (Status executed = TakeOfExecuted(); taken) taken = std::move(executed);
    ExtendWhereOwned();
    if (!taken) {
      const std::scoped_lock lock(mutex_);
      if (status_) status_ = std::move(taken);
    }
    const bool is_unwoken = pool_.header().unwoken != 0;
    if (!any) pool_.AwaitFull(is_short || is_unwoken ? kShortPauseMs : kPauseMs, asked);
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
  const std::scoped_lock taking(untold_mutex_);
  CollectedCounts counts = CountOwned();
  const std::scoped_lock lock(mutex_);
  counts += counts_;
  return counts;
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
    if (Status taken = Take(i, /*is_last=*/false); !taken && result) result = std::move(taken);
  }
  return result;
}

bool ChunkCollector::ChildrenHoldMany() const {
  uint32_t used = 0, theirs = 0;
  for (uint32_t i = 0; i < pool_.chunks(); ++i) {
    const ChunkHeader& header = pool_.chunk(i);
    const uint32_t state = header.state.load(std::memory_order_acquire);
    used += state != static_cast<uint32_t>(ChunkState::kFree) ? 1 : 0;
    theirs += state == static_cast<uint32_t>(ChunkState::kOwned) && header.pid != pid_ ? 1 : 0;
  }
  return theirs != 0 && 2 * used >= pool_.chunks();
}

// Each thread that has ever called owns a chunk, and who calls rarely keeps it for long: of those
// that are not owned there are as many for the others to fill.
void ChunkCollector::ExtendWhereOwned() const {
  uint32_t owned = 0;
  for (uint32_t i = 0; i < pool_.chunks(); ++i) {
    owned += pool_.chunk(i).state.load(std::memory_order_relaxed) ==
                     static_cast<uint32_t>(ChunkState::kOwned)
                 ? 1
                 : 0;
  }
  pool_.Extend(2 * owned);
}

// A process that ends leaves a chunk of each of its threads behind that nobody will fill. Who owned
// one before a look, and is not there at it, has ended. (An id may be another's by now: its chunks
// are taken when that has ended too.)
Status ChunkCollector::TakeOfEnded() {
  const auto begin = std::chrono::steady_clock::now();
  if (begin < next_look_) return {};
  std::vector<std::pair<uint32_t, uint32_t>> owned;  // chunk, pid
  for (uint32_t i = 0; i < pool_.chunks(); ++i) {
    const ChunkHeader& header = pool_.chunk(i);
    const uint32_t state = header.state.load(std::memory_order_acquire);
    // Whoever has just taken one says a moment later who that is.
    if (state != static_cast<uint32_t>(ChunkState::kOwned) || header.pid == 0) continue;
    if (header.pid != pid_) owned.emplace_back(i, header.pid);
  }
  const std::set<uint32_t> there = os::OwnIdsOfProcesses();
  Status result;
  for (const auto& [i, pid] : owned) {
    if (there.contains(pid) || IsHidden(pid)) continue;
    if (Status taken = Take(i, /*is_last=*/true); !taken && result) result = std::move(taken);
  }
  const auto end = std::chrono::steady_clock::now();
  next_look_ = end + kListShare * (end - begin);
  return result;
}

void ChunkCollector::TakeExecuted(uint32_t pid) {
  constexpr std::chrono::milliseconds kPatience{1000};
  std::unique_lock lock(mutex_);
  executed_.insert(pid);
  pool_.WakeCollector();
  taken_.wait_for(lock, kPatience, [this] { return executed_.empty(); });
}

// On the thread that takes all others, so that none is taken twice.
Status ChunkCollector::TakeOfExecuted() {
  std::set<uint32_t> executed;
  {
    const std::scoped_lock lock(mutex_);
    executed = executed_;
  }
  Status result;
  for (const uint32_t pid : executed) {
    for (uint32_t i = 0; i < pool_.chunks(); ++i) {
      const ChunkHeader& header = pool_.chunk(i);
      const uint32_t state = header.state.load(std::memory_order_acquire);
      if (state == static_cast<uint32_t>(ChunkState::kFree) || header.pid != pid) continue;
      if (Status taken = Take(i, /*is_last=*/true); !taken && result) result = std::move(taken);
    }
    const std::scoped_lock lock(untold_mutex_);
    if (Status noted = NoteProcess(pid, /*fork_generation=*/0, NowTicks()); !noted && result) {
      result = std::move(noted);
    }
  }
  const std::scoped_lock lock(mutex_);
  for (const uint32_t pid : executed) executed_.erase(pid);
  taken_.notify_all();
  return result;
}

Status ChunkCollector::NoteUntold(const std::function<Result<UntoldCalls>()>& read) {
  // A chunk that is full tells of no call that is open still: so what is read now is not told of by
  // chunks that were taken.
  const std::scoped_lock lock(untold_mutex_);
  TRY_ASSIGN(untold_, read());
  for (const auto& [key, calls] : untold_) {
    if (std::string& comm = comms_[key]; comm.empty()) comm = ReadComm(key.first, key.second);
  }
  return {};
}

Status ChunkCollector::TakeOwned(UntoldCalls untold, bool all) {
  {
    const std::scoped_lock lock(untold_mutex_);
    if (all) untold_.clear();
    for (auto& [key, calls] : untold) untold_[key] = std::move(calls);
  }
  Status result;
  for (uint32_t i = 0; i < pool_.chunks(); ++i) {
    const auto state =
        static_cast<ChunkState>(pool_.chunk(i).state.load(std::memory_order_acquire));
    if (state == ChunkState::kFree) continue;
    Status taken = Take(i, /*is_last=*/state == ChunkState::kOwned);
    if (!taken && result) result = std::move(taken);
  }
  Status written = WriteUntoldRest();
  return result ? std::move(written) : std::move(result);
}

// Takes out of what was noted which calls these events tell of. `base` becomes what times behind
// them count from.
void ChunkCollector::ForgetTold(ThreadKey key, uint64_t& base, ByteView words) {
  const auto noted = untold_.find(key);
  const bool any = noted != untold_.end() && !noted->second.empty();
  uint64_t newest = 0;
  if (any) newest = std::ranges::max(noted->second, {}, &UntoldCall::start).start;
  bool is_certain = true;
  ForEachEvent(words, [&](EventKind kind, size_t i) {
    if (kind == EventKind::kBase) {
      base = WordAt(words, i + 1) | uint64_t{WordAt(words, i + 2)} << 32;
    } else if (kind == EventKind::kLost && tracedata::FunctionOf(WordAt(words, i)) ==
                                               static_cast<uint32_t>(LossReason::kNoSpace)) {
      is_certain = false;
    }
    if (!any || (kind != EventKind::kCall && kind != EventKind::kEntry)) return;
    const uint64_t start = base + WordAt(words, i + 1);
    if (start > newest) return;
    std::erase(noted->second,
               UntoldCall{.start = start, .function = tracedata::FunctionOf(WordAt(words, i))});
  });
  // The end of one may be among what was lost.
  if (any && !is_certain) noted->second.clear();
}

void ChunkCollector::AppendEntries(ThreadKey key, uint64_t base, std::vector<uint8_t>& words) {
  const auto noted = untold_.find(key);
  if (noted == untold_.end()) return;
  const auto put = [&words](std::initializer_list<uint32_t> event) {
    for (const uint32_t word : event) {
      const auto* bytes = reinterpret_cast<const uint8_t*>(&word);
      words.insert(words.end(), bytes, bytes + sizeof(word));
    }
  };
  for (const UntoldCall& call : noted->second) {
    const uint64_t start = std::max(call.start, base);
    if (start - base > UINT32_MAX) {
      put({tracedata::EventHead(EventKind::kBase, 0), static_cast<uint32_t>(start),
           static_cast<uint32_t>(start >> 32)});
      base = start;
    }
    put({tracedata::EventHead(EventKind::kEntry, call.function),
         static_cast<uint32_t>(start - base)});
  }
  untold_.erase(noted);
}

// Of threads that own no chunk: their chunks have told of all that began before.
Status ChunkCollector::WriteUntoldRest() {
  while (!untold_.empty()) {
    const auto [key, calls] = *untold_.begin();
    if (calls.empty()) {
      untold_.erase(key);
      continue;
    }
    ChunkHeader header;
    header.pid = key.first;
    header.tid = key.second;
    header.base = calls.front().start;
    if (const auto known = threads_.find(key); known != threads_.end()) {
      header.sequence = known->second.next_sequence;
    }
    std::vector<uint8_t> words;
    AppendEntries(key, header.base, words);
    TRY(Write(header, words));
  }
  return {};
}

Status ChunkCollector::Take(uint32_t i, bool is_last) {
  const std::scoped_lock lock(untold_mutex_);
  ChunkHeader& header = pool_.chunk(i);
  const uint32_t used =
      std::min(header.used.load(std::memory_order_acquire) & ~uint32_t{3}, tracedata::kChunkSize);
  Status written;
  ByteView words = pool_.words(i).first(used);
  uint64_t base = header.base;
  const ThreadKey key(header.pid, header.tid);
  if (used != 0) ForgetTold(key, base, words);
  std::vector<uint8_t> all;
  if (used != 0 && is_last) {
    all.assign(words.begin(), words.end());
    AppendEntries(key, base, all);
    words = all;
  }
  if (used != 0) written = Write(header, words);
  header.used.store(0, std::memory_order_relaxed);
  header.pid = 0;  // it is nobody's
  header.state.store(static_cast<uint32_t>(ChunkState::kFree), std::memory_order_release);
  pool_.NoteFreed();
  return written;
}

std::string ChunkCollector::CommOf(ThreadKey key) const {
  std::string comm = ReadComm(key.first, key.second);
  if (const auto known = comms_.find(key); comm.empty() && known != comms_.end()) {
    comm = known->second;
  }
  return comm;
}

Status ChunkCollector::Write(const ChunkHeader& header, ByteView words) {
  Status written = AddToOutput(header, words);
  Count(words, written.has_value());
  return written;
}

Status ChunkCollector::AddToOutput(const ChunkHeader& header, ByteView words) {
  TRY(NoteProcess(header.pid, header.fork_generation, header.base));
  TRY_ASSIGN(const uint32_t thread, ThreadIndex(header));
  return output_.Add(tracedata::TraceChunk{
      .thread = thread, .sequence = header.sequence, .base = header.base, .words = words});
}

Status ChunkCollector::NoteProcess(uint32_t pid, uint32_t fork_generation, uint64_t ticks) {
  const auto [at, is_new] = processes_.emplace(pid, fork_generation);
  if (!is_new) return {};
  const auto status = os::ReadProcStatus(pid, pid);
  return output_.Add(tracedata::ProcessFork{
      .ticks = ticks, .pid = pid, .parent_pid = status ? status->ppid : pid_});
}

Result<uint32_t> ChunkCollector::ThreadIndex(const ChunkHeader& header) {
  const auto [at, is_new] = threads_.emplace(std::pair(header.pid, header.tid), ThreadState());
  // A thread's first chunk has number 0; another thread with that id begins anew. Chunks lie in any
  // order, so that the first can be found after its second.
  const bool is_first = header.sequence == 0;
  const bool is_another = is_new || (is_first && at->second.has_first);
  at->second.has_first = is_first || (at->second.has_first && !is_another);
  if (is_another) {
    at->second.index = output_.NextThread();
    TRY(output_.Add(tracedata::TraceThread{.index = at->second.index,
                                           .pid = header.pid,
                                           .tid = header.tid,
                                           .comm = CommOf({header.pid, header.tid})}));
    const std::scoped_lock lock(mutex_);
    ++counts_.threads;
  }
  at->second.next_sequence = std::max(at->second.next_sequence, header.sequence + 1);
  return at->second.index;
}

void ChunkCollector::Count(ByteView bytes, bool written) {
  CollectedCounts here = CountsOf(bytes);
  here.chunks = 1;
  if (!written) {
    here.unwritten = here.calls;
    here.calls = here.entries = here.bytes = here.chunks = 0;
  }
  const std::scoped_lock lock(mutex_);
  counts_ += here;
}

// No chunk is taken meanwhile, or its events would be counted twice. Threads go on writing behind
// what is read here.
CollectedCounts ChunkCollector::CountOwned() const {
  CollectedCounts owned;
  std::set<ThreadKey> threads;
  for (uint32_t i = 0; i < pool_.chunks(); ++i) {
    const ChunkHeader& header = pool_.chunk(i);
    const uint32_t state = header.state.load(std::memory_order_acquire);
    if (state == static_cast<uint32_t>(ChunkState::kFree)) continue;
    const uint32_t used =
        std::min(header.used.load(std::memory_order_acquire) & ~uint32_t{3}, tracedata::kChunkSize);
    if (used == 0) continue;
    owned += CountsOf(pool_.words(i).first(used));
    const ThreadKey key(header.pid, header.tid);
    if (!threads_.contains(key)) threads.insert(key);
  }
  owned.threads = threads.size();
  return owned;
}

}  // namespace stackreel::tracer
