// What the dynamic linker has loaded or unloaded is told to the tracer, which patches it.
#include "agent/inside/agent.h"
#include "agent/inside/system_call.h"

namespace stackreel::agent {
namespace {

constexpr uint64_t kOneWait = 100'000'000;            // nanoseconds
constexpr uint64_t kPatience = 1'000'000'000;         // with a tracer that takes no notice
constexpr uint64_t kPatienceAtWork = 10'000'000'000;  // with one that has

// struct r_debug of <link.h>; behind it, from version 2 on, the one of the next namespace.
struct LinkerState {
  int32_t version;
  uint64_t map;
  uint64_t function;
  int32_t state;  // 0: RT_CONSISTENT
  uint64_t base;
  const LinkerState* next;
};
static_assert(sizeof(LinkerState) == 48);

// Whether no namespace is in the midst of a change: the end of it will be told, too.
bool IsConsistent(const LinkerState* linker) {
  constexpr int kMostNamespaces = 64;
  constexpr int32_t kHasNext = 2;
  for (int i = 0; i < kMostNamespaces && linker != nullptr; ++i) {
    if (linker->state != 0) return false;
    if (linker->version < kHasNext) break;
    linker = linker->next;
  }
  return true;
}

bool IsReached(const std::atomic<uint32_t>& count, uint32_t wanted) {
  return static_cast<int32_t>(count.load(std::memory_order_acquire) - wanted) >= 0;
}

void AwaitTracer(uint32_t change) {
  PoolHeader& pool = Pool();
  auto& late = agent_control.libraries_late_at;
  const uint64_t since = Nanoseconds();
  while (!IsReached(pool.libraries_done, change)) {
    const uint32_t done = pool.libraries_done.load(std::memory_order_acquire);
    if (IsReached(pool.libraries_done, change)) return;
    if (agent_control.await_libraries.load() == 0 || late.load() == done + 1) return;
    const bool is_seen = IsReached(pool.libraries_seen, change);
    if (Nanoseconds() - since > (is_seen ? kPatienceAtWork : kPatience)) {
      late.store(done + 1);
      return;
    }
    const __kernel_timespec timeout = {0, static_cast<long long>(kOneWait)};
    SystemCall(__NR_futex, AddressOf(&pool.libraries_done), kFutexWait, done, AddressOf(&timeout));
  }
}

}  // namespace

// Nothing of the thread's slot is touched: signal handlers that come meanwhile are recorded.
extern "C" void agent_libraries_changed(uint64_t) {
  const uint64_t linker = agent_control.debug_state.load(std::memory_order_acquire);
  if (linker == 0 || agent_control.tracer_pid == 0) return;
  // A child's libraries are its own, and nobody patches them.
  (void)FindSlot();
  if (agent_control.fork_generation != 0) return;
  if (!IsConsistent(reinterpret_cast<const LinkerState*>(linker))) return;
  PoolHeader& pool = Pool();
  const uint32_t change = pool.libraries_changed.fetch_add(1) + 1;
  pool.filled.fetch_add(1);
  if (pool.tracer_waits.load() != 0) {
    SystemCall(__NR_futex, AddressOf(&pool.filled), kFutexWake, 1);
  }
  if (agent_control.await_libraries.load() != 0) AwaitTracer(change);
}

}  // namespace stackreel::agent
