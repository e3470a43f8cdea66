// Runs pieces of code in this process and says what they did to registers and memory.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <vector>

#include "base/bytes.h"

namespace stackreel::testing {

// rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 … r15.
using Registers = std::array<uint64_t, 16>;

// Where the code and what it may touch lie: nothing else is mapped within gigabytes.
inline constexpr uint64_t kOriginalPage = 0x200000000000;
inline constexpr uint64_t kCopyPage = kOriginalPage + 0x10000000;
inline constexpr uint64_t kScratch = 0x201000000000;
inline constexpr uint64_t kPageSize = 4096;
inline constexpr uint64_t kCodeSize = kPageSize;
inline constexpr uint64_t kScratchSize = 8 * kPageSize;  // data below, stack above
inline constexpr uint64_t kStackTop = kScratch + 6 * kPageSize;

// How a run ended: what control arrived at that is not mapped, or what was trapped.
struct RunOutcome {
  int signal = 0;         // SIGTRAP: came to an int3; SIGSEGV …; SIGPROF: ran too long
  uint64_t rip = 0;       // of the instruction (of the int3 itself)
  uint64_t address = 0;   // of a fault in memory
  bool by_fetch = false;  // the fault was in fetching an instruction
  Registers registers = {};
  uint64_t flags = 0;  // the arithmetic ones, and DF
  std::vector<uint8_t> vectors;
  std::vector<uint8_t> scratch;
  std::map<uint64_t, std::vector<uint8_t>> pages;  // mapped when they were touched
};

// One run at a time in the process. Signals are handled while one of these lives.
class CodeRunner {
 public:
  CodeRunner();
  ~CodeRunner();
  CodeRunner(const CodeRunner&) = delete;
  CodeRunner& operator=(const CodeRunner&) = delete;

  // Puts int3 everywhere in both code pages, then `code` at `offset` of one of them.
  void Clear();
  void Place(uint64_t page, uint64_t offset, ByteView code);
  // Runs from `entry`, with memory as it is at the start of each run, until a signal ends it: at
  // the latest when it has used `patience` of processor time.
  RunOutcome Run(uint64_t entry, const Registers& registers, uint64_t flags,
                 std::chrono::milliseconds patience);
};

}  // namespace stackreel::testing
