// The features as text.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <iterator>

#include "perfdata/feature_layout.h"
#include "perfdata/field_text.h"
#include "perfdata/pac_mask.h"
#include "perfdata/tracing_data.h"

namespace stackreel::perfdata {

namespace {

using Lines = std::vector<std::string>;

std::string_view Label(Feature feature) {
  switch (feature) {
    case Feature::kHostname:
      return "hostname";
    case Feature::kOsRelease:
      return "kernel release";
    case Feature::kVersion:
      return "recorder version";
    case Feature::kArch:
      return "architecture";
    case Feature::kCpuDesc:
      return "CPU";
    case Feature::kCpuId:
      return "CPU id";
    default:
      return "";
  }
}

// ---- one overload a structure ----

template <Sensitivity kSensitivity>
Lines Describe(Feature feature, const MachineText<kSensitivity>& body) {
  return {fmt::format("{}: {}", Label(feature), body.text)};
}

Lines Describe(Feature, const TracingData& body) {
  TracepointNames names;
  const bool good = DecodeTracepointNames(body.bytes, names);
  Lines lines = {fmt::format("tracepoint formats: {} bytes, {} tracepoints{}", body.bytes.size(),
                             names.size(), good ? "" : "; damaged")};
  for (const auto& [id, name] : names) lines.push_back(fmt::format("  {} = {}", name, id));
  return lines;
}

Lines Describe(Feature, const BuildIdList& body) {
  Lines lines = {fmt::format("build-ids: {}", body.ids.size())};
  for (size_t i = 0; i < body.ids.size(); ++i) {
    const HeaderBuildId& id = body.ids[i];
    const auto mode = static_cast<CpuMode>(body.misc[i] & kMiscCpuModeMask);
    const bool kernel = mode == CpuMode::kKernel || mode == CpuMode::kGuestKernel;
    const bool guest = mode == CpuMode::kGuestKernel || mode == CpuMode::kGuestUser;
    lines.push_back(fmt::format("  {} {}{}{}", id.build_id.empty() ? "none" : id.build_id.ToHex(),
                                id.filename, kernel ? " (kernel)" : "",
                                guest ? fmt::format(" (guest {})", id.pid) : ""));
  }
  return lines;
}

Lines Describe(Feature, const NrCpus& body) {
  return {fmt::format("CPUs: {} online, {} available", body.online, body.available)};
}

Lines Describe(Feature, const TotalMem& body) {
  return {fmt::format("memory: {} kB", body.kilobytes)};
}

Lines Describe(Feature, const Cmdline& body) {
  std::string words;
  for (const std::string& word : body.words) words += " " + word;
  return {"command line:" + words};
}

std::string EventText(const Event& event) {
  const Attr& attr = event.attr;
  std::string text = fmt::format("event: {}, type {}, config {:#x}, attr size {}",
                                 event.name.empty() ? AttrName(attr) : event.name, attr.type,
                                 attr.config, attr.size);
  const auto number = [&text](const char* name, uint64_t value, bool hex = false) {
    if (value == 0) return;
    text += hex ? fmt::format(", {} {:#x}", name, value) : fmt::format(", {} {}", name, value);
  };
  number(attr.Has(kAttrFreq) ? "frequency" : "period", attr.sample_period_or_freq);
  text += ", sample type " + SampleTypeNames(attr.sample_type);
  if (attr.read_format != 0) text += ", read format " + ReadFormatNames(attr.read_format);
  if (attr.flags != 0) text += ", " + AttrFlagNames(attr.flags);
  number("wakeup", attr.wakeup_events_or_watermark);
  number("bp_type", attr.bp_type);
  number("config1", attr.config1, true);
  number("config2", attr.config2, true);
  number("config3", attr.config3, true);
  number("config4", attr.config4, true);
  number("branch type", attr.branch_sample_type, true);
  number("user registers", attr.sample_regs_user, true);
  number("user stack", attr.sample_stack_user);
  if (attr.Has(kAttrUseClockid)) text += fmt::format(", clockid {}", attr.clockid);
  number("interrupt registers", attr.sample_regs_intr, true);
  number("aux watermark", attr.aux_watermark);
  number("max stack", attr.sample_max_stack);
  number("aux sample size", attr.aux_sample_size);
  number("aux action", attr.aux_action, true);
  number("sig_data", attr.sig_data, true);
  if (!event.ids.empty()) {
    text += ", ids";
    for (const uint64_t id : event.ids) text += fmt::format(" {}", id);
  }
  return text;
}

Lines Describe(Feature, const EventDesc& body) {
  Lines lines;
  for (const Event& event : body.events) lines.push_back(EventText(event));
  return lines;
}

Lines Describe(Feature, const CpuTopology& body) {
  Lines lines = {"CPU topology"};
  const auto siblings = [&lines](const char* what, const std::vector<std::string>& lists) {
    for (const std::string& list : lists) lines.push_back(fmt::format("  {}: {}", what, list));
  };
  siblings("sibling cores", body.core_siblings);
  siblings("sibling dies", body.die_siblings);
  siblings("sibling threads", body.thread_siblings);
  for (size_t i = 0; i < body.cpus.size(); ++i) {
    const std::string die = i < body.dies.size() ? fmt::format(", die {}", body.dies[i]) : "";
    lines.push_back(fmt::format("  CPU {}: core {}{}, socket {}", i, body.cpus[i].core, die,
                                body.cpus[i].socket));
  }
  return lines;
}

Lines Describe(Feature, const NumaTopology& body) {
  Lines lines;
  for (const NumaNode& node : body.nodes) {
    lines.push_back(fmt::format("NUMA node {}: {} kB, {} kB free, CPUs {}", node.node,
                                node.total_kb, node.free_kb, node.cpus));
  }
  return lines;
}

Lines Describe(Feature, const PmuMappings& body) {
  std::string text;
  for (const PmuMapping& pmu : body.pmus) {
    text += fmt::format("{} {} = {}", text.empty() ? "" : ",", pmu.name, pmu.type);
  }
  return {"PMU types:" + text};
}

// "group: {cpu-clock,page-faults}", by the names of EVENT_DESC.
Lines DescribeGroups(const GroupDesc& body, const std::vector<Event>& events) {
  Lines lines;
  for (const EventGroup& group : body.groups) {
    std::string members;
    for (uint64_t i = 0; i < group.members; ++i) {
      const uint64_t event = uint64_t{group.leader} + i;
      if (i != 0) members += ',';
      if (event >= events.size()) {
        members += fmt::format("no event {}", event);
        break;
      }
      members += events[event].name;
    }
    lines.push_back(fmt::format("group: {}{{{}}}", group.name, members));
  }
  return lines;
}

Lines Describe(Feature, const GroupDesc& body) {
  Lines lines;
  for (const EventGroup& group : body.groups) {
    lines.push_back(fmt::format("event group: {}, leader {}, {} members",
                                group.name.empty() ? "unnamed" : group.name, group.leader,
                                group.members));
  }
  return lines;
}

Lines Describe(Feature, const AuxtraceIndex& body) {
  uint64_t size = 0;
  for (const AuxtraceEntry& entry : body.entries) size += entry.size;
  return {fmt::format("AUX data: {} records of {} bytes in all", body.entries.size(), size)};
}

Lines Describe(Feature feature, const NoContent&) {
  return {feature == Feature::kStat ? "counts of perf stat" : "branch stacks"};
}

Lines Describe(Feature, const CacheFeature& body) {
  Lines lines = {"CPU caches"};
  for (const CacheLevel& cache : body.levels) {
    lines.push_back(fmt::format("  L{} {}: {}, {} ways, {} sets, lines of {} bytes, CPUs {}",
                                cache.level, cache.type, cache.size, cache.ways, cache.sets,
                                cache.line_size, cache.cpus));
  }
  return lines;
}

std::string Seconds(uint64_t nanoseconds) {
  return fmt::format("{}.{:09}", nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000);
}

Lines Describe(Feature, const SampleTime& body) {
  const uint64_t length = body.last >= body.first ? body.last - body.first : 0;
  return {fmt::format("samples: from {} to {} s, {} s", Seconds(body.first), Seconds(body.last),
                      Seconds(length))};
}

// "0-7,16": the bits set; after `limit` ranges "…". Text does not outgrow a map made to be sparse.
std::string BitmapRanges(const Bitmap& bitmap, size_t limit) {
  std::string out;
  const auto set = [&bitmap](uint64_t i) {
    return i < bitmap.words.size() * 64 && ((bitmap.words[i / 64] >> (i % 64)) & 1) != 0;
  };
  for (uint64_t i = 0; i < bitmap.words.size() * 64; ++i) {
    if (!set(i)) continue;
    const uint64_t first = i;
    while (set(i + 1)) ++i;
    if (limit-- == 0) return out + ",…";
    if (!out.empty()) out += ',';
    out += first == i ? fmt::format("{}", first) : fmt::format("{}-{}", first, i);
  }
  return out;
}

// "24 GB": `count` blocks of `size` bytes, or what fits 64 bits of that.
std::string SizeText(uint64_t count, uint64_t size) {
  constexpr std::array<const char*, 5> kUnits = {"bytes", "kB", "MB", "GB", "TB"};
  uint64_t bytes = count != 0 && size > UINT64_MAX / count ? UINT64_MAX : count * size;
  size_t unit = 0;
  for (; unit + 1 < kUnits.size() && bytes >= 10 * 1024; ++unit) bytes /= 1024;
  return fmt::format("{} {}", bytes, kUnits[unit]);
}

Lines Describe(Feature, const MemTopology& body) {
  Lines lines = {fmt::format("memory blocks of {:#x} bytes", body.block_size)};
  for (const MemoryNode& node : body.nodes) {
    uint64_t present = 0;
    for (const uint64_t word : node.present.words) {
      present += static_cast<uint64_t>(std::popcount(word));
    }
    lines.push_back(fmt::format("  node {}: {}, of {} blocks {}", node.node,
                                SizeText(present, body.block_size), node.blocks,
                                BitmapRanges(node.present, 64)));
  }
  return lines;
}

Lines Describe(Feature, const ClockidResolution& body) {
  return {fmt::format("clock resolution: {} ns", body.nanoseconds)};
}

// linux/time.h.
std::string ClockName(uint32_t clockid) {
  switch (clockid) {
    case 0:
      return "realtime";
    case 1:
      return "monotonic";
    case 4:
      return "monotonic_raw";
    case 7:
      return "boottime";
    case 11:
      return "tai";
    default:
      return fmt::format("{}", clockid);
  }
}

Lines Describe(Feature, const ClockData& body) {
  return {fmt::format("reference time: {}.{:09} UTC is {} s of clock {}",
                      DateText(body.wall_clock_ns / 1'000'000'000),
                      body.wall_clock_ns % 1'000'000'000, Seconds(body.clockid_ns),
                      ClockName(body.clockid))};
}

Lines Describe(Feature, const DirFormat& body) {
  return {fmt::format("directory format: version {}", body.version)};
}

// linux/bpf.h, struct bpf_prog_info: u32 type, u32 id, u8 tag[8], …; char name[16] at 64.
Lines Describe(Feature, const BpfProgInfos& body) {
  Lines lines = {fmt::format("BPF programs: {}", body.programs.size())};
  for (const BpfProgInfo& program : body.programs) {
    std::string text = fmt::format("  {} bytes", program.info.size() + program.data.size());
    if (program.info.size() >= 80) {
      ByteReader in(program.info);
      in.Skip(8);
      const ByteView tag = in.Bytes(8);
      in.Seek(64);
      text = fmt::format("  {}, tag {},{}", TextUpToNul(in.Bytes(16)), HexBytes(tag, 8), text);
    }
    lines.push_back(std::move(text));
  }
  return lines;
}

Lines Describe(Feature, const BtfBlobs& body) {
  Lines lines = {fmt::format("BTF of BPF programs: {}", body.blobs.size())};
  for (const BtfBlob& blob : body.blobs) {
    lines.push_back(fmt::format("  id {}: {} bytes", blob.id, blob.bytes.size()));
  }
  return lines;
}

Lines Describe(Feature, const Features::Compressed& body) {
  return {fmt::format("compressed with {}, level {}, ratio {}, buffers of {} bytes",
                      body.type == 1 ? "zstd" : fmt::format("type {}", body.type), body.level,
                      body.ratio, body.mmap_len)};
}

std::string CapsText(const std::vector<PmuCap>& caps) {
  std::string text;
  for (const PmuCap& cap : caps) {
    text += fmt::format("{} {} = {}", text.empty() ? "" : ",", cap.name, cap.value);
  }
  return text.empty() ? " none" : text;
}

Lines Describe(Feature, const CpuPmuCaps& body) { return {"PMU cpu:" + CapsText(body.caps)}; }

Lines Describe(Feature, const PmuCaps& body) {
  Lines lines;
  for (const OnePmuCaps& pmu : body.pmus) {
    lines.push_back("PMU " + pmu.pmu + ":" + CapsText(pmu.caps));
  }
  return lines;
}

Lines Describe(Feature, const HybridTopology& body) {
  Lines lines;
  for (const HybridPmu& pmu : body.pmus) {
    lines.push_back(fmt::format("PMU {} is that of CPUs {}", pmu.pmu, pmu.cpus));
  }
  return lines;
}

Lines Describe(Feature, const CpuDomainInfo& body) {
  Lines lines = {fmt::format("scheduling domains: {} levels", body.levels)};
  for (const CpuDomains& cpu : body.cpus) {
    for (const SchedDomain& domain : cpu.domains) {
      lines.push_back(fmt::format("  CPU {}: level {} {}, CPUs {}", cpu.cpu, domain.level,
                                  domain.name, domain.cpu_list));
    }
  }
  return lines;
}

Lines Describe(Feature, const EMachine& body) {
  return {fmt::format("ELF machine: {}, flags {:#x}", body.machine, body.flags)};
}

Lines Describe(Feature, const CacheLineSize& body) {
  return {fmt::format("cache line: {} bytes", body.bytes)};
}

Lines Describe(Feature, const PacMaskFeature& body) {
  return {"pointer authentication: " +
          MaskText(body.enabled_keys, body.insn_mask, body.data_mask, body.source)};
}

Lines Describe(Feature, const StackEnds& body) {
  Lines lines = {"stacks unwound while recording:"};
  for (const StackEndCount& count : body.ends) {
    lines.push_back(fmt::format("  {} ended: {}", count.samples, count.end));
  }
  return lines;
}

Lines Describe(Feature, const FunctionNames& body) {
  size_t functions = 0;
  for (const ModuleFunctions& module : body.modules) functions += module.functions.size();
  for (const KernelFunctions& kernel : body.kernels) functions += kernel.functions.size();
  return {fmt::format("names of functions: {}, of {} binaries", functions,
                      body.modules.size() + body.kernels.size())};
}

Lines Describe(Feature, const AnonymizedMark& body) {
  constexpr auto kHidden = std::to_array<std::string_view>(
      {"--addresses: addresses are not those of the recorded machine",
       "--identity: addresses, users, processes, files and times are not those of the recorded "
       "machine",
       "--symbols: addresses, users, processes, files and times, modules and functions are not "
       "those of the recorded machine"});
  if (body.level >= kHidden.size()) return {fmt::format("anonymised at level {}", body.level)};
  return {fmt::format("anonymised with {}", kHidden[body.level])};
}

Lines Describe(Feature feature, const UnknownFeature& body) {
  return {fmt::format("{}: {:#x} bytes", FeatureName(static_cast<uint32_t>(feature)),
                      body.bytes.size())};
}

}  // namespace

// Days to a date as Howard Hinnant's "chrono-Compatible Low-Level Date Algorithms" has it, which is
// what year_month_day does; its years end at 32767.
std::string DateText(uint64_t seconds) {
  constexpr uint64_t kDay = 86400;
  constexpr uint64_t kLastDay = 11'248'737;  // of the year 32767
  const std::chrono::sys_days day{
      std::chrono::days(static_cast<int>(std::min(seconds / kDay, kLastDay)))};
  const std::chrono::year_month_day date(day);
  const uint64_t rest = seconds % kDay;
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     rest / 3600, rest / 60 % 60, rest % 60);
}

std::vector<std::string> DescribeFeature(uint32_t feature, ByteView bytes, Endian endian,
                                         uint32_t nr_cpus) {
  return WithFeatureBody(feature, [&]<typename Body>() -> Lines {
    const std::optional<Body> body = DecodeFeatureAs<Body>(bytes, endian, nr_cpus);
    if (!body) {
      return {fmt::format("{}: damaged, {:#x} bytes", FeatureName(feature), bytes.size())};
    }
    Lines lines = Describe(static_cast<Feature>(feature), *body);
    if (lines.empty()) lines.push_back(FeatureName(feature) + ": nothing in it");
    return lines;
  });
}

std::vector<std::string> DescribeFeatures(const Features& features, Endian endian) {
  const uint32_t nr_cpus = features.nr_cpus ? features.nr_cpus->second : 0;
  Lines lines;
  for (const auto& [feature, bytes] : features.raw) {
    Lines more;
    const auto groups = feature == static_cast<uint32_t>(Feature::kGroupDesc)
                            ? DecodeFeatureAs<GroupDesc>(bytes, endian)
                            : std::nullopt;
    if (groups && !groups->groups.empty() && !features.event_desc.empty()) {
      more = DescribeGroups(*groups, features.event_desc);
    } else {
      more = DescribeFeature(feature, bytes, endian, nr_cpus);
    }
    lines.insert(lines.end(), std::make_move_iterator(more.begin()),
                 std::make_move_iterator(more.end()));
  }
  std::string absent;
  for (uint32_t feature = 1; feature <= static_cast<uint32_t>(Feature::kClnSize); ++feature) {
    if (!features.raw.contains(feature)) absent += " " + FeatureName(feature);
  }
  if (!absent.empty()) lines.push_back("absent features:" + absent);
  return lines;
}

}  // namespace stackreel::perfdata
