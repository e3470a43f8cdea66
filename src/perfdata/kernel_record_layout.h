// The layouts of the kernel's records but SAMPLE (linux/perf_event.h, enum perf_event_type),
// without their 8-byte header and their trailer.
#pragma once

#include <tuple>

#include "perfdata/layout.h"
#include "perfdata/record.h"
#include "perfdata/sample_layout.h"

namespace stackreel::perfdata {

template <uint16_t kBit>
struct OnMisc {
  template <typename T>
  constexpr bool operator()(const WireScope& scope, const T&) const {
    return (scope.misc & kBit) != 0;
  }
};
template <uint16_t kBit>
struct OffMisc {
  template <typename T>
  constexpr bool operator()(const WireScope& scope, const T&) const {
    return (scope.misc & kBit) == 0;
  }
};

// A build-id always takes 20 bytes, zeros behind a shorter one:
// u8 size, u8 and u16 reserved, bytes: in MMAP2.
struct Mmap2BuildId {
  static void Decode(ByteReader& in, BuildId& value, const WireScope&);
  static void Encode(ByteWriter& out, const BuildId& value, const WireScope&);
};
// ---- kernel records ----
template <>
inline constexpr auto kLayout<Mmap> =
    Layout<Mmap>(F("pid", &Mmap::pid, Sensitivity::kPid), F("tid", &Mmap::tid, Sensitivity::kPid),
                 F("addr", &Mmap::addr, Sensitivity::kMapAddress, Display::kHex),
                 F("len", &Mmap::len, Sensitivity::kNone, Display::kHex),
                 F("pgoff", &Mmap::pgoff, Sensitivity::kMapOffset, Display::kHex),
                 F<PaddedText<8>>("filename", &Mmap::filename, Sensitivity::kPath));

// u32 prot, u32 flags; kernels before 3.16 had the filename in their place. A word that begins like
// "/path", "//anon" or "[stack]" is no protection, whose bits are 0 to 11, 24 and 25
// (asm-generic/mman-common.h and arm64's).
struct ProtAndFlags {
  static constexpr size_t kMembers = 2;
  FieldInfo prot;
  FieldInfo flags;

  template <typename Trace>
  void Decode(ByteReader& in, Mmap2& value, const WireScope&, Trace& trace) const {
    const ByteView rest = in.Rest();
    if (rest.size() >= 2 && (rest[0] == '/' || rest[0] == '[') && rest[1] >= ' ') return;
    const size_t begin = in.offset();
    value.prot = in.U32();
    trace.Field(prot, in, begin, value.prot);
    value.flags = in.U32();
    trace.Field(flags, in, begin + 4, value.flags);
  }
  void Encode(ByteWriter& out, const Mmap2& value, const WireScope&) const {
    out.U32(value.prot);
    out.U32(value.flags);
  }
  template <typename V, typename Visitor>
  void Visit(V& value, const WireScope&, Visitor& visit) const {
    visit(prot, value.prot);
    visit(flags, value.flags);
  }
  template <typename Visitor>
  constexpr void List(Visitor& visit) const {
    visit(prot);
    visit(flags);
  }
};

template <>
inline constexpr auto kLayout<Mmap2> = Layout<Mmap2>(
    F("pid", &Mmap2::pid, Sensitivity::kPid), F("tid", &Mmap2::tid, Sensitivity::kPid),
    F("addr", &Mmap2::addr, Sensitivity::kMapAddress, Display::kHex),
    F("len", &Mmap2::len, Sensitivity::kNone, Display::kHex),
    F("pgoff", &Mmap2::pgoff, Sensitivity::kMapOffset, Display::kHex),
    When(OffMisc<kMiscMmapBuildId>(), F("maj", &Mmap2::maj, Sensitivity::kFileId),
         F("min", &Mmap2::min, Sensitivity::kFileId), F("ino", &Mmap2::ino, Sensitivity::kFileId),
         F("ino_generation", &Mmap2::ino_generation, Sensitivity::kFileId)),
    When(OnMisc<kMiscMmapBuildId>(),
         F<Mmap2BuildId>("build_id", &Mmap2::build_id, Sensitivity::kBuildId)),
    ProtAndFlags{FieldInfo("prot", Sensitivity::kNone, Display::kHex),
                 FieldInfo("flags", Sensitivity::kNone, Display::kHex)},
    F<PaddedText<8>>("filename", &Mmap2::filename, Sensitivity::kPath));

template <>
inline constexpr auto kLayout<Lost> = Layout<Lost>(F("id", &Lost::id, Sensitivity::kNone),
                                                   F("lost", &Lost::lost, Sensitivity::kNone));

template <>
inline constexpr auto kLayout<Comm> =
    Layout<Comm>(F("pid", &Comm::pid, Sensitivity::kPid), F("tid", &Comm::tid, Sensitivity::kPid),
                 F<PaddedText<8>>("comm", &Comm::comm, Sensitivity::kComm));

template <>
inline constexpr auto kLayout<Task> =
    Layout<Task>(F("pid", &Task::pid, Sensitivity::kPid), F("ppid", &Task::ppid, Sensitivity::kPid),
                 F("tid", &Task::tid, Sensitivity::kPid), F("ptid", &Task::ptid, Sensitivity::kPid),
                 F("time", &Task::time, Sensitivity::kTime));

template <>
inline constexpr auto kLayout<Throttle> = Layout<Throttle>(
    F("time", &Throttle::time, Sensitivity::kTime), F("id", &Throttle::id, Sensitivity::kNone),
    F("stream_id", &Throttle::stream_id, Sensitivity::kNone));

template <>
inline constexpr auto kLayout<Read> =
    Layout<Read>(F("pid", &Read::pid, Sensitivity::kPid), F("tid", &Read::tid, Sensitivity::kPid),
                 F<ReadFormatWords>("values", &Read::values, Sensitivity::kNone));

template <>
inline constexpr auto kLayout<Aux> =
    Layout<Aux>(F("aux_offset", &Aux::aux_offset, Sensitivity::kNone, Display::kHex),
                F("aux_size", &Aux::aux_size, Sensitivity::kNone, Display::kHex),
                F("flags", &Aux::flags, Sensitivity::kNone, Display::kHex));

template <>
inline constexpr auto kLayout<ItraceStart> = Layout<ItraceStart>(
    F("pid", &ItraceStart::pid, Sensitivity::kPid), F("tid", &ItraceStart::tid, Sensitivity::kPid));

template <>
inline constexpr auto kLayout<LostSamples> =
    Layout<LostSamples>(F("lost", &LostSamples::lost, Sensitivity::kNone));

template <>
inline constexpr auto kLayout<Switch> = Layout<Switch>();

template <>
inline constexpr auto kLayout<SwitchCpuWide> =
    Layout<SwitchCpuWide>(F("next_prev_pid", &SwitchCpuWide::next_prev_pid, Sensitivity::kPid),
                          F("next_prev_tid", &SwitchCpuWide::next_prev_tid, Sensitivity::kPid));

template <>
inline constexpr auto kLayout<NamespaceLink> =
    Layout<NamespaceLink>(F("dev", &NamespaceLink::dev, Sensitivity::kFileId, Display::kHex),
                          F("ino", &NamespaceLink::ino, Sensitivity::kFileId));

template <>
inline constexpr auto kLayout<Namespaces> = Layout<Namespaces>(
    F("pid", &Namespaces::pid, Sensitivity::kPid), F("tid", &Namespaces::tid, Sensitivity::kPid),
    Each<uint64_t>("link", &Namespaces::links));

template <>
inline constexpr auto kLayout<Ksymbol> =
    Layout<Ksymbol>(F("addr", &Ksymbol::addr, Sensitivity::kKernelAddress, Display::kHex),
                    F("len", &Ksymbol::len, Sensitivity::kNone, Display::kHex),
                    F("ksym_type", &Ksymbol::ksym_type, Sensitivity::kNone),
                    F("flags", &Ksymbol::flags, Sensitivity::kNone, Display::kHex),
                    F<PaddedText<8>>("name", &Ksymbol::name, Sensitivity::kSymbol));

template <>
inline constexpr auto kLayout<BpfEvent> =
    Layout<BpfEvent>(F("type", &BpfEvent::type, Sensitivity::kNone),
                     F("flags", &BpfEvent::flags, Sensitivity::kNone, Display::kHex),
                     F("id", &BpfEvent::id, Sensitivity::kNone),
                     F<FixedBytes>("tag", &BpfEvent::tag, Sensitivity::kBuildId));

template <>
inline constexpr auto kLayout<Cgroup> =
    Layout<Cgroup>(F("id", &Cgroup::id, Sensitivity::kFileId),
                   F<PaddedText<8>>("path", &Cgroup::path, Sensitivity::kCgroupPath));

// u16 old_len, u16 new_len, old bytes, new bytes, zeros up to a multiple of 8.
struct TextPokeBytes {
  static constexpr size_t kMembers = 2;
  FieldInfo old_bytes;
  FieldInfo new_bytes;

  template <typename Trace>
  void Decode(ByteReader& in, TextPoke& value, const WireScope&, Trace& trace) const {
    const uint16_t old_size = in.U16();
    const uint16_t new_size = in.U16();
    for (const auto& [info, size, bytes] : {std::tuple(&old_bytes, old_size, &value.old_bytes),
                                            std::tuple(&new_bytes, new_size, &value.new_bytes)}) {
      const size_t begin = in.offset();
      const ByteView view = in.Bytes(size);
      bytes->assign(view.begin(), view.end());
      trace.Field(*info, in, begin, *bytes);
    }
  }
  void Encode(ByteWriter& out, const TextPoke& value, const WireScope&) const {
    out.U16(static_cast<uint16_t>(value.old_bytes.size()));
    out.U16(static_cast<uint16_t>(value.new_bytes.size()));
    out.Bytes(value.old_bytes);
    out.Bytes(value.new_bytes);
  }
  template <typename V, typename Visitor>
  void Visit(V& value, const WireScope&, Visitor& visit) const {
    visit(old_bytes, value.old_bytes);
    visit(new_bytes, value.new_bytes);
  }
  template <typename Visitor>
  constexpr void List(Visitor& visit) const {
    visit(old_bytes);
    visit(new_bytes);
  }
};

template <>
inline constexpr auto kLayout<TextPoke> =
    Layout<TextPoke>(F("addr", &TextPoke::addr, Sensitivity::kKernelAddress, Display::kHex),
                     TextPokeBytes{FieldInfo("old_bytes", Sensitivity::kPayload),
                                   FieldInfo("new_bytes", Sensitivity::kPayload)},
                     AlignEnd<8>());

template <>
inline constexpr auto kLayout<AuxOutputHwId> =
    Layout<AuxOutputHwId>(F("hw_id", &AuxOutputHwId::hw_id, Sensitivity::kNone, Display::kHex));

// u64 cookie, which the first versions of the patch did not write. A chain without it is known by
// its count, which comes first and fits what is there; where that could be a cookie by chance, the
// word behind it would have to be a count that fits, and there the context marker stands.
//   cookie · nr · ips[nr]        nr · PERF_CONTEXT_USER · ips[nr - 1]
struct DeferredCookie {
  static constexpr size_t kMembers = 1;
  FieldInfo cookie;

  template <typename Trace>
  void Decode(ByteReader& in, CallchainDeferred& value, const WireScope&, Trace& trace) const {
    value.has_cookie = HasCookie(in);
    if (!value.has_cookie) return;
    const size_t begin = in.offset();
    value.cookie = in.U64();
    trace.Field(cookie, in, begin, value.cookie);
  }
  static bool HasCookie(ByteReader in) {
    const size_t size = in.remaining();
    const auto fits = [size](uint64_t words, uint64_t count) {
      return size / 8 >= words && count == size / 8 - words;
    };
    const uint64_t first = in.U64();
    const uint64_t second = in.U64();
    return fits(2, second) || !fits(1, first);
  }
  void Encode(ByteWriter& out, const CallchainDeferred& value, const WireScope&) const {
    if (value.has_cookie) out.U64(value.cookie);
  }
  template <typename V, typename Visitor>
  void Visit(V& value, const WireScope&, Visitor& visit) const {
    if (value.has_cookie) visit(cookie, value.cookie);
  }
  template <typename Visitor>
  constexpr void List(Visitor& visit) const {
    visit(cookie);
  }
};

template <>
inline constexpr auto kLayout<CallchainDeferred> = LayoutWithout<CallchainDeferred, 1>(
    DeferredCookie{FieldInfo("cookie", Sensitivity::kNone, Display::kHex)},
    F<Counted<uint64_t>>("ips", &CallchainDeferred::ips, Sensitivity::kCodeAddress, Display::kHex));

// A mask says which bits of an address may be a code, for all threads of all processes of a machine
// but those of 32 bits alike: nothing of where anything lies.
template <>
inline constexpr auto kLayout<PtrAuth> = Layout<PtrAuth>(
    F("pid", &PtrAuth::pid, Sensitivity::kPid), F("tid", &PtrAuth::tid, Sensitivity::kPid),
    F("enabled_keys", &PtrAuth::enabled_keys, Sensitivity::kNone, Display::kHex),
    F("insn_mask", &PtrAuth::insn_mask, Sensitivity::kNone, Display::kHex),
    F("data_mask", &PtrAuth::data_mask, Sensitivity::kNone, Display::kHex));

}  // namespace stackreel::perfdata
