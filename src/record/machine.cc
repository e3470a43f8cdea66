#include "record/machine.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>

#include "base/byte_writer.h"
#include "os/file.h"
#include "os/pointer_authentication.h"
#include "os/proc.h"

namespace stackreel::record {

namespace {

using perfdata::Feature;

void Put(FeatureBytes& out, Feature feature, std::vector<uint8_t> bytes) {
  out[static_cast<uint32_t>(feature)] = std::move(bytes);
}
void PutString(FeatureBytes& out, Feature feature, const std::string& text) {
  if (!text.empty()) Put(out, feature, perfdata::EncodeString(text, kNativeEndian));
}

// A file's text without the newline at its end; "" if there is none.
std::string ReadLine(const std::string& path) {
  std::string text = os::ReadTextFile(path, size_t{1} << 20).value_or("");
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

void AppendString(ByteWriter& out, const std::string& text) {
  out.Bytes(perfdata::EncodeString(text, kNativeEndian));
}

// The value of the first "KEY<tabs>: VALUE" of /proc/cpuinfo.
std::string CpuInfo(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.starts_with(key)) continue;
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view name = line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1);
    if (name != key) continue;
    const size_t start = line.find_first_not_of(' ', colon + 1);
    return start == std::string_view::npos ? "" : std::string(line.substr(start));
  }
  return "";
}

// "AuthenticAMD,25,1,1" as perf has it; on arm64 the MIDR.
std::string CpuId(std::string_view cpuinfo, const MachineFolders& folders) {
  const std::string vendor = CpuInfo(cpuinfo, "vendor_id");
  if (!vendor.empty()) {
    return fmt::format("{},{},{},{}", vendor, CpuInfo(cpuinfo, "cpu family"),
                       CpuInfo(cpuinfo, "model"), CpuInfo(cpuinfo, "stepping"));
  }
  return ReadLine(folders.sys + "/devices/system/cpu/cpu0/regs/identification/midr_el1");
}

// Groups of CPUs that a topology file names, each once, in order of their first CPU.
std::vector<std::string> Groups(const MachineFolders& folders, uint32_t cpus, const char* file) {
  std::vector<std::string> groups;
  for (uint32_t cpu = 0; cpu < cpus; ++cpu) {
    std::string list =
        ReadLine(fmt::format("{}/devices/system/cpu/cpu{}/topology/{}", folders.sys, cpu, file));
    if (!list.empty() && std::ranges::find(groups, list) == groups.end()) {
      groups.push_back(std::move(list));
    }
  }
  return groups;
}

// list of packages' CPUs; list of cores' CPUs; {u32 core, u32 package} a CPU; list of dies' CPUs;
// u32 die a CPU. As perf names them: sibling cores are those of a package.
std::vector<uint8_t> CpuTopology(const MachineFolders& folders, uint32_t cpus) {
  std::vector<std::string> packages = Groups(folders, cpus, "package_cpus_list");
  if (packages.empty()) packages = Groups(folders, cpus, "core_siblings_list");
  std::vector<std::string> cores = Groups(folders, cpus, "core_cpus_list");
  if (cores.empty()) cores = Groups(folders, cpus, "thread_siblings_list");
  if (packages.empty() || cores.empty()) return {};
  ByteWriter out;
  out.Bytes(perfdata::EncodeStringList(packages, kNativeEndian));
  out.Bytes(perfdata::EncodeStringList(cores, kNativeEndian));
  const auto number = [&](uint32_t cpu, const char* file) {
    const auto value = os::ReadNumberFile(
        fmt::format("{}/devices/system/cpu/cpu{}/topology/{}", folders.sys, cpu, file));
    return static_cast<uint32_t>(value.value_or(-1));
  };
  for (uint32_t cpu = 0; cpu < cpus; ++cpu) {
    out.U32(number(cpu, "core_id"));
    out.U32(number(cpu, "physical_package_id"));
  }
  const std::vector<std::string> dies = Groups(folders, cpus, "die_cpus_list");
  if (!dies.empty()) {
    out.Bytes(perfdata::EncodeStringList(dies, kNativeEndian));
    for (uint32_t cpu = 0; cpu < cpus; ++cpu) out.U32(number(cpu, "die_id"));
  }
  return out.Take();
}

// u32 nr; {u32 node; u64 total kB; u64 free kB; string cpus}
std::vector<uint8_t> NumaTopology(const MachineFolders& folders) {
  const std::string nodes = folders.sys + "/devices/system/node";
  const auto online = os::ParseCpuList(ReadLine(nodes + "/online"));
  if (!online) return {};
  ByteWriter out;
  out.U32(static_cast<uint32_t>(online->size()));
  for (const uint32_t node : *online) {
    const std::string folder = fmt::format("{}/node{}", nodes, node);
    const std::string meminfo = ReadLine(folder + "/meminfo");
    // "Node 0 MemTotal:       24684092 kB"
    const auto amount = [&](std::string_view key) {
      const size_t at = meminfo.find(key);
      return at == std::string::npos ? 0 : strtoull(meminfo.c_str() + at + key.size(), nullptr, 10);
    };
    out.U32(node);
    out.U64(amount("MemTotal:"));
    out.U64(amount("MemFree:"));
    AppendString(out, ReadLine(folder + "/cpulist"));
  }
  return out.Take();
}

// u32 nr; {u32 type; string name}
std::vector<uint8_t> PmuMappings(const MachineFolders& folders) {
  std::map<uint32_t, std::string> pmus;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(folders.sys + "/bus/event_source/devices", error)) {
    const auto type = os::ReadNumberFile(entry.path().string() + "/type");
    if (type) pmus[static_cast<uint32_t>(*type)] = entry.path().filename();
  }
  ByteWriter out;
  out.U32(static_cast<uint32_t>(pmus.size()));
  for (const auto& [type, name] : pmus) {
    out.U32(type);
    AppendString(out, name);
  }
  return out.Take();
}

// u32 version 1; u32 nr; {u32 level, line size, sets, ways; string type, size, CPUs}
std::vector<uint8_t> Caches(const MachineFolders& folders, uint32_t cpus) {
  ByteWriter entries;
  uint32_t count = 0;
  std::set<std::string> seen;
  for (uint32_t cpu = 0; cpu < cpus; ++cpu) {
    for (int index = 0;; ++index) {
      const std::string folder =
          fmt::format("{}/devices/system/cpu/cpu{}/cache/index{}", folders.sys, cpu, index);
      const auto level = os::ReadNumberFile(folder + "/level");
      if (!level) break;
      const std::string type = ReadLine(folder + "/type");
      const std::string map = ReadLine(folder + "/shared_cpu_list");
      if (!seen.insert(fmt::format("{} {} {}", *level, type, map)).second) continue;
      const auto number = [&](const char* file) {
        return static_cast<uint32_t>(os::ReadNumberFile(folder + file).value_or(0));
      };
      entries.U32(static_cast<uint32_t>(*level));
      entries.U32(number("/coherency_line_size"));
      entries.U32(number("/number_of_sets"));
      entries.U32(number("/ways_of_associativity"));
      AppendString(entries, type);
      AppendString(entries, ReadLine(folder + "/size"));
      AppendString(entries, map);
      ++count;
    }
  }
  if (count == 0) return {};
  ByteWriter out;
  out.U32(1);
  out.U32(count);
  out.Bytes(entries.view());
  return out.Take();
}

}  // namespace

FeatureBytes MachineFeatures(const MachineFolders& folders) {
  FeatureBytes out;
  struct utsname names = {};
  if (uname(&names) == 0) {
    PutString(out, Feature::kHostname, names.nodename);
    PutString(out, Feature::kOsRelease, names.release);
    PutString(out, Feature::kArch, names.machine);
  }
  PutString(out, Feature::kVersion, "stackreel " STACKREEL_VERSION);
  const uint32_t cpus = os::ConfiguredCpuCount();
  const auto online = os::OnlineCpus();
  ByteWriter nr_cpus;
  nr_cpus.U32(cpus);
  nr_cpus.U32(online ? static_cast<uint32_t>(online->size()) : cpus);
  Put(out, Feature::kNrCpus, nr_cpus.Take());

  const std::string cpuinfo = ReadLine(folders.proc + "/cpuinfo");
  PutString(out, Feature::kCpuDesc, CpuInfo(cpuinfo, "model name"));
  PutString(out, Feature::kCpuId, CpuId(cpuinfo, folders));
  const std::string meminfo = ReadLine(folders.proc + "/meminfo");
  if (meminfo.starts_with("MemTotal:")) {
    ByteWriter memory;
    memory.U64(strtoull(meminfo.c_str() + sizeof("MemTotal:"), nullptr, 10));
    Put(out, Feature::kTotalMem, memory.Take());
  }
  if (auto bytes = CpuTopology(folders, cpus); !bytes.empty()) {
    Put(out, Feature::kCpuTopology, std::move(bytes));
  }
  if (auto bytes = NumaTopology(folders); !bytes.empty()) {
    Put(out, Feature::kNumaTopology, std::move(bytes));
  }
  Put(out, Feature::kPmuMappings, PmuMappings(folders));
  if (auto bytes = Caches(folders, cpus); !bytes.empty()) {
    Put(out, Feature::kCache, std::move(bytes));
  }
  if (const auto pac = os::LearnPointerAuthentication()) {
    Put(out, Feature::kStackreelPacMask,
        perfdata::EncodePacMask(pac->enabled_keys.value_or(0), pac->insn_mask, pac->data_mask,
                                kNativeEndian));
  }
  return out;
}

std::vector<uint8_t> EncodeCmdline(const std::vector<std::string>& cmdline) {
  return perfdata::EncodeStringList(cmdline, kNativeEndian);
}

std::vector<uint8_t> EncodeSampleTime(uint64_t first, uint64_t last) {
  ByteWriter out;
  out.U64(first);
  out.U64(last);
  return out.Take();
}

FeatureBytes ClockFeatures(int32_t clockid) {
  FeatureBytes out;
  const auto nanoseconds = [](const struct timespec& t) {
    return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
  };
  struct timespec resolution = {}, now = {}, day = {};
  if (clock_getres(clockid, &resolution) != 0) return out;
  ByteWriter clock;
  clock.U64(nanoseconds(resolution));
  Put(out, Feature::kClockid, clock.Take());
  if (clock_gettime(clockid, &now) != 0 || clock_gettime(CLOCK_REALTIME, &day) != 0) return out;
  ByteWriter data;
  data.U32(1);  // version
  data.U32(static_cast<uint32_t>(clockid));
  data.U64(nanoseconds(day));
  data.U64(nanoseconds(now));
  Put(out, Feature::kClockData, data.Take());
  return out;
}

}  // namespace stackreel::record
