#include "os/proc.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <numeric>

#include "os/file.h"

namespace stackreel::os {

namespace {

// Takes a number from the front of `text`; false if there is none.
template <typename T>
bool TakeNumber(std::string_view& text, T& out, int base) {
  const auto result = std::from_chars(text.data(), text.data() + text.size(), out, base);
  if (result.ec != std::errc{}) return false;
  text.remove_prefix(static_cast<size_t>(result.ptr - text.data()));
  return true;
}

bool TakeChar(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) return false;
  text.remove_prefix(1);
  return true;
}

// The kernel writes a newline in a path as \012, and nothing else in another way.
std::string UnescapeNewlines(std::string_view path) {
  std::string out;
  for (size_t at = 0; at < path.size();) {
    const size_t next = path.find("\\012", at);
    out += path.substr(at, next - at);
    if (next == std::string_view::npos) break;
    out += '\n';
    at = next + 4;
  }
  return out;
}

// "7f0c1e000000-7f0c1e021000 rw-p 00000000 00:00 0      /path"; see proc(5).
std::optional<ProcMapping> ParseMapsLine(std::string_view line) {
  ProcMapping m;
  if (!TakeNumber(line, m.start, 16) || !TakeChar(line, '-') || !TakeNumber(line, m.end, 16) ||
      !TakeChar(line, ' ') || line.size() < 5 || m.start >= m.end) {
    return std::nullopt;
  }
  if (line[0] == 'r') m.prot |= PROT_READ;
  if (line[1] == 'w') m.prot |= PROT_WRITE;
  if (line[2] == 'x') m.prot |= PROT_EXEC;
  m.flags = line[3] == 's' ? MAP_SHARED : MAP_PRIVATE;
  line.remove_prefix(4);
  if (!TakeChar(line, ' ') || !TakeNumber(line, m.offset, 16) || !TakeChar(line, ' ') ||
      !TakeNumber(line, m.maj, 16) || !TakeChar(line, ':') || !TakeNumber(line, m.min, 16) ||
      !TakeChar(line, ' ') || !TakeNumber(line, m.ino, 10)) {
    return std::nullopt;
  }
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  m.path = UnescapeNewlines(line);
  return m;
}

// Numbers that are names in a folder, sorted.
std::vector<uint32_t> NumberedEntries(const std::string& folder) {
  std::vector<uint32_t> out;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(folder.c_str()), closedir);
  if (dir == nullptr) return out;
  // readdir is safe while no other thread uses this DIR.
  while (const dirent* entry = readdir(dir.get())) {  // NOLINT(concurrency-mt-unsafe)
    std::string_view name = entry->d_name;
    uint32_t number = 0;
    if (TakeNumber(name, number, 10) && name.empty()) out.push_back(number);
  }
  std::ranges::sort(out);
  return out;
}

// The number after "KEY:" in /proc/PID/status.
std::optional<uint32_t> StatusField(std::string_view text, std::string_view key) {
  text = StatusValue(text, key);
  uint32_t value = 0;
  if (!TakeNumber(text, value, 10)) return std::nullopt;
  return value;
}

constexpr uint32_t kMaxCpu = 1u << 13;  // the kernel's own limit

}  // namespace

std::vector<ProcMapping> ParseProcMaps(std::string_view text) {
  std::vector<ProcMapping> out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (auto mapping = ParseMapsLine(text.substr(0, end))) out.push_back(std::move(*mapping));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

Result<std::vector<ProcMapping>> ReadProcMaps(uint32_t pid) {
  TRY_ASSIGN(const std::string text, ReadTextFile(fmt::format("/proc/{}/maps", pid)));
  return ParseProcMaps(text);
}

std::string_view StatusValue(std::string_view text, std::string_view key) {
  const std::string needle = fmt::format("\n{}:\t", key);
  const size_t at = text.find(needle);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + needle.size());
  return text.substr(0, text.find('\n'));
}

Result<ProcStatus> ReadProcStatus(uint32_t pid, uint32_t tid) {
  const std::string folder = fmt::format("/proc/{}/task/{}/", pid, tid);
  TRY_ASSIGN(const std::string text, ReadTextFile(folder + "status"));
  // Not "Name:" of status: there the kernel escapes characters.
  TRY_ASSIGN(std::string comm, ReadTextFile(folder + "comm"));
  if (comm.ends_with('\n')) comm.pop_back();
  const auto tgid = StatusField(text, "Tgid");
  const auto ppid = StatusField(text, "PPid");
  if (!tgid || !ppid) return Fail(ErrorKind::kNotFound, fmt::format("no thread {}", tid));
  return ProcStatus{.comm = std::move(comm), .tgid = *tgid, .ppid = *ppid};
}

std::vector<uint32_t> ListProcesses() { return NumberedEntries("/proc"); }

std::vector<uint32_t> ListThreads(uint32_t pid) {
  return NumberedEntries(fmt::format("/proc/{}/task", pid));
}

std::string FormatCpuList(const std::vector<uint32_t>& cpus) {
  std::string text;
  for (size_t i = 0; i < cpus.size();) {
    size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", cpus[i]);
    if (last != i) text += fmt::format("-{}", cpus[last]);
    i = last + 1;
  }
  return text;
}

Result<std::vector<uint32_t>> ParseCpuList(std::string_view text) {
  const std::string whole(text);
  const auto bad = [&whole](std::string_view why) {
    return Fail(ErrorKind::kUsage,
                fmt::format("'{}' is not a list of CPUs such as 0-3,8: {}", whole, why));
  };
  while (text.ends_with('\n')) text.remove_suffix(1);
  std::vector<bool> listed(kMaxCpu);  // a list may name a CPU more than once
  do {
    uint32_t first = 0;
    if (!TakeNumber(text, first, 10)) return bad("a number was expected");
    uint32_t last = first;
    if (TakeChar(text, '-') && !TakeNumber(text, last, 10)) return bad("a number was expected");
    if (last < first) return bad("a range goes upwards");
    if (last >= kMaxCpu) return bad(fmt::format("no machine has a CPU {}", last));
    std::fill(listed.begin() + first, listed.begin() + last + 1, true);
  } while (TakeChar(text, ','));
  if (!text.empty()) return bad(fmt::format("'{}' was not expected", text));
  std::vector<uint32_t> cpus;
  for (uint32_t cpu = 0; cpu < kMaxCpu; ++cpu) {
    if (listed[cpu]) cpus.push_back(cpu);
  }
  return cpus;
}

Result<std::vector<uint32_t>> OnlineCpus() {
  if (auto text = ReadTextFile("/sys/devices/system/cpu/online")) return ParseCpuList(*text);
  // No /sys here: CPUs are numbered from 0 as far as anyone can tell.
  const auto count = static_cast<uint32_t>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  std::vector<uint32_t> cpus(count);
  std::iota(cpus.begin(), cpus.end(), 0);
  return cpus;
}

uint32_t ConfiguredCpuCount() {
  return static_cast<uint32_t>(std::max(1L, sysconf(_SC_NPROCESSORS_CONF)));
}

uint32_t AvailableCpuCount() {
  // The set must be as large as the kernel's, which is not known: double until it is.
  for (size_t cpus = 1024; cpus <= kMaxCpu; cpus *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(cpus),
                                                               [](cpu_set_t* s) { CPU_FREE(s); });
    if (set == nullptr) break;
    if (sched_getaffinity(0, CPU_ALLOC_SIZE(cpus), set.get()) == 0) {
      return static_cast<uint32_t>(CPU_COUNT_S(CPU_ALLOC_SIZE(cpus), set.get()));
    }
    if (errno != EINVAL) break;
  }
  return ConfiguredCpuCount();
}

std::optional<int64_t> ReadNumberFile(const std::string& path) {
  const auto text = ReadTextFile(path, 4096);
  if (!text) return std::nullopt;
  std::string_view view = *text;
  int64_t value = 0;
  if (!TakeNumber(view, value, 10)) return std::nullopt;
  return value;
}

Result<std::vector<uint8_t>> ReadProcessMemory(uint32_t pid, uint64_t addr, size_t size) {
  const std::string path = fmt::format("/proc/{}/mem", pid);
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return Fail(ErrnoError(errno, "cannot open", path));
  std::vector<uint8_t> bytes(size);
  for (size_t done = 0; done < size;) {
    const ssize_t n =
        pread(fd.get(), bytes.data() + done, size - done, static_cast<off_t>(addr + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Fail(ErrnoError(n < 0 ? errno : EIO, "cannot read", path));
    done += static_cast<size_t>(n);
  }
  return bytes;
}

std::vector<uint8_t> ReadOwnVdso() {
  const auto base = static_cast<uint64_t>(getauxval(AT_SYSINFO_EHDR));
  const auto maps = ReadProcMaps(static_cast<uint32_t>(getpid()));
  if (base == 0 || !maps) return {};
  for (const ProcMapping& m : *maps) {
    if (m.start != base) continue;
    const auto* bytes = reinterpret_cast<const uint8_t*>(m.start);
    return {bytes, bytes + (m.end - m.start)};
  }
  return {};
}

}  // namespace stackreel::os
