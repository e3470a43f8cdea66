#include "support/code_runner.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace stackreel::testing {
namespace {

constexpr int kSignals[] = {SIGUSR1, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGPROF};
constexpr size_t kMaxPages = 8;
constexpr size_t kVectorsOffset = 160;  // of xmm0 in an FXSAVE area
constexpr size_t kVectorsSize = 256;
constexpr size_t kFxsaveSize = 512;
constexpr greg_t kFetchFault = 16;  // bit 4 of a page fault's error code
constexpr uint64_t kComparedFlags = 0xcd5;
// How exactly a run is told to have taken too long.
constexpr std::chrono::microseconds kTick{10000};

// The order of Registers, as a signal's frame has them.
constexpr int kRegisterIndex[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                  REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                  REG_R12, REG_R13, REG_R14, REG_R15};

// What handlers work on.
struct State {
  bool is_running = false;
  int ticks = 0, most_ticks = 0;
  uint64_t entry = 0;
  const Registers* registers = nullptr;
  uint64_t flags = 0;
  RunOutcome* outcome = nullptr;
  std::array<uint64_t, kMaxPages> pages = {};
  size_t page_count = 0;
  // Of the caller of Run.
  gregset_t saved_registers = {};
  std::array<uint8_t, kFxsaveSize> saved_vectors = {};
  std::array<struct sigaction, std::size(kSignals)> old_actions = {};
  std::array<uint8_t, 65536> signal_stack = {};
};
State g_state;

uint8_t* Pointer(uint64_t address) { return reinterpret_cast<uint8_t*>(address); }

// Bytes that depend on the address alone.
void FillPage(uint64_t page) {
  uint64_t value = page * 0x9e3779b97f4a7c15 + 1;
  for (uint64_t at = page; at < page + kPageSize; at += 8) {
    value ^= value << 13;
    value ^= value >> 7;
    value ^= value << 17;
    // Small numbers and addresses of the scratch memory are what code can do most with.
    uint64_t word = value;
    if (value % 4 == 0) word = value >> 56;
    if (value % 4 == 1) word = kScratch + (value >> 32) % (4 * kPageSize);
    std::memcpy(Pointer(at), &word, sizeof(word));
  }
}

bool Map(uint64_t page) {
  void* const made = mmap(Pointer(page), kPageSize, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  return made == Pointer(page);
}

// A page that the code touches and that is not there comes into being.
bool MapOnDemand(const siginfo_t& info, const ucontext_t& at) {
  if (info.si_signo != SIGSEGV || info.si_code != SEGV_MAPERR) return false;
  if ((at.uc_mcontext.gregs[REG_ERR] & kFetchFault) != 0) return false;
  if (g_state.page_count == kMaxPages) return false;
  const uint64_t page = reinterpret_cast<uint64_t>(info.si_addr) & ~(kPageSize - 1);
  if (!Map(page)) return false;
  FillPage(page);
  g_state.pages[g_state.page_count++] = page;
  return true;
}

void Start(ucontext_t& at) {
  std::memcpy(g_state.saved_registers, at.uc_mcontext.gregs, sizeof(gregset_t));
  std::memcpy(g_state.saved_vectors.data(), at.uc_mcontext.fpregs, kFxsaveSize);
  for (size_t i = 0; i < g_state.registers->size(); ++i) {
    at.uc_mcontext.gregs[kRegisterIndex[i]] = static_cast<greg_t>((*g_state.registers)[i]);
  }
  at.uc_mcontext.gregs[REG_RIP] = static_cast<greg_t>(g_state.entry);
  at.uc_mcontext.gregs[REG_EFL] =
      static_cast<greg_t>((static_cast<uint64_t>(at.uc_mcontext.gregs[REG_EFL]) & ~kComparedFlags) |
                          (g_state.flags & kComparedFlags));
  auto* const vectors = reinterpret_cast<uint8_t*>(at.uc_mcontext.fpregs) + kVectorsOffset;
  for (size_t i = 0; i < kVectorsSize; ++i) vectors[i] = static_cast<uint8_t>(i * 7 + 3);
  g_state.ticks = 0;
  g_state.is_running = true;
}

void Stop(const siginfo_t& info, ucontext_t& at) {
  g_state.is_running = false;
  RunOutcome& outcome = *g_state.outcome;
  outcome.signal = info.si_signo;
  outcome.rip = static_cast<uint64_t>(at.uc_mcontext.gregs[REG_RIP]);
  if (info.si_signo == SIGTRAP) --outcome.rip;
  if (info.si_signo == SIGSEGV || info.si_signo == SIGBUS) {
    outcome.address = reinterpret_cast<uint64_t>(info.si_addr);
    outcome.by_fetch = (at.uc_mcontext.gregs[REG_ERR] & kFetchFault) != 0;
  }
  for (size_t i = 0; i < outcome.registers.size(); ++i) {
    outcome.registers[i] = static_cast<uint64_t>(at.uc_mcontext.gregs[kRegisterIndex[i]]);
  }
  outcome.flags = static_cast<uint64_t>(at.uc_mcontext.gregs[REG_EFL]) & kComparedFlags;
  // The vector is large enough already: nothing is allocated here.
  std::memcpy(outcome.vectors.data(),
              reinterpret_cast<uint8_t*>(at.uc_mcontext.fpregs) + kVectorsOffset, kVectorsSize);
  std::memcpy(at.uc_mcontext.gregs, g_state.saved_registers, sizeof(gregset_t));
  std::memcpy(at.uc_mcontext.fpregs, g_state.saved_vectors.data(), kFxsaveSize);
}

void Handle(int signal, siginfo_t* info, void* frame) {
  auto& at = *static_cast<ucontext_t*>(frame);
  if (signal == SIGUSR1) {
    Start(at);
  } else if (!g_state.is_running) {
    if (signal == SIGPROF) return;
    std::fprintf(stderr, "signal %d in the test itself\n", signal);
    std::_Exit(1);
  } else if (signal == SIGPROF) {
    if (++g_state.ticks > g_state.most_ticks) Stop(*info, at);
  } else if (!MapOnDemand(*info, at)) {
    Stop(*info, at);
  }
}

void* MapCode(uint64_t page) {
  return mmap(Pointer(page), kCodeSize, PROT_READ | PROT_WRITE | PROT_EXEC,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
}

}  // namespace

CodeRunner::CodeRunner() {
  const bool mapped =
      MapCode(kOriginalPage) == Pointer(kOriginalPage) &&
      MapCode(kCopyPage) == Pointer(kCopyPage) &&
      mmap(Pointer(kScratch), kScratchSize, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == Pointer(kScratch);
  if (!mapped) {
    std::perror("cannot map code to run");
    std::exit(77);  // such a process cannot run this test
  }
  stack_t stack = {};
  stack.ss_sp = g_state.signal_stack.data();
  stack.ss_size = g_state.signal_stack.size();
  sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_sigaction = Handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigfillset(&action.sa_mask);
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    sigaction(kSignals[i], &action, &g_state.old_actions[i]);
  }
  const itimerval timer = {{0, kTick.count()}, {0, kTick.count()}};
  setitimer(ITIMER_PROF, &timer, nullptr);
}

CodeRunner::~CodeRunner() {
  const itimerval none = {};
  setitimer(ITIMER_PROF, &none, nullptr);
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    sigaction(kSignals[i], &g_state.old_actions[i], nullptr);
  }
  munmap(Pointer(kOriginalPage), kCodeSize);
  munmap(Pointer(kCopyPage), kCodeSize);
  munmap(Pointer(kScratch), kScratchSize);
}

void CodeRunner::Clear() {
  std::memset(Pointer(kOriginalPage), 0xcc, kCodeSize);
  std::memset(Pointer(kCopyPage), 0xcc, kCodeSize);
}

void CodeRunner::Place(uint64_t page, uint64_t offset, ByteView code) {
  std::ranges::copy(code, Pointer(page + offset));
}

RunOutcome CodeRunner::Run(uint64_t entry, const Registers& registers, uint64_t flags,
                           std::chrono::milliseconds patience) {
  for (uint64_t page = kScratch; page < kScratch + kScratchSize; page += kPageSize) {
    FillPage(page);
  }
  RunOutcome outcome;
  outcome.vectors.resize(kVectorsSize);
  g_state.entry = entry;
  g_state.registers = &registers;
  g_state.flags = flags;
  g_state.most_ticks = static_cast<int>(patience / kTick);
  g_state.outcome = &outcome;
  g_state.page_count = 0;
  raise(SIGUSR1);  // the handler goes on at `entry`, and back here when that has ended
  outcome.scratch.assign(Pointer(kScratch), Pointer(kScratch + kScratchSize));
  for (size_t i = 0; i < g_state.page_count; ++i) {
    const uint64_t page = g_state.pages[i];
    outcome.pages[page].assign(Pointer(page), Pointer(page + kPageSize));
    munmap(Pointer(page), kPageSize);
  }
  return outcome;
}

}  // namespace stackreel::testing
