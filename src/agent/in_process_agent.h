// Test code: the agent in the very process that tests it.
#pragma once

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "agent/stub.h"
#include "patch/room.h"
#include "tracedata/action_table.h"
#include "tracedata/agent_memory.h"
#include "tracedata/value_reads.h"
#include "x86/relocate.h"

namespace stackreel::agent {

// An event as written, with times in ticks.
struct Event {
  tracedata::EventKind kind = tracedata::EventKind::kEnd;
  uint32_t function = 0;
  uint64_t time = 0;   // start, or end of kExit and kLeft
  uint64_t third = 0;  // duration, or count
  std::string values = {};
};

inline void CheckInTest(bool holds, const char* what) {
  if (holds) return;
  perror(what);
  abort();
}
inline uint32_t CurrentTid() { return static_cast<uint32_t>(syscall(SYS_gettid)); }

// Where the C library keeps the calling thread's id.
inline uint32_t TidOffset() {
  const auto* thread = static_cast<const uint8_t*>(__builtin_thread_pointer());
  const uint32_t tid = CurrentTid();
  for (uint32_t offset = 0; offset < 2048; offset += 4) {
    if (std::memcmp(thread + offset, &tid, sizeof(tid)) == 0) return offset;
  }
  return tracedata::kNoTidOffset;
}

// Actions by which these are recorded.
inline tracedata::CallActions RecordValues(const std::vector<tracedata::ValueRead>& arguments,
                                           const std::vector<tracedata::ValueRead>& results) {
  tracedata::CallActions actions;
  const tracedata::ValueReads head{.arguments = static_cast<uint16_t>(arguments.size()),
                                   .results = static_cast<uint16_t>(results.size()),
                                   .vectors = 1,
                                   .texts = 1};
  const auto append = [&](const void* bytes, size_t size) {
    const auto* start = static_cast<const uint8_t*>(bytes);
    actions.list.insert(actions.list.end(), start, start + size);
  };
  append(&head, sizeof(head));
  for (const auto& read : arguments) append(&read, sizeof(read));
  for (const auto& read : results) append(&read, sizeof(read));
  return actions;
}

class InProcessAgent {
 public:
  static constexpr uint32_t kChunks = 64;

  explicit InProcessAgent(uint32_t chunks = kChunks,
                          tracedata::OnFull on_full = tracedata::OnFull::kBlock) {
    pool_size_ = tracedata::PoolSize(chunks);
    auto* memory = static_cast<uint8_t*>(mmap(nullptr, tracedata::kAgentSize + pool_size_,
                                              PROT_READ | PROT_WRITE,
                                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    CheckInTest(memory != MAP_FAILED, "mmap");
    memory_ = memory;
    const ByteView code = AgentCode();
    std::memcpy(memory, code.data(), code.size());
    CheckInTest(mprotect(memory, tracedata::kAgentCodeSize, PROT_READ | PROT_EXEC) == 0,
                "mprotect");
    CheckInTest(mmap(memory + tracedata::kAgentSize, pool_size_, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED,
                "mmap of the pool");
    auto* pool_header = new (memory + tracedata::kAgentSize) tracedata::PoolHeader;
    pool_header->chunks = chunks;
    pool_header->ready = chunks;
    auto* start = new (memory + tracedata::kAgentCodeSize) tracedata::AgentControl;
    start->pid = static_cast<uint32_t>(getpid());
    start->tracer_pid = start->pid;
    start->tid_offset = TidOffset();
    start->short_tid_offset = start->tid_offset;
    start->on_full = on_full;
    start->pool = Address(memory + tracedata::kAgentSize);
    std::byte* const directory = reinterpret_cast<std::byte*>(start) + tracedata::kControlSize;
    CheckInTest(madvise(directory, tracedata::kDirectorySize, MADV_WIPEONFORK) == 0, "madvise");
    std::memcpy(directory + tracedata::kForkMarkOffset, &tracedata::kForkMarked,
                sizeof(tracedata::kForkMarked));
    start->fork_mark_set = 1;
    start->recording = 1;
  }
  ~InProcessAgent() {
    for (const Patched& patched : patched_) Write(patched.function, patched.bytes);
    munmap(memory_, tracedata::kAgentSize + pool_size_);
    for (const Room& room : rooms_) munmap(room.memory, kRoomSize);
  }
  InProcessAgent(const InProcessAgent&) = delete;
  InProcessAgent& operator=(const InProcessAgent&) = delete;

  static uint64_t Address(const volatile void* p) { return reinterpret_cast<uint64_t>(p); }
  tracedata::AgentControl& control() {
    return *reinterpret_cast<tracedata::AgentControl*>(memory_ + tracedata::kAgentCodeSize);
  }
  tracedata::ThreadSlot& slot(uint32_t i) {
    return reinterpret_cast<tracedata::ThreadSlot*>(memory_ + tracedata::kAgentCodeSize +
                                                    tracedata::kControlSize +
                                                    tracedata::kDirectorySize)[i];
  }
  // The slot of the calling thread; null if it has none.
  tracedata::ThreadSlot* OwnSlot() {
    for (uint32_t i = 0; i < control().slots_used; ++i) {
      if (slot(i).tid == CurrentTid()) return &slot(i);
    }
    return nullptr;
  }
  // Open calls of the calling thread.
  size_t OpenCalls() {
    const tracedata::ThreadSlot* own = OwnSlot();
    if (own == nullptr) return 0;
    return (own->top - Address(own->calls)) / sizeof(tracedata::OpenCall) - 1;
  }
  tracedata::PoolHeader& pool() {
    return *reinterpret_cast<tracedata::PoolHeader*>(memory_ + tracedata::kAgentSize);
  }
  tracedata::ChunkHeader& chunk(uint32_t i) {
    return *reinterpret_cast<tracedata::ChunkHeader*>(memory_ + tracedata::kAgentSize +
                                                      tracedata::ChunkHeaderOffset(i));
  }
  const tracedata::AgentCodeHeader& routines() const {
    return *reinterpret_cast<const tracedata::AgentCodeHeader*>(memory_);
  }
  uint64_t code() const { return Address(memory_); }

  // A stub for the function, to be called in its place.
  template <typename F>
  F* Stub(StubKind kind, uint32_t id, F* function) {
    return reinterpret_cast<F*>(MakeStubAt(kind, id, Address(reinterpret_cast<void*>(function))));
  }
  template <typename F>
  F* Call(uint32_t id, F* function) {
    return Stub(StubKind::kCall, id, function);
  }
  // Makes the function itself jump to its stub, until the agent goes.
  template <typename F>
  void Patch(StubKind kind, uint32_t id, F* function) {
    const uint64_t at = Address(reinterpret_cast<void*>(function));
    const uint64_t stub = MakeStubAt(kind, id, at);
    const auto jump = x86::Jump(Avma(at), Avma(stub));
    CheckInTest(jump.has_value(), "reach");
    Patched patched{at, {}};
    std::memcpy(patched.bytes.data(), reinterpret_cast<void*>(at), patched.bytes.size());
    patched_.push_back(patched);
    Write(at, *jump);
  }

  // Has functions act from now on, as a tracer does; no thread may be in the agent. None any more
  // with an empty set.
  void Act(const tracedata::ActionSet& set) {
    entering_ = set.empty() ? Entering::kPlain : Entering::kActing;
    for (const Room& room : rooms_) WriteRoomHeader(room.memory);
    if (set.empty()) {
      control().actions = 0;
      return;
    }
    tables_.push_back(tracedata::EncodeActionTable(set));
    control().actions = Address(tables_.back().data());
  }

  // What a thread has written, all of its chunks in order.
  std::vector<Event> Events(uint32_t tid) { return EventsOf(getpid(), tid); }
  std::vector<Event> EventsOf(int pid, uint32_t tid) {
    std::vector<uint32_t> order;
    for (uint32_t i = 0; i < pool().chunks; ++i) {
      const tracedata::ChunkHeader& header = chunk(i);
      if (header.used != 0 && header.tid == tid && header.pid == static_cast<uint32_t>(pid)) {
        order.push_back(i);
      }
    }
    std::ranges::sort(order, {}, [&](uint32_t i) { return chunk(i).sequence; });
    std::vector<Event> events;
    for (const uint32_t i : order) Decode(i, events);
    return events;
  }
  void Decode(uint32_t i, std::vector<Event>& events) {
    const auto* words = reinterpret_cast<const uint32_t*>(memory_ + tracedata::kAgentSize +
                                                          tracedata::ChunkOffset(pool().chunks, i));
    uint64_t base = chunk(i).base;
    const uint32_t count = chunk(i).used / 4;
    for (uint32_t at = 0; at < count;) {
      const auto kind = static_cast<tracedata::EventKind>(tracedata::KindBitsOf(words[at]));
      Event event{kind, tracedata::FunctionOf(words[at]), base + words[at + 1], 0, {}};
      if (kind == tracedata::EventKind::kBase) {
        base = words[at + 1] | uint64_t{words[at + 2]} << 32;
        event.time = base;
      } else if (tracedata::EventWords(kind) == 3) {
        event.third = words[at + 2];
      }
      const uint32_t head = words[at];
      at += tracedata::EventWords(kind);
      if (tracedata::HasValues(head)) {
        const uint32_t bytes = words[at++];
        event.values.assign(reinterpret_cast<const char*>(words + at), bytes);
        at += (bytes + 3) / 4;
      }
      events.push_back(std::move(event));
    }
  }
  // "C3 E5 X5 L7": kinds and functions.
  static std::string Text(const std::vector<Event>& events) {
    constexpr char kLetters[] = "?CEXLlB";
    std::string text;
    for (const Event& event : events) {
      if (!text.empty()) text += ' ';
      text += kLetters[static_cast<uint8_t>(event.kind)];
      text += std::to_string(event.function);
    }
    return text;
  }
  // As a consumer does: makes full chunks free. Returns how many.
  uint32_t FreeFull() {
    uint32_t freed = 0;
    for (uint32_t i = 0; i < pool().chunks; ++i) {
      if (chunk(i).state != static_cast<uint32_t>(tracedata::ChunkState::kFull)) continue;
      chunk(i).used = 0;
      chunk(i).state = static_cast<uint32_t>(tracedata::ChunkState::kFree);
      ++freed;
    }
    if (freed != 0) TellFreed();
    return freed;
  }
  void TellFreed() {
    ++pool().freed;
    if (pool().waiting != 0) {
      syscall(SYS_futex, &pool().freed, 1 /* FUTEX_WAKE */, INT32_MAX, nullptr, nullptr, 0);
    }
  }

 private:
  static constexpr uint64_t kRoomSize = 64 << 10;
  struct Room {
    uint8_t* memory;
    uint64_t used;
  };
  struct Patched {
    uint64_t function;
    std::array<uint8_t, x86::kJumpLength> bytes;
  };

  static void Write(uint64_t at, std::span<const uint8_t> bytes) {
    const uint64_t page = at & ~uint64_t{4095};
    const uint64_t length = at + bytes.size() - page;
    CheckInTest(
        mprotect(reinterpret_cast<void*>(page), length, PROT_READ | PROT_WRITE | PROT_EXEC) == 0,
        "mprotect of code");
    std::memcpy(reinterpret_cast<void*>(at), bytes.data(), bytes.size());
    CheckInTest(mprotect(reinterpret_cast<void*>(page), length, PROT_READ | PROT_EXEC) == 0,
                "mprotect of code");
  }

  void WriteRoomHeader(void* room) {
    const auto header = MakeRoomHeader(Avma(Address(memory_)), entering_);
    std::memcpy(room, header.data(), header.size());
  }

  Room& RoomNear(uint64_t function) {
    for (Room& room : rooms_) {
      const int64_t distance = static_cast<int64_t>(Address(room.memory) - function);
      if (std::abs(distance) < (int64_t{1} << 30) && room.used + kMaxStubLength <= kRoomSize) {
        return room;
      }
    }
    for (uint64_t distance = 1 << 26; distance < uint64_t{1} << 30; distance += 1 << 22) {
      void* const hint = reinterpret_cast<void*>((function - distance) & ~uint64_t{4095});
      void* const at = mmap(hint, kRoomSize, PROT_READ | PROT_WRITE | PROT_EXEC,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
      if (at == MAP_FAILED) continue;
      WriteRoomHeader(at);
      rooms_.push_back({static_cast<uint8_t*>(at), kRoomHeaderSize});
      return rooms_.back();
    }
    CheckInTest(false, "room near a function");
    abort();
  }

  uint64_t MakeStubAt(StubKind kind, uint32_t id, uint64_t function) {
    Room& room = RoomNear(function);
    uint8_t* const at = room.memory + room.used;
    patch::Site site;
    site.function = id;
    site.address = Avma(function);
    site.stub = Avma(Address(at));
    site.out_of_line = site.stub + StubHeadLength(kind);
    const ByteView original(reinterpret_cast<const uint8_t*>(function), 32);
    const auto copy = x86::Relocate(original, site.address, site.out_of_line, x86::kJumpLength);
    CheckInTest(copy.has_value(), "relocation");
    site.map = copy->map;
    const auto stub =
        MakeStub(kind, Avma(Address(room.memory)), site, copy->view(), copy->falls_through);
    CheckInTest(stub.has_value(), "stub");
    std::memcpy(at, stub->data(), stub->size());
    room.used += (stub->size() + 15) & ~size_t{15};
    return site.stub.value;
  }

  uint8_t* memory_ = nullptr;
  uint64_t pool_size_ = 0;
  std::vector<Room> rooms_;
  std::vector<Patched> patched_;
  Entering entering_ = Entering::kPlain;
  std::vector<std::vector<uint8_t>> tables_;  // a thread may be reading an old one
};

}  // namespace stackreel::agent
