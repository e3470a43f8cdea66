// The layouts of PERF_RECORD_SAMPLE and of the sample_id trailer: which field follows which.
#pragma once

#include <bit>

#include "perfdata/attr_layout.h"
#include "perfdata/layout.h"
#include "perfdata/record.h"
#include "perfdata/sample.h"

namespace stackreel::perfdata {

// There if the event's sample_type has kBit.
template <uint64_t kBit>
struct OnSampleBit {
  template <typename T>
  constexpr bool operator()(const WireScope& scope, const T&) const {
    return (scope.sample_type() & kBit) != 0;
  }
};
template <uint64_t kBit, typename... Entries>
consteval auto On(Entries... entries) {
  return When(OnSampleBit<kBit>(), entries...);
}

// Calls visit(sample_type bits, FieldInfo) for each field of an On entry.
template <uint64_t kBit, typename... Entries, typename Visitor>
constexpr void ListSampleBits(const WhenEntry<OnSampleBit<kBit>, Entries...>& entry,
                              Visitor& visit) {
  auto visit_field = [&](const FieldInfo& field) { visit(kBit, field); };
  entry.List(visit_field);
}

// The kernel writes the same id twice. Where damage made them differ, IDENTIFIER's stays: it is the
// one by which the sample's event was found.
struct IdBehindIdentifier {
  static void Decode(ByteReader& in, uint64_t& value, const WireScope& scope) {
    const uint64_t id = in.U64();
    if ((scope.sample_type() & kSampleIdentifier) == 0) value = id;
  }
  static void Encode(ByteWriter& out, const uint64_t& value, const WireScope&) { out.U64(value); }
};

// u64 count, then that many 64-bit values.
struct CountedView {
  static void Decode(ByteReader& in, U64Array& value, const WireScope&) {
    DecodeWords(in, in.U64(), value);
  }
  static void DecodeWords(ByteReader& in, uint64_t count, U64Array& value) {
    if (count > in.remaining() / 8) return FailRead(in);
    value = U64Array(in.Bytes(count * 8), in.endian());
  }
  static void Encode(ByteWriter& out, const U64Array& value, const WireScope&) {
    out.U64(value.size());
    EncodeWords(out, value);
  }
  static void EncodeWords(ByteWriter& out, const U64Array& value) {
    // Chains are most of many recordings.
    if (value.endian() == out.endian()) return out.Bytes(value.bytes().first(value.size() * 8));
    for (size_t i = 0; i < value.size(); ++i) out.U64(value[i]);
  }
};

// A Size in bytes, then the bytes.
template <typename Size>
struct SizedView {
  static void Decode(ByteReader& in, ByteView& value, const WireScope& scope) {
    Size size = 0;
    Number::Decode(in, size, scope);
    value = in.Bytes(size);
  }
  static void Encode(ByteWriter& out, const ByteView& value, const WireScope& scope) {
    Number::Encode(out, static_cast<Size>(value.size()), scope);
    out.Bytes(value);
  }
};

// read_format:  value, [enabled], [running], [id], [lost]
//   with GROUP: nr, [enabled], [running], nr × { value, [id], [lost] }
struct ReadFormatWords {
  static void Decode(ByteReader& in, ReadValues& value, const WireScope& scope);
  static void Encode(ByteWriter& out, const ReadValues& value, const WireScope& scope);
};

// u64 abi; if it is not 0, a word for each bit of the attr's register mask, then the SIMD block
// (u16 nr_vectors, vector_qwords, nr_pred, pred_qwords; their words) if abi has kRegsAbiSimd.
void DecodeRegisters(ByteReader& in, uint64_t mask, SampledRegs& value);
void EncodeRegisters(ByteWriter& out, const SampledRegs& value);
template <uint64_t Attr::* kMask>
struct RegisterDump {
  static void Decode(ByteReader& in, SampledRegs& value, const WireScope& scope) {
    DecodeRegisters(in, scope.attr == nullptr ? 0 : scope.attr->*kMask, value);
  }
  static void Encode(ByteWriter& out, const SampledRegs& value, const WireScope&) {
    EncodeRegisters(out, value);
  }
};

// PERF_SAMPLE_BRANCH_STACK: u64 nr, [u64 hw_index], nr × {from, to, flags}, [nr × u64 counters].
// Four members in one entry, as nr stands first and counts two arrays.
struct BranchStackEntry {
  static constexpr size_t kMembers = 4;
  FieldInfo hw_index;
  FieldInfo branches;
  FieldInfo counters;

  template <typename Trace>
  void Decode(ByteReader& in, Sample& value, const WireScope& scope, Trace& trace) const {
    const size_t begin = in.offset();
    const uint64_t count = in.U64();
    value.has_branch_hw_index = (scope.attr->branch_sample_type & kBranchHwIndex) != 0;
    if (value.has_branch_hw_index) {
      const size_t index_begin = in.offset();
      value.branch_hw_index = in.U64();
      trace.Field(hw_index, in, index_begin, value.branch_hw_index);
    }
    if (count > in.remaining() / 24) return FailRead(in);
    value.branches = BranchArray(in.Bytes(count * 24), in.endian());
    trace.Field(branches, in, begin, value.branches);
    if ((scope.attr->branch_sample_type & kBranchCounters) == 0) return;
    const size_t counters_begin = in.offset();
    CountedView::DecodeWords(in, count, value.branch_counters);
    trace.Field(counters, in, counters_begin, value.branch_counters);
  }
  void Encode(ByteWriter& out, const Sample& value, const WireScope& scope) const;
  template <typename V, typename Visitor>
  void Visit(V& value, const WireScope&, Visitor& visit) const {
    visit(hw_index, value.branch_hw_index);
    visit(branches, value.branches);
    visit(counters, value.branch_counters);
  }
  template <typename Visitor>
  constexpr void List(Visitor& visit) const {
    visit(hw_index);
    visit(branches);
    visit(counters);
  }
};

// PERF_SAMPLE_STACK_USER: u64 size; if it is not 0: the bytes, then u64 of how many are valid. The
// kernel leaves the rest as it was in the ring; it is neither kept nor written.
struct StackDumpEntry {
  static constexpr size_t kMembers = 2;
  FieldInfo size;
  FieldInfo bytes;

  template <typename Trace>
  void Decode(ByteReader& in, Sample& value, const WireScope&, Trace& trace) const {
    const size_t begin = in.offset();
    value.stack_user_size = in.U64();
    trace.Field(size, in, begin, value.stack_user_size);
    if (value.stack_user_size == 0) return;
    const size_t bytes_begin = in.offset();
    const ByteView dump = in.Bytes(value.stack_user_size);
    const uint64_t valid = in.U64();
    if (!in.ok()) return;
    if (valid > dump.size()) return FailRead(in);
    value.stack_user = dump.first(valid);
    trace.Field(bytes, in, bytes_begin, value.stack_user);
  }
  void Encode(ByteWriter& out, const Sample& value, const WireScope& scope) const;
  template <typename V, typename Visitor>
  void Visit(V& value, const WireScope&, Visitor& visit) const {
    visit(size, value.stack_user_size);
    visit(bytes, value.stack_user);
  }
  template <typename Visitor>
  constexpr void List(Visitor& visit) const {
    visit(size);
    visit(bytes);
  }
};

// Fields in the order of perf_output_sample() in the kernel, which is not that of the bits.
// Not listed: `present`, which is sample_type's known bits.
template <>
inline constexpr auto kLayout<Sample> = LayoutWithout<Sample, 1>(
    On<kSampleIdentifier>(F("identifier", &Sample::id, Sensitivity::kNone)),
    On<kSampleIp>(F("ip", &Sample::ip, Sensitivity::kCodeAddress, Display::kHex)),
    On<kSampleTid>(F("pid", &Sample::pid, Sensitivity::kPid),
                   F("tid", &Sample::tid, Sensitivity::kPid)),
    On<kSampleTime>(F("time", &Sample::time, Sensitivity::kTime)),
    On<kSampleAddr>(F("addr", &Sample::addr, Sensitivity::kDataAddress, Display::kHex)),
    On<kSampleId>(Again(F<IdBehindIdentifier>("id", &Sample::id, Sensitivity::kNone))),
    On<kSampleStreamId>(F("stream_id", &Sample::stream_id, Sensitivity::kNone)),
    On<kSampleCpu>(F("cpu", &Sample::cpu, Sensitivity::kNone),
                   F("cpu_reserved", &Sample::cpu_reserved, Sensitivity::kNone)),
    On<kSamplePeriod>(F("period", &Sample::period, Sensitivity::kNone)),
    On<kSampleRead>(F<ReadFormatWords>("read", &Sample::read, Sensitivity::kNone)),
    On<kSampleCallchain>(
        F<CountedView>("callchain", &Sample::callchain, Sensitivity::kCodeAddress, Display::kHex)),
    On<kSampleRaw>(F<SizedView<uint32_t>>("raw", &Sample::raw, Sensitivity::kPayload)),
    On<kSampleBranchStack>(
        BranchStackEntry{FieldInfo("branch_hw_index", Sensitivity::kNone),
                         FieldInfo("branches", Sensitivity::kCodeAddress, Display::kHex),
                         FieldInfo("branch_counters", Sensitivity::kNone, Display::kHex)}),
    On<kSampleRegsUser>(F<RegisterDump<&Attr::sample_regs_user>>(
        "regs_user", &Sample::regs_user, Sensitivity::kRegisters, Display::kHex)),
    On<kSampleStackUser>(StackDumpEntry{FieldInfo("stack_user_size", Sensitivity::kNone),
                                        FieldInfo("stack_user", Sensitivity::kPayload)}),
    On<kSampleWeight | kSampleWeightStruct>(F("weight", &Sample::weight, Sensitivity::kNone)),
    On<kSampleDataSrc>(F("data_src", &Sample::data_src, Sensitivity::kNone, Display::kHex)),
    On<kSampleTransaction>(
        F("transaction", &Sample::transaction, Sensitivity::kNone, Display::kHex)),
    On<kSampleRegsIntr>(F<RegisterDump<&Attr::sample_regs_intr>>(
        "regs_intr", &Sample::regs_intr, Sensitivity::kRegisters, Display::kHex)),
    On<kSamplePhysAddr>(
        F("phys_addr", &Sample::phys_addr, Sensitivity::kPhysicalAddress, Display::kHex)),
    On<kSampleCgroup>(F("cgroup", &Sample::cgroup, Sensitivity::kFileId)),
    On<kSampleDataPageSize>(F("data_page_size", &Sample::data_page_size, Sensitivity::kNone)),
    On<kSampleCodePageSize>(F("code_page_size", &Sample::code_page_size, Sensitivity::kNone)),
    On<kSampleAux>(F<SizedView<uint64_t>>("aux", &Sample::aux, Sensitivity::kPayload)),
    On<kSampleArch1>(
        F("arch_enabled_keys", &Sample::arch_enabled_keys, Sensitivity::kNone, Display::kHex),
        F("arch_insn_mask", &Sample::arch_insn_mask, Sensitivity::kNone, Display::kHex),
        F("arch_data_mask", &Sample::arch_data_mask, Sensitivity::kNone, Display::kHex)));

// The bits of sample_type under which SAMPLE has a field that `test` is true of.
template <typename Test>
constexpr uint64_t SampleBitsWith(Test test) {
  uint64_t bits = 0;
  auto visit = [&](uint64_t bit, const FieldInfo& field) {
    if (test(field)) bits |= bit;
  };
  std::apply([&](const auto&... entry) { (ListSampleBits(entry, visit), ...); },
             kLayout<Sample>.entries);
  return bits;
}

// The trailer; `present` as above.
template <>
inline constexpr auto kLayout<SampleId> = LayoutWithout<SampleId, 1>(
    On<kSampleTid>(F("pid", &SampleId::pid, Sensitivity::kPid),
                   F("tid", &SampleId::tid, Sensitivity::kPid)),
    On<kSampleTime>(F("time", &SampleId::time, Sensitivity::kTime)),
    On<kSampleId>(F("id", &SampleId::id, Sensitivity::kNone)),
    On<kSampleStreamId>(F("stream_id", &SampleId::stream_id, Sensitivity::kNone)),
    On<kSampleCpu>(F("cpu", &SampleId::cpu, Sensitivity::kNone),
                   F("cpu_reserved", &SampleId::cpu_reserved, Sensitivity::kNone)),
    On<kSampleIdentifier>(Again(F("identifier", &SampleId::id, Sensitivity::kNone))));

// EncodeSample into `out`, which is empty: what is in it after an error is not to be used.
Status EncodeSampleInto(ByteWriter& out, const Sample& sample, uint16_t misc, const Attr& attr);

}  // namespace stackreel::perfdata
