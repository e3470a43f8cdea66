// What /proc and /sys tell.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/build_id.h"
#include "base/error.h"

namespace stackreel::os {

struct ProcMapping {
  uint64_t start = 0, end = 0, offset = 0;
  uint32_t prot = 0, flags = 0;  // PROT_*, MAP_SHARED or MAP_PRIVATE
  uint32_t maj = 0, min = 0;
  uint64_t ino = 0;
  std::string path;
};
// /proc/PID/maps. A path may hold anything but a newline ("\012" is unescaped).
Result<std::vector<ProcMapping>> ReadProcMaps(uint32_t pid);
// Lines that are not of that form are left out.
std::vector<ProcMapping> ParseProcMaps(std::string_view text);

// What the text of a /proc/PID/status has behind "KEY:", of any line but its first; empty if there
// is no such line.
std::string_view StatusValue(std::string_view text, std::string_view key);
struct ProcStatus {
  std::string comm;
  uint32_t tgid = 0, ppid = 0;
};
// kNotFound if there is no such thread (any more).
Result<ProcStatus> ReadProcStatus(uint32_t pid, uint32_t tid);
// In rising order; a process that is gone has no threads.
std::vector<uint32_t> ListProcesses();
std::vector<uint32_t> ListThreads(uint32_t pid);
// "0-3,8" → CPUs; kUsage if it is not such a list.
Result<std::vector<uint32_t>> ParseCpuList(std::string_view text);
// {0, 1, 2, 8} → "0-2,8". `cpus` ascend.
std::string FormatCpuList(const std::vector<uint32_t>& cpus);
Result<std::vector<uint32_t>> OnlineCpus();
// CPUs the machine has, offline ones too.
uint32_t ConfiguredCpuCount();
// CPUs this process may run on.
uint32_t AvailableCpuCount();
// A number in a file such as /proc/sys/kernel/perf_event_paranoid.
std::optional<int64_t> ReadNumberFile(const std::string& path);
// `size` bytes of a process's memory. kNotFound or kPermission: there is no such process, or it is
// not ours to read. kIo: not all of it is mapped.
Result<std::vector<uint8_t>> ReadProcessMemory(uint32_t pid, uint64_t addr, size_t size);
// This process's vDSO: its bytes (copied from memory).
std::vector<uint8_t> ReadOwnVdso();

}  // namespace stackreel::os
