// Feature sections that describe the machine: CPUs, memory, caches, scheduling domains.
#pragma once

#include <string>
#include <vector>

#include "perfdata/feature_wire.h"
#include "perfdata/layout.h"

namespace stackreel::perfdata {

struct CpuPlace {
  uint32_t core = 0, socket = 0;
};
template <>
inline constexpr auto kLayout<CpuPlace> =
    Layout<CpuPlace>(F("core", &CpuPlace::core, Sensitivity::kNone),
                     F("socket", &CpuPlace::socket, Sensitivity::kNone));

// strings cores, strings threads; newer: {u32 core, u32 socket}[CPUs]; newer still: strings dies,
// u32 die[CPUs]. The number of CPUs is NRCPUS's available.
struct CpuTopology {
  std::vector<std::string> core_siblings, thread_siblings;
  std::vector<CpuPlace> cpus;
  std::vector<std::string> die_siblings;
  std::vector<uint32_t> dies;
};
struct CpuPlaces {
  static constexpr size_t kMembers = 3;
  FieldInfo die_siblings;
  FieldInfo dies;

  template <typename Trace>
  void Decode(ByteReader& in, CpuTopology& value, const WireScope& scope, Trace& trace) const {
    // Without NRCPUS all that is left is taken for places.
    const size_t count = scope.nr_cpus != 0 ? scope.nr_cpus : in.remaining() / 8;
    if (in.AtEnd()) return;
    for (size_t i = 0; i < count && in.ok(); ++i) {
      trace.Enter("cpu", i);
      DecodeFields(in, value.cpus.emplace_back(), scope, trace);
      trace.Leave();
    }
    if (in.AtEnd()) return;
    size_t begin = in.offset();
    FeatureStrings::Decode(in, value.die_siblings, scope);
    trace.Field(die_siblings, in, begin, value.die_siblings);
    begin = in.offset();
    for (size_t i = 0; i < count && in.ok(); ++i) value.dies.push_back(in.U32());
    trace.Field(dies, in, begin, value.dies);
  }
  void Encode(ByteWriter& out, const CpuTopology& value, const WireScope& scope) const {
    for (const CpuPlace& place : value.cpus) EncodeFields(out, place, scope);
    if (value.die_siblings.empty() && value.dies.empty()) return;
    FeatureStrings::Encode(out, value.die_siblings, scope);
    for (const uint32_t die : value.dies) out.U32(die);
  }
  template <typename V, typename Visitor>
  void Visit(V& value, const WireScope& scope, Visitor& visit) const {
    for (auto& place : value.cpus) VisitFields(place, scope, visit);
    visit(die_siblings, value.die_siblings);
    visit(dies, value.dies);
  }
  template <typename Visitor>
  constexpr void List(Visitor& visit) const {
    ListFields<CpuPlace>(visit);
    visit(die_siblings);
    visit(dies);
  }
};
template <>
inline constexpr auto kLayout<CpuTopology> = Layout<CpuTopology>(
    F<FeatureStrings>("core_siblings", &CpuTopology::core_siblings, Sensitivity::kNone),
    F<FeatureStrings>("thread_siblings", &CpuTopology::thread_siblings, Sensitivity::kNone),
    CpuPlaces{FieldInfo("die_siblings", Sensitivity::kNone),
              FieldInfo("dies", Sensitivity::kNone)});

struct NumaNode {
  uint32_t node = 0;
  uint64_t total_kb = 0, free_kb = 0;
  std::string cpus;
};
template <>
inline constexpr auto kLayout<NumaNode> =
    Layout<NumaNode>(F("node", &NumaNode::node, Sensitivity::kNone),
                     F("total_kb", &NumaNode::total_kb, Sensitivity::kMachine),
                     F("free_kb", &NumaNode::free_kb, Sensitivity::kMachine),
                     F<FeatureString>("cpus", &NumaNode::cpus, Sensitivity::kNone));
struct NumaTopology {
  std::vector<NumaNode> nodes;
};
template <>
inline constexpr auto kLayout<NumaTopology> =
    Layout<NumaTopology>(Each<uint32_t>("node", &NumaTopology::nodes));

struct CacheLevel {
  uint32_t level = 0, line_size = 0, sets = 0, ways = 0;
  std::string type, size, cpus;
};
template <>
inline constexpr auto kLayout<CacheLevel> =
    Layout<CacheLevel>(F("level", &CacheLevel::level, Sensitivity::kNone),
                       F("line_size", &CacheLevel::line_size, Sensitivity::kNone),
                       F("sets", &CacheLevel::sets, Sensitivity::kNone),
                       F("ways", &CacheLevel::ways, Sensitivity::kNone),
                       F<FeatureString>("type", &CacheLevel::type, Sensitivity::kNone),
                       F<FeatureString>("size", &CacheLevel::size, Sensitivity::kNone),
                       F<FeatureString>("cpus", &CacheLevel::cpus, Sensitivity::kNone));
struct CacheFeature {
  uint32_t version = 1;
  std::vector<CacheLevel> levels;
};
template <>
inline constexpr auto kLayout<CacheFeature> =
    Layout<CacheFeature>(F("version", &CacheFeature::version, Sensitivity::kNone),
                         Each<uint32_t>("cache", &CacheFeature::levels));

struct Bitmap {
  uint64_t bits = 0;
  std::vector<uint64_t> words;  // bit i is bit i % 64 of word i / 64
};
// u64 node, u64 blocks; then a bitmap of the blocks that are there: u64 bits, u64 words.
struct MemoryNode {
  uint64_t node = 0, blocks = 0;
  Bitmap present;
};
struct BitmapWords {
  static void Decode(ByteReader& in, Bitmap& value, const WireScope&) {
    value.bits = in.U64();
    if (value.bits / 8 > in.remaining()) return FailRead(in);
    for (uint64_t i = 0; i < (value.bits + 63) / 64; ++i) value.words.push_back(in.U64());
  }
  static void Encode(ByteWriter& out, const Bitmap& value, const WireScope&) {
    out.U64(value.bits);
    for (const uint64_t word : value.words) out.U64(word);
  }
};
template <>
inline constexpr auto kLayout<MemoryNode> =
    Layout<MemoryNode>(F("node", &MemoryNode::node, Sensitivity::kNone),
                       F("blocks", &MemoryNode::blocks, Sensitivity::kMachine),
                       F<BitmapWords>("present", &MemoryNode::present, Sensitivity::kMachine));
struct MemTopology {
  uint64_t version = 1, block_size = 0;
  std::vector<MemoryNode> nodes;
};
template <>
inline constexpr auto kLayout<MemTopology> = Layout<MemTopology>(
    F("version", &MemTopology::version, Sensitivity::kNone),
    F("block_size", &MemTopology::block_size, Sensitivity::kNone, Display::kHex),
    Each<uint64_t>("node", &MemTopology::nodes));

struct HybridPmu {
  std::string pmu, cpus;
};
template <>
inline constexpr auto kLayout<HybridPmu> =
    Layout<HybridPmu>(F<FeatureString>("pmu", &HybridPmu::pmu, Sensitivity::kNone),
                      F<FeatureString>("cpus", &HybridPmu::cpus, Sensitivity::kNone));
struct HybridTopology {
  std::vector<HybridPmu> pmus;
};
template <>
inline constexpr auto kLayout<HybridTopology> =
    Layout<HybridTopology>(Each<uint32_t>("pmu", &HybridTopology::pmus));

// u32 schedstat version, u32 domain levels, then to the end {u32 cpu, u32 count, domains[count]},
// a domain being {u32 level, string name (version 17 and later), string cpumask, string cpulist}.
struct SchedDomain {
  uint32_t level = 0;
  std::string name, cpu_mask, cpu_list;
};
struct CpuDomains {
  uint32_t cpu = 0;
  std::vector<SchedDomain> domains;
};
struct CpuDomainInfo {
  uint32_t schedstat_version = 0, levels = 0;
  std::vector<CpuDomains> cpus;
};
struct NamesDomains {
  template <typename T>
  constexpr bool operator()(const WireScope& scope, const T&) const {
    return scope.schedstat_version >= 17;
  }
};
template <>
inline constexpr auto kLayout<SchedDomain> = Layout<SchedDomain>(
    F("level", &SchedDomain::level, Sensitivity::kNone),
    When(NamesDomains(), F<FeatureString>("name", &SchedDomain::name, Sensitivity::kNone)),
    F<FeatureString>("cpu_mask", &SchedDomain::cpu_mask, Sensitivity::kNone),
    F<FeatureString>("cpu_list", &SchedDomain::cpu_list, Sensitivity::kNone));
template <>
inline constexpr auto kLayout<CpuDomains> = Layout<CpuDomains>(
    F("cpu", &CpuDomains::cpu, Sensitivity::kNone), Each<uint32_t>("domain", &CpuDomains::domains));
struct RestOfCpuDomains {
  static constexpr size_t kMembers = 1;
  template <typename Trace>
  void Decode(ByteReader& in, CpuDomainInfo& value, const WireScope& outer, Trace& trace) const {
    WireScope scope = outer;
    scope.schedstat_version = value.schedstat_version;
    for (size_t i = 0; in.ok() && !in.AtEnd(); ++i) {
      trace.Enter("cpus", i);
      DecodeFields(in, value.cpus.emplace_back(), scope, trace);
      trace.Leave();
    }
  }
  void Encode(ByteWriter& out, const CpuDomainInfo& value, const WireScope& outer) const {
    WireScope scope = outer;
    scope.schedstat_version = value.schedstat_version;
    for (const CpuDomains& cpu : value.cpus) EncodeFields(out, cpu, scope);
  }
  template <typename V, typename Visitor>
  void Visit(V& value, const WireScope& outer, Visitor& visit) const {
    WireScope scope = outer;
    scope.schedstat_version = value.schedstat_version;
    for (auto& cpu : value.cpus) VisitFields(cpu, scope, visit);
  }
  template <typename Visitor>
  constexpr void List(Visitor& visit) const {
    ListFields<CpuDomains>(visit);
  }
};
template <>
inline constexpr auto kLayout<CpuDomainInfo> = Layout<CpuDomainInfo>(
    F("schedstat_version", &CpuDomainInfo::schedstat_version, Sensitivity::kNone),
    F("levels", &CpuDomainInfo::levels, Sensitivity::kNone), RestOfCpuDomains());

}  // namespace stackreel::perfdata
