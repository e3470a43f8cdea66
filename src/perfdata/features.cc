#include "perfdata/features.h"

#include <fmt/format.h>

#include <algorithm>

#include "perfdata/feature_layout.h"
#include "perfdata/tracing_data.h"

namespace stackreel::perfdata {

namespace {

// Adopt(feature, body, features) puts what a section said into `features`; false if its content is
// not what it should be. Most sections are only shown, from their raw bytes.
template <typename Body>
bool Adopt(Feature, const Body&, Features&) {
  return true;
}

bool Adopt(Feature, const TracingData& body, Features& features) {
  return DecodeTracepointNames(body.bytes, features.tracepoint_names);
}

bool Adopt(Feature, const AnonymizedMark& /*body*/, Features& features) {
  features.anonymized = true;
  return true;
}

bool Adopt(Feature, const BuildIdList& body, Features& features) {
  features.build_ids = body.ids;
  features.build_id_misc = body.misc;
  return true;
}

bool Adopt(Feature, const HostName& body, Features& features) {
  features.hostname = body.text;
  return true;
}

bool Adopt(Feature feature, const ReleaseText& body, Features& features) {
  (feature == Feature::kOsRelease ? features.os_release : features.version) = body.text;
  return true;
}

bool Adopt(Feature, const ArchText& body, Features& features) {
  features.arch = body.text;
  return true;
}

bool Adopt(Feature feature, const CpuText& body, Features& features) {
  (feature == Feature::kCpuDesc ? features.cpu_desc : features.cpu_id) = body.text;
  return true;
}

bool Adopt(Feature, const NrCpus& body, Features& features) {
  features.nr_cpus.emplace(body.online, body.available);
  return true;
}

bool Adopt(Feature, const TotalMem& body, Features& features) {
  features.total_mem_kb = body.kilobytes;
  return true;
}

bool Adopt(Feature, const Cmdline& body, Features& features) {
  features.cmdline = body.words;
  return true;
}

bool Adopt(Feature, const EventDesc& body, Features& features) {
  features.event_desc = body.events;
  return true;
}

bool Adopt(Feature, const SampleTime& body, Features& features) {
  features.sample_time.emplace(body.first, body.last);
  return true;
}

bool Adopt(Feature, const StackEnds& body, Features& features) {
  if (body.version != 1) return false;
  features.stack_ends.clear();  // of a pipe's several the last counts
  for (const StackEndCount& count : body.ends) features.stack_ends[count.end] += count.samples;
  return true;
}

bool Adopt(Feature, const PmuMappings& body, Features& features) {
  for (const PmuMapping& pmu : body.pmus) features.pmu_names[pmu.type] = pmu.name;
  return true;
}

bool Adopt(Feature, const Features::Compressed& body, Features& features) {
  features.compressed = body;
  return true;
}

bool Adopt(Feature, const ClockidResolution& body, Features& features) {
  features.clockid_res_ns = body.nanoseconds;
  return true;
}

}  // namespace

void DecodeFeature(uint32_t feature, ByteView bytes, Endian endian, Features& features,
                   Counters& counters) {
  features.raw[feature].assign(bytes.begin(), bytes.end());
  const uint32_t nr_cpus = features.nr_cpus ? features.nr_cpus->second : 0;
  const bool good = WithFeatureBody(feature, [&]<typename Body>() {
    const std::optional<Body> body = DecodeFeatureAs<Body>(bytes, endian, nr_cpus);
    return body && Adopt(static_cast<Feature>(feature), *body, features);
  });
  if (!good) counters.Add("perfdata.bad_feature");
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
    case Feature::kStackreelFunctions:
      return "STACKREEL_FUNCTIONS";
    case Feature::kStackreelStackEnds:
      return "STACKREEL_STACK_ENDS";
    case Feature::kStackreelAnonymized:
      return "STACKREEL_ANONYMIZED";
  }
  return fmt::format("FEATURE_{}", feature);
}

std::vector<uint8_t> EncodeString(const std::string& text, Endian endian) {
  return EncodeFeature(ArchText{text}, endian);
}

std::vector<uint8_t> EncodeStringList(const std::vector<std::string>& list, Endian endian) {
  return EncodeFeature(Cmdline{list}, endian);
}

std::vector<uint8_t> EncodeEventDesc(const std::vector<Event>& events, Endian endian) {
  return EncodeFeature(EventDesc{events}, endian);
}

std::vector<uint8_t> EncodeGroupDesc(const std::vector<EventGroup>& groups, Endian endian) {
  return EncodeFeature(GroupDesc{groups}, endian);
}

std::vector<uint8_t> EncodePacMask(uint64_t enabled_keys, uint64_t insn_mask, uint64_t data_mask,
                                   Endian endian) {
  return EncodeFeature(PacMaskFeature{.source = PacMask::kAskedOfCpu,
                                      .enabled_keys = enabled_keys,
                                      .insn_mask = insn_mask,
                                      .data_mask = data_mask},
                       endian);
}

std::optional<std::pair<uint32_t, ByteView>> FeatureOf(const EventUpdate& update, Endian endian) {
  constexpr uint32_t kVersion = 1;
  if (update.type != kUpdateFeature || update.id != 0) return std::nullopt;
  ByteReader in(update.bytes, endian);
  const uint32_t version = in.U32();
  const uint32_t feature = in.U32();
  const uint64_t size = in.U64();
  const ByteView bytes = in.Bytes(size);
  if (!in.ok() || version != kVersion) return std::nullopt;
  return std::pair(feature, bytes);
}

EventUpdate MakeFeatureUpdate(uint32_t feature, ByteView bytes, Endian endian) {
  ByteWriter out(endian);
  out.U32(1);
  out.U32(feature);
  out.U64(bytes.size());
  out.Bytes(bytes);
  out.Zeros((8 - bytes.size() % 8) % 8);
  EventUpdate update;
  update.type = kUpdateFeature;
  update.bytes = out.Take();
  return update;
}

std::vector<uint8_t> EncodeStackEnds(const std::map<std::string, uint64_t>& ends, Endian endian) {
  StackEnds body;
  for (const auto& [end, samples] : ends) body.ends.push_back({samples, end});
  return EncodeFeature(body, endian);
}

Result<std::vector<uint8_t>> EncodeBuildIds(const std::vector<HeaderBuildId>& ids,
                                            const std::vector<uint16_t>& misc, Endian endian) {
  for (const HeaderBuildId& id : ids) {
    if (id.filename.size() > kMaxBuildIdFilename) {
      return Fail(
          ErrorKind::kUnsupported,
          fmt::format("a filename of {} bytes does not fit a build-id record", id.filename.size()));
    }
  }
  BuildIdList list{ids, misc};
  list.misc.resize(ids.size());
  return EncodeFeature(list, endian);
}

}  // namespace stackreel::perfdata
