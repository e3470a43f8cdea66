// What the tracer is to see to before the program goes on: libraries that were loaded, open calls
// of a program that ends, and what it sets up that tracing could be fatal under.
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <signal.h>

#include "agent/inside/agent.h"
#include "agent/inside/system_call.h"

namespace stackreel::agent {
namespace {

using tracedata::OwnCalls;
using tracedata::Setter;

// Nanoseconds.
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

// Asks the tracer to look at this process; the number of the request.
uint32_t Ask() {
  PoolHeader& pool = Pool();
  const uint32_t request = pool.asked.fetch_add(1) + 1;
  pool.filled.fetch_add(1);
  WakeTracer();
  return request;
}

void AwaitAnswer(uint32_t request) {
  PoolHeader& pool = Pool();
  auto& unanswered_at = agent_control.unanswered_at;
  WaitingTime waiting;
  while (true) {
    const uint32_t answered = pool.answered.load(std::memory_order_acquire);
    if (IsReached(pool.answered, request)) return;
    if (agent_control.answers.load() == 0 || unanswered_at.load() == answered + 1) return;
    const bool is_seen = IsReached(pool.seen, request);
    if (waiting.IsOver(is_seen ? kPatienceAtWork : kPatience)) {
      unanswered_at.store(answered + 1);
      return;
    }
    Await(pool.answered, answered);
  }
}

// A child's libraries and calls are its own, and nobody looks at them. (Where the kernel may not be
// asked, a child of vfork, whose memory is its parent's, waits for an answer of no use to it.)
bool IsLookedAt() {
  return agent_control.tracer_pid != 0 && agent_control.answers.load() != 0 &&
         agent_control.fork_generation == 0 && (!MayCall() || Getpid() == agent_control.pid);
}

// The calling process, if it is a child of the one that is traced; 0: it is not, or that is not to
// be learnt (of a child of vfork, where the kernel may not be asked).
uint32_t OwnPidOfChild() {
  if (!MayCall()) return agent_control.fork_generation != 0 ? agent_control.pid : 0;
  const uint32_t pid = Getpid();
  return agent_control.fork_generation != 0 || pid != agent_control.pid ? pid : 0;
}

// Once for each child, however many files it tries until one can be executed.
void CountExecuting(uint32_t child) {
  if (agent_control.counted_child.exchange(child) != child) Pool().executed_children.fetch_add(1);
}
// It ends without: none could be.
void CountNoMore(uint32_t child) {
  if (agent_control.counted_child.compare_exchange_strong(child, 0)) {
    Pool().executed_children.fetch_sub(1);
  }
}

// This thread's open calls. (A child of vfork tells of its parent's, which does no harm.)
void TellOwnCalls(uint64_t place) {
  ThreadSlot* slot = FindSlot();
  if (slot == nullptr || !Seize(*slot, place, AddressOf(__builtin_frame_address(0)))) return;
  TellOpen(*slot, Ticks());
  Release(*slot);
}
// A system call that the program is about to make, as far as is looked at it.
struct Setting {
  uint64_t call = 0;
  uint64_t first = 0;
  uint64_t second = 0;
  uint64_t third = 0;
  uint64_t mask_offset = 0;  // where a struct sigaction has its mask
};

// Of a C library (glibc's and musl's alike), and the kernel's.
constexpr uint64_t kLibraryMaskOffset = 8;
constexpr uint64_t kKernelMaskOffset = 24;

Setting SettingOf(Setter setter, const SavedRegisters& registers) {
  switch (setter) {
    case Setter::kPrctl:
      return {.call = __NR_prctl,
              .first = registers.rdi,
              .second = registers.rsi,
              .third = registers.rdx};
    case Setter::kSyscall:
      return {.call = registers.rdi,
              .first = registers.rsi,
              .second = registers.rdx,
              .third = registers.rcx,
              .mask_offset = kKernelMaskOffset};
    case Setter::kSigaction:
      return {.call = __NR_rt_sigaction,
              .first = registers.rdi,
              .second = registers.rsi,
              .mask_offset = kLibraryMaskOffset};
    case Setter::kSigmask:
      return {.call = __NR_rt_sigprocmask, .first = registers.rdi, .second = registers.rsi};
  }
  return {};
}

// What is left to the agent when this has been done. Without a filter only whether there could be
// one is asked.
OwnCalls CallsLeftBy(const Setting& setting) {
  const bool by_prctl = setting.call == __NR_prctl && setting.first == PR_SET_SECCOMP;
  if (!by_prctl && setting.call != __NR_seccomp) return OwnCalls::kAny;
  const bool is_strict =
      by_prctl ? setting.second == SECCOMP_MODE_STRICT : setting.first == SECCOMP_SET_MODE_STRICT;
  if (is_strict) return OwnCalls::kNone;
  const bool is_filter =
      by_prctl ? setting.second == SECCOMP_MODE_FILTER : setting.first == SECCOMP_SET_MODE_FILTER;
  return is_filter && setting.third != 0 ? OwnCalls::kFew : OwnCalls::kAny;
}

// Whether the signal of traps is in the set there. What cannot be read the kernel will not take.
bool HasTrapSignal(uint64_t set) {
  ReadablePages pages;
  if (!pages.Contains(set) || !pages.Contains(set + sizeof(uint64_t) - 1)) return false;
  return (WordAt(set) & uint64_t{1} << (SIGTRAP - 1)) != 0;
}

bool EndsTraps(const Setting& setting) {
  if (setting.second == 0) return false;
  if (setting.call == __NR_rt_sigaction) {
    return setting.first == SIGTRAP || HasTrapSignal(setting.second + setting.mask_offset);
  }
  return setting.call == __NR_rt_sigprocmask && setting.first != SIG_UNBLOCK &&
         HasTrapSignal(setting.second);
}

// The program is about to leave the agent no more than this. What takes system calls is done now:
// a slot is taken, and the tracer woken. A filter might be fatal at the return of a trap's handler,
// too.
void LimitTo(OwnCalls left) {
  (void)FindOrTakeSlot();  // a child notes that it is one
  if (agent_control.own_calls.load() >= left) return;
  agent_control.no_text_reads.store(1);
  if (agent_control.trap_table.load() != 0) agent_control.traps_unsafe.store(1);
  const bool asks = IsLookedAt();
  const uint32_t request = asks ? Ask() : 0;
  if (left == OwnCalls::kNone) {
    // The kernel lets nobody read the time stamp counter then: time stands still.
    agent_control.last_ticks.store(Ticks());
    __atomic_store_n(&agent_control.short_tid_offset, tracedata::kNoTidOffset, __ATOMIC_RELEASE);
  }
  agent_control.own_calls.store(left);
  if (asks) AwaitAnswer(request);
}

// Says who is about to execute another program, and lets the tracer take hold of the thread. False:
// nobody could be told.
bool AskToFollow(uint32_t pid) {
  for (tracedata::ExecutingThread& entry : Pool().executing) {
    uint32_t free = 0;
    if (!entry.pid.compare_exchange_strong(free, tracedata::kBeingTaken)) continue;
    // What the C library has noted is its parent's in a child of vfork.
    entry.tid.store(MayCall() ? static_cast<uint32_t>(Gettid()) : OwnTid());
    entry.pid.store(pid);
    AwaitAnswer(Ask());
    return true;
  }
  return false;
}

bool HasOtherThreads() { return agent_control.slots_used > 1; }

}  // namespace

// Nothing of the thread's slot is touched: signal handlers that come meanwhile are recorded.
extern "C" void agent_libraries_changed(uint64_t) {
  const uint64_t linker = agent_control.debug_state.load(std::memory_order_acquire);
  (void)FindSlot();  // a child notes that it is one
  if (linker == 0 || !IsLookedAt()) return;
  if (!IsConsistent(reinterpret_cast<const LinkerState*>(linker))) return;
  const uint32_t request = Ask();
  if (agent_control.await_libraries.load() != 0) AwaitAnswer(request);
}

// The program is about to end. What other threads have open the tracer sees.
extern "C" void agent_program_ends(uint64_t place) {
  if (agent_control.recording.load(std::memory_order_relaxed) == 0) return;
  TellOwnCalls(place);
  if (const uint32_t child = OwnPidOfChild(); child != 0) CountNoMore(child);
  if (HasOtherThreads() && IsLookedAt()) AwaitAnswer(Ask());
}

// It is about to become another program, if that can be executed.
extern "C" void agent_program_executes(uint64_t place) {
  if (agent_control.recording.load(std::memory_order_relaxed) == 0) return;
  TellOwnCalls(place);
  const bool follow = agent_control.follow.load() != 0;
  if (const uint32_t child = OwnPidOfChild(); child != 0) {
    const bool is_asked_for = follow && agent_control.answers.load() != 0 && AskToFollow(child);
    if (!is_asked_for) CountExecuting(child);
    return;
  }
  if (!IsLookedAt()) return;
  if (follow && AskToFollow(agent_control.pid)) return;
  if (HasOtherThreads()) AwaitAnswer(Ask());
}

// A function is entered that may set up what tracing could be fatal under. By when it does that,
// nothing is done any more that would be.
extern "C" void agent_program_sets(Setter setter, const SavedRegisters& registers) {
  if (agent_control.recording.load(std::memory_order_relaxed) == 0) return;
  const Setting setting = SettingOf(setter, registers);
  if (const OwnCalls left = CallsLeftBy(setting); left != OwnCalls::kAny) {
    LimitTo(left);
    return;
  }
  if (agent_control.trap_table.load(std::memory_order_relaxed) == 0) return;
  if (!EndsTraps(setting)) return;
  agent_control.traps_unsafe.store(1);
  (void)FindSlot();  // a child notes that it is one
  if (IsLookedAt()) AwaitAnswer(Ask());
}

}  // namespace stackreel::agent
