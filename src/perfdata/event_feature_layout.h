// Feature sections that describe events and their PMUs, binaries, AUX data and BPF programs.
#pragma once

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "perfdata/attr_layout.h"
#include "perfdata/event_groups.h"
#include "perfdata/feature_wire.h"
#include "perfdata/layout.h"
#include "perfdata/user_record_layout.h"

namespace stackreel::perfdata {

// ---- PMUs and events ----
struct PmuMapping {
  uint32_t type = 0;
  std::string name;
};
template <>
inline constexpr auto kLayout<PmuMapping> =
    Layout<PmuMapping>(F("type", &PmuMapping::type, Sensitivity::kNone),
                       F<FeatureString>("name", &PmuMapping::name, Sensitivity::kNone));
struct PmuMappings {
  std::vector<PmuMapping> pmus;
};
template <>
inline constexpr auto kLayout<PmuMappings> =
    Layout<PmuMappings>(Each<uint32_t>("pmu", &PmuMappings::pmus));

struct PmuCap {
  std::string name, value;
};
template <>
inline constexpr auto kLayout<PmuCap> =
    Layout<PmuCap>(F<FeatureString>("name", &PmuCap::name, Sensitivity::kNone),
                   F<FeatureString>("value", &PmuCap::value, Sensitivity::kNone));
struct CpuPmuCaps {
  std::vector<PmuCap> caps;
};
template <>
inline constexpr auto kLayout<CpuPmuCaps> =
    Layout<CpuPmuCaps>(Each<uint32_t>("cap", &CpuPmuCaps::caps));
struct OnePmuCaps {
  std::vector<PmuCap> caps;
  std::string pmu;
};
template <>
inline constexpr auto kLayout<OnePmuCaps> =
    Layout<OnePmuCaps>(Each<uint32_t>("cap", &OnePmuCaps::caps),
                       F<FeatureString>("pmu", &OnePmuCaps::pmu, Sensitivity::kNone));
struct PmuCaps {
  std::vector<OnePmuCaps> pmus;
};
template <>
inline constexpr auto kLayout<PmuCaps> = Layout<PmuCaps>(Each<uint32_t>("pmu", &PmuCaps::pmus));

template <>
inline constexpr auto kLayout<EventGroup> =
    Layout<EventGroup>(F<FeatureString>("name", &EventGroup::name, Sensitivity::kEventName),
                       F("leader", &EventGroup::leader, Sensitivity::kNone),
                       F("members", &EventGroup::members, Sensitivity::kNone));
struct GroupDesc {
  std::vector<EventGroup> groups;
};
template <>
inline constexpr auto kLayout<GroupDesc> =
    Layout<GroupDesc>(Each<uint32_t>("group", &GroupDesc::groups));

// u32 nr, u32 attr_size; nr × { attr, u32 nr_ids, name, u64 ids[nr_ids] }.
struct EventDesc {
  std::vector<Event> events;
};
// An attr as long as its container says; written as long as the longest of the events needs.
struct DescribedAttr {
  static void Decode(ByteReader& in, Attr& value, const WireScope& scope);
  static void Encode(ByteWriter& out, const Attr& value, const WireScope& scope);
};
struct NamedIds {
  static constexpr size_t kMembers = 2;
  FieldInfo name;
  FieldInfo ids;

  template <typename Trace>
  void Decode(ByteReader& in, Event& value, const WireScope& scope, Trace& trace) const {
    const uint32_t count = in.U32();
    size_t begin = in.offset();
    FeatureString::Decode(in, value.name, scope);
    trace.Field(name, in, begin, value.name);
    if (count > in.remaining() / 8) return FailRead(in);
    begin = in.offset();
    for (uint32_t i = 0; i < count; ++i) value.ids.push_back(in.U64());
    trace.Field(ids, in, begin, value.ids);
  }
  void Encode(ByteWriter& out, const Event& value, const WireScope& scope) const {
    out.U32(static_cast<uint32_t>(value.ids.size()));
    FeatureString::Encode(out, value.name, scope);
    for (const uint64_t id : value.ids) out.U64(id);
  }
  template <typename V, typename Visitor>
  void Visit(V& value, const WireScope&, Visitor& visit) const {
    visit(name, value.name);
    visit(ids, value.ids);
  }
  template <typename Visitor>
  constexpr void List(Visitor& visit) const {
    visit(name);
    visit(ids);
  }
};
template <>
inline constexpr auto kLayout<Event> = Layout<Event>(
    F<DescribedAttr>("attr", &Event::attr, Sensitivity::kEventConfig),
    NamedIds{FieldInfo("name", Sensitivity::kEventName), FieldInfo("ids", Sensitivity::kNone)});
struct DescribedEvents {
  static constexpr size_t kMembers = 1;
  template <typename Trace>
  void Decode(ByteReader& in, EventDesc& value, const WireScope& outer, Trace& trace) const {
    const uint32_t count = in.U32();
    WireScope scope = outer;
    scope.attr_size = in.U32();
    for (uint32_t i = 0; i < count && in.ok(); ++i) {
      trace.Enter("event", i);
      DecodeFields(in, value.events.emplace_back(), scope, trace);
      trace.Leave();
    }
  }
  void Encode(ByteWriter& out, const EventDesc& value, const WireScope& outer) const;
  template <typename V, typename Visitor>
  void Visit(V& value, const WireScope& scope, Visitor& visit) const {
    for (auto& event : value.events) VisitFields(event, scope, visit);
  }
  template <typename Visitor>
  constexpr void List(Visitor& visit) const {
    ListFields<Event>(visit);
  }
};
template <>
inline constexpr auto kLayout<EventDesc> = Layout<EventDesc>(DescribedEvents());

// ---- binaries, AUX, BPF ----
// Records of { u32 type (often 0), u16 misc, u16 size } and HEADER_BUILD_ID's payload. The first
// versions of perf had no pid in it:
//   now   pid (4)  build_id (20) + 4   filename
//   old            build_id (20) + 4   filename
// so that the kernel's "[kernel.kallsyms]", read as now, begins at its fifth character.
struct BuildIdList {
  std::vector<HeaderBuildId> ids;
  std::vector<uint16_t> misc;  // beside ids
};
// What leaves room for the rest of a record of at most 65,535 bytes.
inline constexpr size_t kMaxBuildIdFilename = 65535 - 128;
struct BuildIdRecords {
  static constexpr size_t kMembers = 2;
  template <typename Trace>
  void Decode(ByteReader& in, BuildIdList& value, const WireScope& scope, Trace& trace) const {
    ByteReader start = in;
    DecodeAll(in, value, scope, trace, /*with_pid=*/true);
    if (!WithoutPid(value)) return;
    in = start;
    value = BuildIdList();
    DecodeAll(in, value, scope, trace, /*with_pid=*/false);
    if (WithoutPid(value)) FailRead(in);  // neither way
  }
  void Encode(ByteWriter& out, const BuildIdList& value, const WireScope& scope) const;
  template <typename V, typename Visitor>
  void Visit(V& value, const WireScope& scope, Visitor& visit) const {
    for (auto& id : value.ids) VisitFields(id, scope, visit);
  }
  template <typename Visitor>
  constexpr void List(Visitor& visit) const {
    ListFields<HeaderBuildId>(visit);
  }

 private:
  static bool WithoutPid(const BuildIdList& value);
  template <typename Trace>
  static void DecodeAll(ByteReader& in, BuildIdList& value, const WireScope& outer, Trace& trace,
                        bool with_pid) {
    while (in.ok() && !in.AtEnd()) {
      in.U32();
      WireScope scope = outer;
      scope.misc = in.U16();
      const uint16_t size = in.U16();
      if (!in.ok() || size < 8) return FailRead(in);
      ByteReader body(in.Bytes(size - 8u), in.endian());
      HeaderBuildId id;
      trace.Enter("binary", value.ids.size());
      if (with_pid) {
        DecodeFields(body, id, scope, trace);
      } else {
        id.pid = -1;
        HeaderBuildIdBytes::Decode(body, id.build_id, scope);
        PaddedText<64>::Decode(body, id.filename, scope);
      }
      trace.Leave();
      if (!body.ok() || id.filename.size() > kMaxBuildIdFilename) return FailRead(in);
      value.ids.push_back(std::move(id));
      value.misc.push_back(scope.misc);
    }
  }
};
template <>
inline constexpr auto kLayout<BuildIdList> = Layout<BuildIdList>(BuildIdRecords());

struct AuxtraceEntry {
  uint64_t file_offset = 0, size = 0;  // of an AUXTRACE record
};
template <>
inline constexpr auto kLayout<AuxtraceEntry> =
    Layout<AuxtraceEntry>(F("file_offset", &AuxtraceEntry::file_offset, Sensitivity::kNone),
                          F("size", &AuxtraceEntry::size, Sensitivity::kNone));
struct AuxtraceIndex {
  std::vector<AuxtraceEntry> entries;
};
template <>
inline constexpr auto kLayout<AuxtraceIndex> =
    Layout<AuxtraceIndex>(Each<uint64_t>("entry", &AuxtraceIndex::entries));

// u32 info_len, u32 data_len, u64 arrays, bpf_prog_info (linux/bpf.h), data. Both hold addresses.
struct BpfProgInfo {
  uint64_t arrays = 0;
  std::vector<uint8_t> info, data;
};
struct BpfProgBytes {
  static constexpr size_t kMembers = 3;
  FieldInfo arrays;
  FieldInfo info;
  FieldInfo data;

  template <typename Trace>
  void Decode(ByteReader& in, BpfProgInfo& value, const WireScope&, Trace& trace) const {
    const uint32_t info_size = in.U32();
    const uint32_t data_size = in.U32();
    size_t begin = in.offset();
    value.arrays = in.U64();
    trace.Field(arrays, in, begin, value.arrays);
    for (const auto& [field, size, bytes] :
         {std::tuple(&info, info_size, &value.info), std::tuple(&data, data_size, &value.data)}) {
      begin = in.offset();
      const ByteView view = in.Bytes(size);
      bytes->assign(view.begin(), view.end());
      trace.Field(*field, in, begin, *bytes);
    }
  }
  void Encode(ByteWriter& out, const BpfProgInfo& value, const WireScope&) const {
    out.U32(static_cast<uint32_t>(value.info.size()));
    out.U32(static_cast<uint32_t>(value.data.size()));
    out.U64(value.arrays);
    out.Bytes(value.info);
    out.Bytes(value.data);
  }
  template <typename V, typename Visitor>
  void Visit(V& value, const WireScope&, Visitor& visit) const {
    visit(arrays, value.arrays);
    visit(info, value.info);
    visit(data, value.data);
  }
  template <typename Visitor>
  constexpr void List(Visitor& visit) const {
    visit(arrays);
    visit(info);
    visit(data);
  }
};
template <>
inline constexpr auto kLayout<BpfProgInfo> = Layout<BpfProgInfo>(BpfProgBytes{
    FieldInfo("arrays", Sensitivity::kNone, Display::kHex),
    FieldInfo("info", Sensitivity::kPayload), FieldInfo("data", Sensitivity::kPayload)});
struct BpfProgInfos {
  std::vector<BpfProgInfo> programs;
};
template <>
inline constexpr auto kLayout<BpfProgInfos> =
    Layout<BpfProgInfos>(Each<uint32_t>("program", &BpfProgInfos::programs));

// u32 id, u32 size, bytes.
struct CountedBytes {
  static void Decode(ByteReader& in, std::vector<uint8_t>& value, const WireScope&) {
    const ByteView view = in.Bytes(in.U32());
    value.assign(view.begin(), view.end());
  }
  static void Encode(ByteWriter& out, const std::vector<uint8_t>& value, const WireScope&) {
    out.U32(static_cast<uint32_t>(value.size()));
    out.Bytes(value);
  }
};
struct BtfBlob {
  uint32_t id = 0;
  std::vector<uint8_t> bytes;
};
template <>
inline constexpr auto kLayout<BtfBlob> =
    Layout<BtfBlob>(F("id", &BtfBlob::id, Sensitivity::kNone),
                    F<CountedBytes>("bytes", &BtfBlob::bytes, Sensitivity::kPayload));
struct BtfBlobs {
  std::vector<BtfBlob> blobs;
};
template <>
inline constexpr auto kLayout<BtfBlobs> = Layout<BtfBlobs>(Each<uint32_t>("btf", &BtfBlobs::blobs));

}  // namespace stackreel::perfdata
