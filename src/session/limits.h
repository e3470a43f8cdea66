// What a recording may say and what cannot be: it is damaged, or perf did not know better.
#pragma once

#include <cstdint>

namespace stackreel::session {

// No module of a kernel is as large: all of them lie in less, on every architecture.
inline constexpr uint64_t kMostKernelModuleBytes = uint64_t{4} << 30;
// No file has code at such an offset, or behind it.
inline constexpr uint64_t kCodeOffsetEnd = uint64_t{64} << 30;
// How far a kernel that starts there may reach, with its modules. Recordings often say that it
// reaches to the end of memory.
constexpr uint64_t MostKernelBytes(uint64_t start) {
  constexpr uint64_t k4GB = uint64_t{4} << 30, k256MB = uint64_t{256} << 20;
  return start < k4GB ? k256MB : k4GB;
}
// Whether a mapping of a process is said to reach where none does, into the last 64 KB of memory
// or beyond.
constexpr bool ReachesBeyondMemory(uint64_t addr, uint64_t len) {
  constexpr uint64_t kTop = ~uint64_t{0xffff};
  return len != 0 && (addr >= kTop || len > kTop - addr);
}

}  // namespace stackreel::session
