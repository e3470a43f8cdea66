// The layouts of perf's own records, types from 64 up, without their 8-byte header; they have no
// trailer.
#pragma once

#include "perfdata/attr_layout.h"
#include "perfdata/layout.h"
#include "perfdata/record.h"

namespace stackreel::perfdata {

// bytes, u8 size (if misc has BUILD_ID_SIZE, else it is not set), u8 and u16 reserved.
struct HeaderBuildIdBytes {
  static void Decode(ByteReader& in, BuildId& value, const WireScope& scope);
  static void Encode(ByteWriter& out, const BuildId& value, const WireScope& scope);
};

// perf_event_attr inside a record: as long as its own size field says; written so too, if that
// holds its fields.
struct AttrInRecord {
  static void Decode(ByteReader& in, Attr& value, const WireScope&);
  static void Encode(ByteWriter& out, const Attr& value, const WireScope&);
};

// ---- perf's own records ----
template <>
inline constexpr auto kLayout<HeaderAttr> =
    Layout<HeaderAttr>(F<AttrInRecord>("attr", &HeaderAttr::attr, Sensitivity::kEventConfig),
                       F<RestNumbers>("ids", &HeaderAttr::ids, Sensitivity::kNone));

template <>
inline constexpr auto kLayout<HeaderEventType> = Layout<HeaderEventType>(
    F("id", &HeaderEventType::id, Sensitivity::kNone),
    F<FixedText<64>>("name", &HeaderEventType::name, Sensitivity::kEventName));

template <>
inline constexpr auto kLayout<HeaderBuildId> = Layout<HeaderBuildId>(
    F("pid", &HeaderBuildId::pid, Sensitivity::kPid),
    F<HeaderBuildIdBytes>("build_id", &HeaderBuildId::build_id, Sensitivity::kBuildId),
    F<PaddedText<64>>("filename", &HeaderBuildId::filename, Sensitivity::kPath));

template <>
inline constexpr auto kLayout<FinishedRound> = Layout<FinishedRound>();

// u64 nr, nr × {u64 id, idx, cpu, tid}; newer: nr × {u64 machine_pid, vcpu} after them all.
template <>
inline constexpr auto kLayout<IdIndexEntry> =
    LayoutWithout<IdIndexEntry, 2>(F("id", &IdIndexEntry::id, Sensitivity::kNone),
                                   F("idx", &IdIndexEntry::idx, Sensitivity::kNone),
                                   F("cpu", &IdIndexEntry::cpu, Sensitivity::kNone),
                                   F("tid", &IdIndexEntry::tid, Sensitivity::kPid));

struct IdIndexMachines {
  static constexpr size_t kMembers = 1;
  FieldInfo machine_pid;
  FieldInfo vcpu;

  template <typename Trace>
  void Decode(ByteReader& in, IdIndex& value, const WireScope&, Trace& trace) const {
    value.has_machine =
        in.ok() && !value.entries.empty() && in.remaining() / 16 >= value.entries.size();
    if (!value.has_machine) return;
    for (size_t i = 0; i < value.entries.size(); ++i) {
      IdIndexEntry& entry = value.entries[i];
      trace.Enter("machine", i);
      const size_t begin = in.offset();
      entry.machine_pid = in.U64();
      trace.Field(machine_pid, in, begin, entry.machine_pid);
      entry.vcpu = in.U64();
      trace.Field(vcpu, in, begin + 8, entry.vcpu);
      trace.Leave();
    }
  }
  void Encode(ByteWriter& out, const IdIndex& value, const WireScope&) const {
    if (!value.has_machine) return;
    for (const IdIndexEntry& entry : value.entries) {
      out.U64(entry.machine_pid);
      out.U64(entry.vcpu);
    }
  }
  template <typename V, typename Visitor>
  void Visit(V& value, const WireScope&, Visitor& visit) const {
    if (!value.has_machine) return;
    for (auto& entry : value.entries) {
      visit(machine_pid, entry.machine_pid);
      visit(vcpu, entry.vcpu);
    }
  }
  template <typename Visitor>
  constexpr void List(Visitor& visit) const {
    visit(machine_pid);
    visit(vcpu);
  }
};

template <>
inline constexpr auto kLayout<IdIndex> =
    Layout<IdIndex>(Each<uint64_t>("entry", &IdIndex::entries),
                    IdIndexMachines{FieldInfo("machine_pid", Sensitivity::kPid),
                                    FieldInfo("vcpu", Sensitivity::kNone)});

template <>
inline constexpr auto kLayout<AuxtraceInfo> = Layout<AuxtraceInfo>(
    F("type", &AuxtraceInfo::type, Sensitivity::kNone),
    F("reserved", &AuxtraceInfo::reserved, Sensitivity::kNone),
    F<RestNumbers>("priv", &AuxtraceInfo::priv, Sensitivity::kPayload, Display::kHex));

template <>
inline constexpr auto kLayout<Auxtrace> = Layout<Auxtrace>(
    F("size", &Auxtrace::size, Sensitivity::kNone, Display::kHex),
    F("offset", &Auxtrace::offset, Sensitivity::kNone, Display::kHex),
    F("reference", &Auxtrace::reference, Sensitivity::kTime, Display::kHex),
    F("idx", &Auxtrace::idx, Sensitivity::kNone), F("tid", &Auxtrace::tid, Sensitivity::kPid),
    F("cpu", &Auxtrace::cpu, Sensitivity::kNone),
    F("reserved", &Auxtrace::reserved, Sensitivity::kNone));

// fmt 0 had no time; fmt 2 has the whole 64 bytes of msg and what follows them.
struct HasErrorTime {
  constexpr bool operator()(const WireScope&, const AuxtraceError& e) const { return e.fmt >= 1; }
};
struct HasErrorMachine {
  constexpr bool operator()(const WireScope&, const AuxtraceError& e) const { return e.fmt >= 2; }
};
struct NoErrorMachine {
  constexpr bool operator()(const WireScope&, const AuxtraceError& e) const { return e.fmt < 2; }
};
template <>
inline constexpr auto kLayout<AuxtraceError> = Layout<AuxtraceError>(
    F("type", &AuxtraceError::type, Sensitivity::kNone),
    F("code", &AuxtraceError::code, Sensitivity::kNone),
    F("cpu", &AuxtraceError::cpu, Sensitivity::kNone),
    F("pid", &AuxtraceError::pid, Sensitivity::kPid),
    F("tid", &AuxtraceError::tid, Sensitivity::kPid),
    F("fmt", &AuxtraceError::fmt, Sensitivity::kNone),
    F("ip", &AuxtraceError::ip, Sensitivity::kCodeAddress, Display::kHex),
    When(HasErrorTime(), F("time", &AuxtraceError::time, Sensitivity::kTime)),
    When(HasErrorMachine(), F<FixedText<64>>("msg", &AuxtraceError::msg, Sensitivity::kPayload),
         F("machine_pid", &AuxtraceError::machine_pid, Sensitivity::kPid),
         F("vcpu", &AuxtraceError::vcpu, Sensitivity::kNone)),
    When(NoErrorMachine(),
         Again(F<PaddedText<8>>("msg", &AuxtraceError::msg, Sensitivity::kPayload))));

template <>
inline constexpr auto kLayout<ThreadMapEntry> =
    Layout<ThreadMapEntry>(F("pid", &ThreadMapEntry::pid, Sensitivity::kPid),
                           F<FixedText<16>>("comm", &ThreadMapEntry::comm, Sensitivity::kComm));
template <>
inline constexpr auto kLayout<ThreadMap> =
    Layout<ThreadMap>(Each<uint64_t>("thread", &ThreadMap::entries));

// u16 kind, packed behind it:
//   0 list   u16 nr, u16 cpu[nr]
//   1 mask   u16 nr, u16 long_size, [4 bytes of padding if long_size is 8], mask words[nr]
//   2 range  u8 any_cpu, u8 padding, u16 first, u16 last
struct CpuMapWords {
  static void Decode(ByteReader& in, CpuMap& value, const WireScope&);
  static void Encode(ByteWriter& out, const CpuMap& value, const WireScope&);
};
// The whole of a structure that has a wire form of its own.
template <typename Wire, typename T, size_t kCount>
struct WholeEntry {
  static constexpr size_t kMembers = kCount;
  FieldInfo info;
  template <typename Trace>
  void Decode(ByteReader& in, T& value, const WireScope& scope, Trace& trace) const {
    const size_t begin = in.offset();
    Wire::Decode(in, value, scope);
    trace.Field(info, in, begin, value);
  }
  void Encode(ByteWriter& out, const T& value, const WireScope& scope) const {
    Wire::Encode(out, value, scope);
  }
  template <typename V, typename Visitor>
  void Visit(V& value, const WireScope&, Visitor& visit) const {
    visit(info, value);
  }
  template <typename Visitor>
  constexpr void List(Visitor& visit) const {
    visit(info);
  }
};
template <>
inline constexpr auto kLayout<CpuMap> = Layout<CpuMap>(
    WholeEntry<CpuMapWords, CpuMap, 4>{FieldInfo("cpus", Sensitivity::kNone)}, AlignEnd<8>());

template <>
inline constexpr auto kLayout<StatConfigEntry> =
    Layout<StatConfigEntry>(F("tag", &StatConfigEntry::tag, Sensitivity::kNone),
                            F("value", &StatConfigEntry::value, Sensitivity::kNone));
template <>
inline constexpr auto kLayout<StatConfig> =
    Layout<StatConfig>(Each<uint64_t>("entry", &StatConfig::entries));

template <>
inline constexpr auto kLayout<Stat> = Layout<Stat>(
    F("id", &Stat::id, Sensitivity::kNone), F("cpu", &Stat::cpu, Sensitivity::kNone),
    F("thread", &Stat::thread, Sensitivity::kPid), F("value", &Stat::value, Sensitivity::kNone),
    F("enabled", &Stat::enabled, Sensitivity::kNone),
    F("running", &Stat::running, Sensitivity::kNone));

template <>
inline constexpr auto kLayout<StatRound> =
    Layout<StatRound>(F("type", &StatRound::type, Sensitivity::kNone),
                      F("time", &StatRound::time, Sensitivity::kNone));

struct UpdatesText {
  constexpr bool operator()(const WireScope&, const EventUpdate& u) const {
    return u.type == 0 || u.type == 2;
  }
};
struct UpdatesScale {
  constexpr bool operator()(const WireScope&, const EventUpdate& u) const { return u.type == 1; }
};
struct UpdatesCpus {
  constexpr bool operator()(const WireScope&, const EventUpdate& u) const { return u.type == 3; }
};
struct UpdatesOther {
  constexpr bool operator()(const WireScope&, const EventUpdate& u) const { return u.type > 3; }
};
template <>
inline constexpr auto kLayout<EventUpdate> = Layout<EventUpdate>(
    F("type", &EventUpdate::type, Sensitivity::kNone),
    F("id", &EventUpdate::id, Sensitivity::kNone),
    When(UpdatesText(), F<PaddedText<8>>("text", &EventUpdate::text, Sensitivity::kEventName)),
    When(UpdatesScale(), F("scale", &EventUpdate::scale, Sensitivity::kNone, Display::kReal)),
    When(UpdatesCpus(), F<CpuMapWords>("cpus", &EventUpdate::cpus, Sensitivity::kNone),
         AlignEnd<8>()),
    When(UpdatesOther(), F<RestBytes>("bytes", &EventUpdate::bytes, Sensitivity::kPayload)));

template <>
inline constexpr auto kLayout<TimeConv> = Layout<TimeConv>(
    F("shift", &TimeConv::shift, Sensitivity::kNone),
    F("mult", &TimeConv::mult, Sensitivity::kNone),
    F("zero", &TimeConv::zero, Sensitivity::kCycles),
    IfRoom<24>(&TimeConv::has_cycles, F("cycles", &TimeConv::cycles, Sensitivity::kCycles),
               F("mask", &TimeConv::mask, Sensitivity::kNone, Display::kHex),
               F("cap_zero", &TimeConv::cap_zero, Sensitivity::kNone),
               F("cap_short", &TimeConv::cap_short, Sensitivity::kNone), Pad<6>()));

template <>
inline constexpr auto kLayout<HeaderFeature> =
    Layout<HeaderFeature>(F("feature", &HeaderFeature::feature, Sensitivity::kNone),
                          F<RestBytes>("bytes", &HeaderFeature::bytes, Sensitivity::kPayload));

template <>
inline constexpr auto kLayout<FinishedInit> = Layout<FinishedInit>();

template <>
inline constexpr auto kLayout<BpfMetadataEntry> = Layout<BpfMetadataEntry>(
    F<FixedText<64>>("key", &BpfMetadataEntry::key, Sensitivity::kSymbol),
    F<FixedText<256>>("value", &BpfMetadataEntry::value, Sensitivity::kPayload));
template <>
inline constexpr auto kLayout<BpfMetadata> = Layout<BpfMetadata>(
    F<FixedText<256>>("prog_name", &BpfMetadata::prog_name, Sensitivity::kSymbol),
    Each<uint64_t>("entry", &BpfMetadata::entries));

template <>
inline constexpr auto kLayout<PacMask> = Layout<PacMask>(
    F("version", &PacMask::version, Sensitivity::kNone),
    F("kind", &PacMask::kind, Sensitivity::kNone), F("pid", &PacMask::pid, Sensitivity::kPid),
    F("tid", &PacMask::tid, Sensitivity::kPid), F("time", &PacMask::time, Sensitivity::kTime),
    F("enabled_keys", &PacMask::enabled_keys, Sensitivity::kNone, Display::kHex),
    F("insn_mask", &PacMask::insn_mask, Sensitivity::kNone, Display::kHex),
    F("data_mask", &PacMask::data_mask, Sensitivity::kNone, Display::kHex),
    F("source", &PacMask::source, Sensitivity::kNone),
    F("reserved", &PacMask::reserved, Sensitivity::kNone));

template <>
inline constexpr auto kLayout<Opaque> =
    Layout<Opaque>(F<RestBytes>("payload", &Opaque::payload, Sensitivity::kPayload));

// The bytes lie behind the record, outside header.size; inside is only u32 size. The bytes, zeros
// up to a multiple of 8 after them, are added by EncodeRecord and filled in by DecodeRecord.
struct SizeOfExtra {
  static void Decode(ByteReader& in, std::vector<uint8_t>& value, const WireScope&) {
    in.U32();
    value.clear();
  }
  static void Encode(ByteWriter& out, const std::vector<uint8_t>& value, const WireScope&) {
    out.U32(static_cast<uint32_t>(value.size()));
  }
};
template <>
inline constexpr auto kLayout<HeaderTracingData> = Layout<HeaderTracingData>(
    F<SizeOfExtra>("bytes", &HeaderTracingData::bytes, Sensitivity::kPayload));

}  // namespace stackreel::perfdata
