// The feature sections as structures, their layouts, and which feature has which. They follow what
// perf 6.1 writes and, for the bits from 200 up, our own format page.
#pragma once

#include <string>
#include <vector>

#include "perfdata/event_feature_layout.h"
#include "perfdata/features.h"
#include "perfdata/machine_feature_layout.h"

namespace stackreel::perfdata {

struct TracingData {  // trace-cmd's format, version 6; see TracepointNames
  std::vector<uint8_t> bytes;
};
template <>
inline constexpr auto kLayout<TracingData> =
    Layout<TracingData>(F<RestBytes>("bytes", &TracingData::bytes, Sensitivity::kPayload));

// One text.
template <Sensitivity kSensitivity>
struct MachineText {
  std::string text;
};
template <Sensitivity kSensitivity>
inline constexpr auto kLayout<MachineText<kSensitivity>> = Layout<MachineText<kSensitivity>>(
    F<FeatureString>("text", &MachineText<kSensitivity>::text, kSensitivity));
using HostName = MachineText<Sensitivity::kHostName>;
using ReleaseText = MachineText<Sensitivity::kRelease>;  // OSRELEASE, VERSION
using ArchText = MachineText<Sensitivity::kNone>;
using CpuText = MachineText<Sensitivity::kMachine>;  // CPUDESC, CPUID

// perf's own document has these two the other way round; perf shows the first as available.
struct NrCpus {
  uint32_t available = 0, online = 0;
};
template <>
inline constexpr auto kLayout<NrCpus> =
    Layout<NrCpus>(F("available", &NrCpus::available, Sensitivity::kNone),
                   F("online", &NrCpus::online, Sensitivity::kNone));

struct TotalMem {
  uint64_t kilobytes = 0;
};
template <>
inline constexpr auto kLayout<TotalMem> =
    Layout<TotalMem>(F("kilobytes", &TotalMem::kilobytes, Sensitivity::kMachine));

struct Cmdline {
  std::vector<std::string> words;
};
template <>
inline constexpr auto kLayout<Cmdline> =
    Layout<Cmdline>(F<FeatureStrings>("words", &Cmdline::words, Sensitivity::kCommandLine));

struct SampleTime {
  uint64_t first = 0, last = 0;
};
template <>
inline constexpr auto kLayout<SampleTime> =
    Layout<SampleTime>(F("first", &SampleTime::first, Sensitivity::kTime),
                       F("last", &SampleTime::last, Sensitivity::kTime));

struct ClockidResolution {
  uint64_t nanoseconds = 0;
};
template <>
inline constexpr auto kLayout<ClockidResolution> = Layout<ClockidResolution>(
    F("nanoseconds", &ClockidResolution::nanoseconds, Sensitivity::kNone));

struct ClockData {
  uint32_t version = 0, clockid = 0;
  uint64_t wall_clock_ns = 0, clockid_ns = 0;  // one moment in both clocks
};
template <>
inline constexpr auto kLayout<ClockData> =
    Layout<ClockData>(F("version", &ClockData::version, Sensitivity::kNone),
                      F("clockid", &ClockData::clockid, Sensitivity::kNone),
                      F("wall_clock_ns", &ClockData::wall_clock_ns, Sensitivity::kWallTime),
                      F("clockid_ns", &ClockData::clockid_ns, Sensitivity::kTime));

struct DirFormat {
  uint64_t version = 0;
};
template <>
inline constexpr auto kLayout<DirFormat> =
    Layout<DirFormat>(F("version", &DirFormat::version, Sensitivity::kNone));

template <>
inline constexpr auto kLayout<Features::Compressed> = Layout<Features::Compressed>(
    F("version", &Features::Compressed::version, Sensitivity::kNone),
    F("type", &Features::Compressed::type, Sensitivity::kNone),
    F("level", &Features::Compressed::level, Sensitivity::kNone),
    F("ratio", &Features::Compressed::ratio, Sensitivity::kNone),
    F("mmap_len", &Features::Compressed::mmap_len, Sensitivity::kNone));

struct EMachine {  // of ELF: e_machine, e_flags
  uint32_t machine = 0, flags = 0;
};
template <>
inline constexpr auto kLayout<EMachine> =
    Layout<EMachine>(F("machine", &EMachine::machine, Sensitivity::kNone),
                     F("flags", &EMachine::flags, Sensitivity::kNone, Display::kHex));

struct CacheLineSize {
  uint32_t bytes = 0;
};
template <>
inline constexpr auto kLayout<CacheLineSize> =
    Layout<CacheLineSize>(F("bytes", &CacheLineSize::bytes, Sensitivity::kNone));

struct PacMaskFeature {  // ours
  uint32_t version = 1, source = 0;
  uint64_t enabled_keys = 0, insn_mask = 0, data_mask = 0;
};
template <>
inline constexpr auto kLayout<PacMaskFeature> = Layout<PacMaskFeature>(
    F("version", &PacMaskFeature::version, Sensitivity::kNone),
    F("source", &PacMaskFeature::source, Sensitivity::kNone),
    F("enabled_keys", &PacMaskFeature::enabled_keys, Sensitivity::kNone, Display::kHex),
    F("insn_mask", &PacMaskFeature::insn_mask, Sensitivity::kNone, Display::kHex),
    F("data_mask", &PacMaskFeature::data_mask, Sensitivity::kNone, Display::kHex));

struct StackEndCount {
  uint64_t samples = 0;
  std::string end;
};
template <>
inline constexpr auto kLayout<StackEndCount> =
    Layout<StackEndCount>(F("samples", &StackEndCount::samples, Sensitivity::kNone),
                          F<FeatureString>("end", &StackEndCount::end, Sensitivity::kNone));
struct StackEnds {  // ours
  uint32_t version = 1;
  std::vector<StackEndCount> ends;
};
template <>
inline constexpr auto kLayout<StackEnds> = Layout<StackEnds>(
    F("version", &StackEnds::version, Sensitivity::kNone), Each<uint32_t>("end", &StackEnds::ends));

struct NamedFunction {
  uint64_t start = 0, size = 0;  // place in the module's file
  std::string name;
};
template <>
inline constexpr auto kLayout<NamedFunction> =
    Layout<NamedFunction>(F("start", &NamedFunction::start, Sensitivity::kNone, Display::kHex),
                          F("size", &NamedFunction::size, Sensitivity::kNone, Display::kHex),
                          F<FeatureString>("name", &NamedFunction::name, Sensitivity::kFunction));
struct ModuleFunctions {
  std::string path;  // as mappings have it, but without " (deleted)"
  std::vector<NamedFunction> functions;
};
template <>
inline constexpr auto kLayout<ModuleFunctions> =
    Layout<ModuleFunctions>(F<FeatureString>("path", &ModuleFunctions::path, Sensitivity::kPath),
                            Each<uint32_t>("function", &ModuleFunctions::functions));
struct NamedKernelFunction {
  uint64_t start = 0, size = 0;  // address
  std::string name;
};
template <>
inline constexpr auto kLayout<NamedKernelFunction> = Layout<NamedKernelFunction>(
    F("start", &NamedKernelFunction::start, Sensitivity::kKernelAddress, Display::kHex),
    F("size", &NamedKernelFunction::size, Sensitivity::kNone, Display::kHex),
    F<FeatureString>("name", &NamedKernelFunction::name, Sensitivity::kFunction));
struct KernelFunctions {
  std::string path;
  std::vector<NamedKernelFunction> functions;
};
template <>
inline constexpr auto kLayout<KernelFunctions> =
    Layout<KernelFunctions>(F<FeatureString>("path", &KernelFunctions::path, Sensitivity::kPath),
                            Each<uint32_t>("function", &KernelFunctions::functions));
struct FunctionNames {  // ours
  uint32_t version = 1;
  std::vector<ModuleFunctions> modules;
  std::vector<KernelFunctions> kernels;  // the kernel and its modules
};
template <>
inline constexpr auto kLayout<FunctionNames> =
    Layout<FunctionNames>(F("version", &FunctionNames::version, Sensitivity::kNone),
                          Each<uint32_t>("module", &FunctionNames::modules),
                          Each<uint32_t>("kernel", &FunctionNames::kernels));
// Ours: the recording was anonymised, which is where `level` is known.
struct AnonymizedMark {
  uint32_t version = 1, level = 0;
};
template <>
inline constexpr auto kLayout<AnonymizedMark> =
    Layout<AnonymizedMark>(F("version", &AnonymizedMark::version, Sensitivity::kNone),
                           F("level", &AnonymizedMark::level, Sensitivity::kNone));

struct NoContent {};  // BRANCH_STACK, STAT
template <>
inline constexpr auto kLayout<NoContent> = Layout<NoContent>();

struct UnknownFeature {
  std::vector<uint8_t> bytes;
};
template <>
inline constexpr auto kLayout<UnknownFeature> =
    Layout<UnknownFeature>(F<RestBytes>("bytes", &UnknownFeature::bytes, Sensitivity::kPayload));

// Calls visit.operator()<Body>() with the structure that `feature` decodes into.
template <typename Visitor>
auto WithFeatureBody(uint32_t feature, Visitor&& visit) {
  switch (static_cast<Feature>(feature)) {
    case Feature::kTracingData:
      return visit.template operator()<TracingData>();
    case Feature::kBuildId:
      return visit.template operator()<BuildIdList>();
    case Feature::kHostname:
      return visit.template operator()<HostName>();
    case Feature::kOsRelease:
    case Feature::kVersion:
      return visit.template operator()<ReleaseText>();
    case Feature::kArch:
      return visit.template operator()<ArchText>();
    case Feature::kCpuDesc:
    case Feature::kCpuId:
      return visit.template operator()<CpuText>();
    case Feature::kNrCpus:
      return visit.template operator()<NrCpus>();
    case Feature::kTotalMem:
      return visit.template operator()<TotalMem>();
    case Feature::kCmdline:
      return visit.template operator()<Cmdline>();
    case Feature::kEventDesc:
      return visit.template operator()<EventDesc>();
    case Feature::kCpuTopology:
      return visit.template operator()<CpuTopology>();
    case Feature::kNumaTopology:
      return visit.template operator()<NumaTopology>();
    case Feature::kBranchStack:
    case Feature::kStat:
      return visit.template operator()<NoContent>();
    case Feature::kPmuMappings:
      return visit.template operator()<PmuMappings>();
    case Feature::kGroupDesc:
      return visit.template operator()<GroupDesc>();
    case Feature::kAuxtrace:
      return visit.template operator()<AuxtraceIndex>();
    case Feature::kCache:
      return visit.template operator()<CacheFeature>();
    case Feature::kSampleTime:
      return visit.template operator()<SampleTime>();
    case Feature::kMemTopology:
      return visit.template operator()<MemTopology>();
    case Feature::kClockid:
      return visit.template operator()<ClockidResolution>();
    case Feature::kDirFormat:
      return visit.template operator()<DirFormat>();
    case Feature::kBpfProgInfo:
      return visit.template operator()<BpfProgInfos>();
    case Feature::kBpfBtf:
      return visit.template operator()<BtfBlobs>();
    case Feature::kCompressed:
      return visit.template operator()<Features::Compressed>();
    case Feature::kCpuPmuCaps:
      return visit.template operator()<CpuPmuCaps>();
    case Feature::kClockData:
      return visit.template operator()<ClockData>();
    case Feature::kHybridTopology:
      return visit.template operator()<HybridTopology>();
    case Feature::kPmuCaps:
      return visit.template operator()<PmuCaps>();
    case Feature::kCpuDomainInfo:
      return visit.template operator()<CpuDomainInfo>();
    case Feature::kEMachine:
      return visit.template operator()<EMachine>();
    case Feature::kClnSize:
      return visit.template operator()<CacheLineSize>();
    case Feature::kStackreelPacMask:
      return visit.template operator()<PacMaskFeature>();
    case Feature::kStackreelFunctions:
      return visit.template operator()<FunctionNames>();
    case Feature::kStackreelStackEnds:
      return visit.template operator()<StackEnds>();
    case Feature::kStackreelAnonymized:
      return visit.template operator()<AnonymizedMark>();
  }
  return visit.template operator()<UnknownFeature>();
}

// Decodes a feature's bytes as T; nothing if they are too few. `nr_cpus`: NRCPUS's available, for
// CPU_TOPOLOGY; 0 if not known.
template <typename T>
std::optional<T> DecodeFeatureAs(ByteView bytes, Endian endian, uint32_t nr_cpus = 0) {
  ByteReader in(bytes, endian);
  T value;
  NoTrace trace;
  WireScope scope;
  scope.nr_cpus = nr_cpus;
  DecodeFields(in, value, scope, trace);
  if (!in.ok()) return std::nullopt;
  return value;
}
template <typename T>
std::vector<uint8_t> EncodeFeature(const T& value, Endian endian) {
  ByteWriter out(endian);
  EncodeFields(out, value, WireScope());
  return out.Take();
}

}  // namespace stackreel::perfdata
