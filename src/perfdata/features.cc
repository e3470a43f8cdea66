#include "perfdata/features.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "perfdata/feature_layout.h"
#include "perfdata/record_layout.h"

namespace stackreel::perfdata {

namespace {

template <typename T>
std::optional<T> DecodeAs(ByteView bytes, Endian endian) {
  ByteReader in(bytes, endian);
  T value;
  NoTrace trace;
  DecodeFields(in, value, WireScope(), trace);
  if (!in.ok()) return std::nullopt;
  return value;
}

// u32 nr, u32 attr_size; nr × { attr, u32 nr_ids, name, u64 ids[nr_ids] }.
bool DecodeEventDesc(ByteView bytes, Endian endian, std::vector<Event>& out) {
  ByteReader in(bytes, endian);
  const uint32_t count = in.U32();
  const uint32_t attr_size = in.U32();
  std::vector<Event> events;
  for (uint32_t i = 0; i < count; ++i) {
    Result<Attr> attr = DecodeAttr(in.Bytes(attr_size), endian);
    const uint32_t ids = in.U32();
    Event event;
    FeatureString::Decode(in, event.name, WireScope());
    if (!attr || !in.ok() || ids > in.remaining() / 8) return false;
    event.attr = std::move(*attr);
    for (uint32_t k = 0; k < ids; ++k) event.ids.push_back(in.U64());
    events.push_back(std::move(event));
  }
  out = std::move(events);
  return in.ok();
}

struct BuildIdList {
  std::vector<HeaderBuildId> ids;
  std::vector<uint16_t> misc;
};

// Records of { u32 type (often 0), u16 misc, u16 size } and HEADER_BUILD_ID's payload. The first
// perf versions had no pid in it:
//   now   pid (4)  build_id (20) + 4   filename
//   old            build_id (20) + 4   filename
// so that the kernel's "[kernel.kallsyms]", read as now, begins at its fifth character.
bool DecodeBuildIds(ByteView bytes, Endian endian, bool with_pid, BuildIdList& out) {
  ByteReader in(bytes, endian);
  while (in.ok() && !in.AtEnd()) {
    in.U32();
    const uint16_t misc = in.U16();
    const uint16_t size = in.U16();
    if (!in.ok() || size < 8) return false;
    ByteReader body(in.Bytes(size - 8), endian);
    HeaderBuildId id;
    const WireScope scope{misc, nullptr};
    if (with_pid) {
      NoTrace trace;
      DecodeFields(body, id, scope, trace);
    } else {
      id.pid = -1;
      HeaderBuildIdBytes::Decode(body, id.build_id, scope);
      PaddedText<64>::Decode(body, id.filename, scope);
    }
    if (!in.ok() || !body.ok()) return false;
    out.ids.push_back(std::move(id));
    out.misc.push_back(misc);
  }
  return in.ok();
}

bool DecodeBuildIds(ByteView bytes, Endian endian, Features& features) {
  BuildIdList list;
  bool good = DecodeBuildIds(bytes, endian, /*with_pid=*/true, list);
  if (std::any_of(list.ids.begin(), list.ids.end(), [](const HeaderBuildId& id) {
        return id.filename.starts_with("nel.kallsyms]");
      })) {
    list = BuildIdList();
    good = DecodeBuildIds(bytes, endian, /*with_pid=*/false, list);
  }
  features.build_ids = std::move(list.ids);
  features.build_id_misc = std::move(list.misc);
  return good;
}

// "name: NAME" and "ID: N" of a tracefs format file.
void AddTracepoint(std::string_view system, std::string_view format, Features& features) {
  const auto value_of = [format](std::string_view key) {
    const size_t at = format.starts_with(key) ? 0 : format.find("\n" + std::string(key));
    if (at == std::string_view::npos) return std::string_view();
    std::string_view rest = format.substr(at + key.size() + (at == 0 ? 0 : 1));
    return rest.substr(0, rest.find('\n'));
  };
  const std::string_view name = value_of("name: ");
  const std::string_view number = value_of("ID: ");
  uint64_t id = 0;
  const auto parsed = std::from_chars(number.data(), number.data() + number.size(), id);
  if (name.empty() || number.empty() || parsed.ec != std::errc()) return;
  features.tracepoint_names[id] = fmt::format("{}:{}", system, name);
}

// The head of trace-cmd's format, version 6:
//   17 08 44 "tracing" version\0 endian:u8 long_size:u8 page_size:u32
//   "header_page\0" size:u64 text   "header_event\0" size:u64 text
//   count:u32 { size:u64 text }     of ftrace's own events
//   count:u32 { system\0 count:u32 { size:u64 text } }
bool DecodeTracepointNames(ByteView bytes, Features& features) {
  static constexpr std::string_view kMagic = "\x17\x08\x44tracing";
  if (!AsText(bytes).starts_with(kMagic)) return false;
  ByteReader head(bytes);
  head.Skip(kMagic.size());
  head.CString();
  const Endian endian = head.U8() == 0 ? Endian::kLittle : Endian::kBig;
  ByteReader in(bytes, endian);
  in.Seek(head.offset());
  in.Skip(1 + 4);
  for (int i = 0; i < 2; ++i) {
    in.CString();
    in.Skip(in.U64());
  }
  const uint32_t ftrace_events = in.U32();
  for (uint32_t i = 0; i < ftrace_events && in.ok(); ++i) in.Skip(in.U64());
  const uint32_t systems = in.U32();
  for (uint32_t i = 0; i < systems && in.ok(); ++i) {
    const std::string_view system = in.CString();
    const uint32_t events = in.U32();
    for (uint32_t k = 0; k < events && in.ok(); ++k) {
      AddTracepoint(system, AsText(in.Bytes(in.U64())), features);
    }
  }
  return head.ok() && in.ok();
}

// Whether `bytes` are a text feature, which goes to `text`.
bool DecodeText(ByteView bytes, Endian endian, std::string& text) {
  std::optional<HostText> value = DecodeAs<HostText>(bytes, endian);
  if (value) text = std::move(value->text);
  return value.has_value();
}

template <typename T>
bool DecodeOptional(ByteView bytes, Endian endian, std::optional<T>& out) {
  out = DecodeAs<T>(bytes, endian);
  return out.has_value();
}

bool DecodeNumbers(Feature feature, ByteView bytes, Endian endian, Features& features) {
  if (feature == Feature::kNrCpus) {
    const auto cpus = DecodeAs<NrCpus>(bytes, endian);
    if (cpus) features.nr_cpus.emplace(cpus->online, cpus->available);
    return cpus.has_value();
  }
  if (feature == Feature::kTotalMem) {
    const auto memory = DecodeAs<TotalMem>(bytes, endian);
    if (memory) features.total_mem_kb = memory->kilobytes;
    return memory.has_value();
  }
  if (feature == Feature::kSampleTime) {
    const auto times = DecodeAs<SampleTime>(bytes, endian);
    if (times) features.sample_time.emplace(times->first, times->last);
    return times.has_value();
  }
  const auto resolution = DecodeAs<ClockidResolution>(bytes, endian);
  if (resolution) features.clockid_res_ns = resolution->nanoseconds;
  return resolution.has_value();
}

bool DecodeKnown(Feature feature, ByteView bytes, Endian endian, Features& features) {
  switch (feature) {
    case Feature::kTracingData:
      return DecodeTracepointNames(bytes, features);
    case Feature::kBuildId:
      return DecodeBuildIds(bytes, endian, features);
    case Feature::kHostname:
      return DecodeText(bytes, endian, features.hostname);
    case Feature::kOsRelease:
      return DecodeText(bytes, endian, features.os_release);
    case Feature::kVersion:
      return DecodeText(bytes, endian, features.version);
    case Feature::kArch:
      return DecodeText(bytes, endian, features.arch);
    case Feature::kCpuDesc:
      return DecodeText(bytes, endian, features.cpu_desc);
    case Feature::kCpuId:
      return DecodeText(bytes, endian, features.cpu_id);
    case Feature::kCmdline: {
      auto words = DecodeAs<Cmdline>(bytes, endian);
      if (words) features.cmdline = std::move(words->words);
      return words.has_value();
    }
    case Feature::kEventDesc:
      return DecodeEventDesc(bytes, endian, features.event_desc);
    case Feature::kPmuMappings: {
      const auto mappings = DecodeAs<PmuMappings>(bytes, endian);
      if (!mappings) return false;
      for (const PmuMapping& pmu : mappings->pmus) features.pmu_names[pmu.type] = pmu.name;
      return true;
    }
    case Feature::kNrCpus:
    case Feature::kTotalMem:
    case Feature::kSampleTime:
    case Feature::kClockid:
      return DecodeNumbers(feature, bytes, endian, features);
    case Feature::kCompressed:
      return DecodeOptional(bytes, endian, features.compressed);
    default:
      return true;
  }
}

}  // namespace

void DecodeFeature(uint32_t feature, ByteView bytes, Endian endian, Features& features,
                   Counters& counters) {
  features.raw[feature].assign(bytes.begin(), bytes.end());
  if (!DecodeKnown(static_cast<Feature>(feature), bytes, endian, features)) {
    counters.Add("perfdata.bad_feature");
  }
}

std::string FeatureName(uint32_t feature) {
  switch (static_cast<Feature>(feature)) {
    case Feature::kTracingData:
      return "TRACING_DATA";
    case Feature::kBuildId:
      return "BUILD_ID";
    case Feature::kHostname:
      return "HOSTNAME";
    case Feature::kOsRelease:
      return "OSRELEASE";
    case Feature::kVersion:
      return "VERSION";
    case Feature::kArch:
      return "ARCH";
    case Feature::kNrCpus:
      return "NRCPUS";
    case Feature::kCpuDesc:
      return "CPUDESC";
    case Feature::kCpuId:
      return "CPUID";
    case Feature::kTotalMem:
      return "TOTAL_MEM";
    case Feature::kCmdline:
      return "CMDLINE";
    case Feature::kEventDesc:
      return "EVENT_DESC";
    case Feature::kCpuTopology:
      return "CPU_TOPOLOGY";
    case Feature::kNumaTopology:
      return "NUMA_TOPOLOGY";
    case Feature::kBranchStack:
      return "BRANCH_STACK";
    case Feature::kPmuMappings:
      return "PMU_MAPPINGS";
    case Feature::kGroupDesc:
      return "GROUP_DESC";
    case Feature::kAuxtrace:
      return "AUXTRACE";
    case Feature::kStat:
      return "STAT";
    case Feature::kCache:
      return "CACHE";
    case Feature::kSampleTime:
      return "SAMPLE_TIME";
    case Feature::kMemTopology:
      return "MEM_TOPOLOGY";
    case Feature::kClockid:
      return "CLOCKID";
    case Feature::kDirFormat:
      return "DIR_FORMAT";
    case Feature::kBpfProgInfo:
      return "BPF_PROG_INFO";
    case Feature::kBpfBtf:
      return "BPF_BTF";
    case Feature::kCompressed:
      return "COMPRESSED";
    case Feature::kCpuPmuCaps:
      return "CPU_PMU_CAPS";
    case Feature::kClockData:
      return "CLOCK_DATA";
    case Feature::kHybridTopology:
      return "HYBRID_TOPOLOGY";
    case Feature::kPmuCaps:
      return "PMU_CAPS";
    case Feature::kCpuDomainInfo:
      return "CPU_DOMAIN_INFO";
    case Feature::kEMachine:
      return "E_MACHINE";
    case Feature::kClnSize:
      return "CLN_SIZE";
    case Feature::kStackreelPacMask:
      return "STACKREEL_PAC_MASK";
  }
  return fmt::format("FEATURE_{}", feature);
}

std::vector<uint8_t> EncodeString(const std::string& text, Endian endian) {
  ByteWriter out(endian);
  FeatureString::Encode(out, text, WireScope());
  return out.Take();
}

std::vector<uint8_t> EncodeStringList(const std::vector<std::string>& list, Endian endian) {
  ByteWriter out(endian);
  FeatureStrings::Encode(out, list, WireScope());
  return out.Take();
}

std::vector<uint8_t> EncodeEventDesc(const std::vector<Event>& events, Endian endian) {
  uint32_t attr_size = kAttrSizeFirst;
  for (const Event& event : events) attr_size = std::max(attr_size, SmallestAttrSize(event.attr));
  ByteWriter out(endian);
  out.U32(static_cast<uint32_t>(events.size()));
  out.U32(attr_size);
  for (const Event& event : events) {
    out.Bytes(EncodeAttrSized(event.attr, endian, attr_size));
    out.U32(static_cast<uint32_t>(event.ids.size()));
    FeatureString::Encode(out, event.name, WireScope());
    for (const uint64_t id : event.ids) out.U64(id);
  }
  return out.Take();
}

Result<std::vector<uint8_t>> EncodeBuildIds(const std::vector<HeaderBuildId>& ids,
                                            const std::vector<uint16_t>& misc, Endian endian) {
  std::vector<uint8_t> out;
  for (size_t i = 0; i < ids.size(); ++i) {
    Record record;
    record.type = static_cast<uint32_t>(RecordType::kHeaderBuildId);
    record.misc = i < misc.size() ? misc[i] : 0;
    record.body = ids[i];
    TRY_ASSIGN(const std::vector<uint8_t> bytes, EncodeRecord(record, RecordContext{endian, {}}));
    out.insert(out.end(), bytes.begin(), bytes.end());
  }
  return out;
}

}  // namespace stackreel::perfdata
