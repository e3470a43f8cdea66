// Records of perf.data: raw as tokenised, and typed as decoded.
// Follows linux/perf_event.h (types below 64) and the format page in docs/ (64 and above).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/build_id.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/io.h"
#include "perfdata/attr.h"

namespace stackreel::perfdata {

enum class RecordType : uint32_t {
  kMmap = 1,
  kLost = 2,
  kComm = 3,
  kExit = 4,
  kThrottle = 5,
  kUnthrottle = 6,
  kFork = 7,
  kRead = 8,
  kSample = 9,
  kMmap2 = 10,
  kAux = 11,
  kItraceStart = 12,
  kLostSamples = 13,
  kSwitch = 14,
  kSwitchCpuWide = 15,
  kNamespaces = 16,
  kKsymbol = 17,
  kBpfEvent = 18,
  kCgroup = 19,
  kTextPoke = 20,
  kAuxOutputHwId = 21,
  kCallchainDeferred = 22,
  kPtrAuth = 23,  // kernels with the series in kernel/
  kHeaderAttr = 64,
  kHeaderEventType = 65,
  kHeaderTracingData = 66,
  kHeaderBuildId = 67,
  kFinishedRound = 68,
  kIdIndex = 69,
  kAuxtraceInfo = 70,
  kAuxtrace = 71,
  kAuxtraceError = 72,
  kThreadMap = 73,
  kCpuMap = 74,
  kStatConfig = 75,
  kStat = 76,
  kStatRound = 77,
  kEventUpdate = 78,
  kTimeConv = 79,
  kHeaderFeature = 80,
  kCompressed = 81,
  kFinishedInit = 82,
  kCompressed2 = 83,
  kBpfMetadata = 84,
  kSchedstatCpu = 85,
  kSchedstatDomain = 86,
};
// "MMAP2", "SAMPLE", …; "TYPE_300" for what is not known.
std::string RecordTypeName(uint32_t type);

// misc, bits 0-2.
enum class CpuMode : uint8_t {
  kUnknown = 0,
  kKernel = 1,
  kUser = 2,
  kHypervisor = 3,
  kGuestKernel = 4,
  kGuestUser = 5,
};
enum MiscBit : uint16_t {
  kMiscCpuModeMask = 7,
  kMiscProcMapParseTimeout = 1u << 12,
  kMiscMmapData = 1u << 13,
  kMiscCommExec = 1u << 13,
  kMiscForkExec = 1u << 13,
  kMiscSwitchOut = 1u << 13,
  kMiscExactIp = 1u << 14,
  kMiscSwitchOutPreempt = 1u << 14,
  kMiscMmapBuildId = 1u << 14,
  kMiscExtReserved = 1u << 15,
  kMiscBuildIdSize = 1u << 15,
};

// Markers inside callchains (enum perf_callchain_context); any value from kContextMax up is one.
inline constexpr uint64_t kContextHv = static_cast<uint64_t>(-32);
inline constexpr uint64_t kContextKernel = static_cast<uint64_t>(-128);
inline constexpr uint64_t kContextUser = static_cast<uint64_t>(-512);
inline constexpr uint64_t kContextUserDeferred = static_cast<uint64_t>(-640);
inline constexpr uint64_t kContextGuest = static_cast<uint64_t>(-2048);
inline constexpr uint64_t kContextGuestKernel = static_cast<uint64_t>(-2176);
inline constexpr uint64_t kContextGuestUser = static_cast<uint64_t>(-2560);
inline constexpr uint64_t kContextMax = static_cast<uint64_t>(-4095);

// Bytes that records point into; kept alive by whoever holds a record.
struct Block {
  std::vector<uint8_t> bytes;
  FileImagePtr image;  // in place of `bytes`: a piece of the file itself

  [[nodiscard]] ByteView view() const { return image ? image->bytes() : ByteView(bytes); }
};
using BlockPtr = std::shared_ptr<const Block>;

// A record as it lies in the file, in the file's byte order. `bytes` is the whole record with its
// 8-byte header; `extra` is what follows outside header.size (TRACING_DATA; for AUXTRACE it stays
// empty and only its size is told). Both lie in `block`.
struct RawRecord {
  uint32_t type = 0;
  uint16_t misc = 0;
  ByteView bytes;
  ByteView extra;
  uint64_t extra_size = 0;
  uint64_t file_offset = 0;  // of the record, or of the compressed record it came out of
  bool decompressed = false;
  BlockPtr block;

  [[nodiscard]] ByteView payload() const { return bytes.subspan(8); }
  [[nodiscard]] RecordType record_type() const { return static_cast<RecordType>(type); }
  [[nodiscard]] CpuMode cpu_mode() const { return static_cast<CpuMode>(misc & kMiscCpuModeMask); }
};

// The trailer of kernel records when the event has sample_id_all. `present` has the SampleBits of
// the fields that were there.
struct SampleId {
  uint64_t present = 0;
  uint32_t pid = 0;
  uint32_t tid = 0;
  uint64_t time = 0;
  uint64_t id = 0;
  uint64_t stream_id = 0;
  uint32_t cpu = 0;
  uint32_t cpu_reserved = 0;
  friend bool operator==(const SampleId&, const SampleId&) = default;
};

// ---- kernel records ----
// Strings and byte arrays are owned here: these records are few.
struct Mmap {
  uint32_t pid = 0, tid = 0;
  uint64_t addr = 0, len = 0, pgoff = 0;
  std::string filename;
  friend bool operator==(const Mmap&, const Mmap&) = default;
};
struct Mmap2 {
  uint32_t pid = 0, tid = 0;
  uint64_t addr = 0, len = 0, pgoff = 0;
  uint32_t maj = 0, min = 0;
  uint64_t ino = 0, ino_generation = 0;
  BuildId build_id;  // instead of the four above when misc has kMiscMmapBuildId
  uint32_t prot = 0, flags = 0;
  std::string filename;
  friend bool operator==(const Mmap2&, const Mmap2&) = default;
};
struct Lost {
  uint64_t id = 0, lost = 0;
  friend bool operator==(const Lost&, const Lost&) = default;
};
struct Comm {
  uint32_t pid = 0, tid = 0;
  std::string comm;
  friend bool operator==(const Comm&, const Comm&) = default;
};
struct Task {  // FORK and EXIT
  uint32_t pid = 0, ppid = 0, tid = 0, ptid = 0;
  uint64_t time = 0;
  friend bool operator==(const Task&, const Task&) = default;
};
struct Throttle {  // THROTTLE and UNTHROTTLE
  uint64_t time = 0, id = 0, stream_id = 0;
  friend bool operator==(const Throttle&, const Throttle&) = default;
};
struct ReadValue {
  uint64_t value = 0, id = 0, lost = 0;
  friend bool operator==(const ReadValue&, const ReadValue&) = default;
};
struct ReadValues {  // read_format
  uint64_t time_enabled = 0, time_running = 0;
  std::vector<ReadValue> values;  // one unless kReadGroup
  friend bool operator==(const ReadValues&, const ReadValues&) = default;
};
struct Read {
  uint32_t pid = 0, tid = 0;
  ReadValues values;
  friend bool operator==(const Read&, const Read&) = default;
};
struct Aux {
  uint64_t aux_offset = 0, aux_size = 0, flags = 0;
  friend bool operator==(const Aux&, const Aux&) = default;
};
struct ItraceStart {
  uint32_t pid = 0, tid = 0;
  friend bool operator==(const ItraceStart&, const ItraceStart&) = default;
};
struct LostSamples {
  uint64_t lost = 0;
  friend bool operator==(const LostSamples&, const LostSamples&) = default;
};
struct Switch {
  friend bool operator==(const Switch&, const Switch&) = default;
};
struct SwitchCpuWide {
  uint32_t next_prev_pid = 0, next_prev_tid = 0;
  friend bool operator==(const SwitchCpuWide&, const SwitchCpuWide&) = default;
};
struct NamespaceLink {
  uint64_t dev = 0, ino = 0;
  friend bool operator==(const NamespaceLink&, const NamespaceLink&) = default;
};
struct Namespaces {
  uint32_t pid = 0, tid = 0;
  std::vector<NamespaceLink> links;  // net, uts, ipc, pid, user, mnt, cgroup
  friend bool operator==(const Namespaces&, const Namespaces&) = default;
};
struct Ksymbol {
  uint64_t addr = 0;
  uint32_t len = 0;
  uint16_t ksym_type = 0, flags = 0;
  std::string name;
  friend bool operator==(const Ksymbol&, const Ksymbol&) = default;
};
struct BpfEvent {
  uint16_t type = 0, flags = 0;
  uint32_t id = 0;
  std::array<uint8_t, 8> tag = {};
  friend bool operator==(const BpfEvent&, const BpfEvent&) = default;
};
struct Cgroup {
  uint64_t id = 0;
  std::string path;
  friend bool operator==(const Cgroup&, const Cgroup&) = default;
};
struct TextPoke {
  uint64_t addr = 0;
  std::vector<uint8_t> old_bytes, new_bytes;
  friend bool operator==(const TextPoke&, const TextPoke&) = default;
};
struct AuxOutputHwId {
  uint64_t hw_id = 0;
  friend bool operator==(const AuxOutputHwId&, const AuxOutputHwId&) = default;
};
struct CallchainDeferred {
  uint64_t cookie = 0;
  std::vector<uint64_t> ips;
  bool has_cookie = true;  // kernels with the first versions of the patch wrote none
  friend bool operator==(const CallchainDeferred&, const CallchainDeferred&) = default;
};
// The keys of pointer authentication that are enabled for a thread (PR_PAC_AP*KEY), and the bits of
// its pointers that may be a code, from the record's time on. All 0: the task has none.
struct PtrAuth {
  uint32_t pid = 0, tid = 0;
  uint64_t enabled_keys = 0, insn_mask = 0, data_mask = 0;
  friend bool operator==(const PtrAuth&, const PtrAuth&) = default;
};

// ---- user records ----
struct HeaderAttr {
  Attr attr;
  std::vector<uint64_t> ids;
  friend bool operator==(const HeaderAttr&, const HeaderAttr&) = default;
};
struct HeaderEventType {
  uint64_t id = 0;
  std::string name;
  friend bool operator==(const HeaderEventType&, const HeaderEventType&) = default;
};
struct HeaderTracingData {
  std::vector<uint8_t> bytes;
  friend bool operator==(const HeaderTracingData&, const HeaderTracingData&) = default;
};
struct HeaderBuildId {
  int32_t pid = 0;
  BuildId build_id;
  std::string filename;
  friend bool operator==(const HeaderBuildId&, const HeaderBuildId&) = default;
};
struct FinishedRound {
  friend bool operator==(const FinishedRound&, const FinishedRound&) = default;
};
struct IdIndexEntry {
  uint64_t id = 0, idx = 0, cpu = 0, tid = 0;
  uint64_t machine_pid = 0, vcpu = 0;  // IdIndex::has_machine
  friend bool operator==(const IdIndexEntry&, const IdIndexEntry&) = default;
};
struct IdIndex {
  bool has_machine = false;
  std::vector<IdIndexEntry> entries;
  friend bool operator==(const IdIndex&, const IdIndex&) = default;
};
struct AuxtraceInfo {
  uint32_t type = 0, reserved = 0;
  std::vector<uint64_t> priv;
  friend bool operator==(const AuxtraceInfo&, const AuxtraceInfo&) = default;
};
struct Auxtrace {
  uint64_t size = 0, offset = 0, reference = 0;
  uint32_t idx = 0, tid = 0, cpu = 0, reserved = 0;
  friend bool operator==(const Auxtrace&, const Auxtrace&) = default;
};
struct AuxtraceError {
  uint32_t type = 0, code = 0, cpu = 0, pid = 0, tid = 0, fmt = 0;
  uint64_t ip = 0, time = 0;  // no time if fmt is 0
  std::string msg;
  uint32_t machine_pid = 0, vcpu = 0;  // if fmt is 2 or more
  friend bool operator==(const AuxtraceError&, const AuxtraceError&) = default;
};
struct ThreadMapEntry {
  uint64_t pid = 0;
  std::string comm;
  friend bool operator==(const ThreadMapEntry&, const ThreadMapEntry&) = default;
};
struct ThreadMap {
  std::vector<ThreadMapEntry> entries;
  friend bool operator==(const ThreadMap&, const ThreadMap&) = default;
};
struct CpuMap {
  uint16_t kind = 0;  // 0 list, 1 mask, 2 range
  bool any_cpu = false;
  uint16_t long_size = 0;      // of the mask's words: 4 or 8
  std::vector<uint32_t> cpus;  // whichever way they were written; kind 2 holds first and last
  friend bool operator==(const CpuMap&, const CpuMap&) = default;
};
struct StatConfigEntry {
  uint64_t tag = 0, value = 0;
  friend bool operator==(const StatConfigEntry&, const StatConfigEntry&) = default;
};
struct StatConfig {
  std::vector<StatConfigEntry> entries;
  friend bool operator==(const StatConfig&, const StatConfig&) = default;
};
struct Stat {
  uint64_t id = 0;
  uint32_t cpu = 0, thread = 0;
  uint64_t value = 0, enabled = 0, running = 0;
  friend bool operator==(const Stat&, const Stat&) = default;
};
struct StatRound {
  uint64_t type = 0, time = 0;
  friend bool operator==(const StatRound&, const StatRound&) = default;
};
struct EventUpdate {
  uint64_t type = 0;  // 0 unit, 1 scale, 2 name, 3 cpus
  uint64_t id = 0;
  std::string text;            // of kinds 0 and 2
  uint64_t scale = 0;          // of kind 1: the bits of a double
  CpuMap cpus;                 // of kind 3
  std::vector<uint8_t> bytes;  // of other kinds
  friend bool operator==(const EventUpdate&, const EventUpdate&) = default;
};
struct TimeConv {
  uint64_t shift = 0, mult = 0, zero = 0;
  bool has_cycles = false;
  uint64_t cycles = 0, mask = 0;
  uint8_t cap_zero = 0, cap_short = 0;
  friend bool operator==(const TimeConv&, const TimeConv&) = default;
};
struct HeaderFeature {
  uint64_t feature = 0;
  std::vector<uint8_t> bytes;
  friend bool operator==(const HeaderFeature&, const HeaderFeature&) = default;
};
struct FinishedInit {
  friend bool operator==(const FinishedInit&, const FinishedInit&) = default;
};
struct BpfMetadataEntry {
  std::string key, value;
  friend bool operator==(const BpfMetadataEntry&, const BpfMetadataEntry&) = default;
};
struct BpfMetadata {
  std::string prog_name;
  std::vector<BpfMetadataEntry> entries;
  friend bool operator==(const BpfMetadata&, const BpfMetadata&) = default;
};
// Our own side-band record (types from 60000): mask of a process from a time on.
struct PacMask {
  // What `source` says, here and in our feature of the machine.
  static constexpr uint32_t kAskedOfCpu = 1, kProgramOf32Bits = 2;
  static constexpr uint32_t kKernelRecord = 3;  // a PTR_AUTH record
  static constexpr uint32_t kProcFile = 4;      // /proc/PID/ptr_auth
  uint32_t version = 1, kind = 1;
  uint32_t pid = 0, tid = 0;
  uint64_t time = 0, enabled_keys = 0, insn_mask = 0, data_mask = 0;
  uint32_t source = 0, reserved = 0;
  friend bool operator==(const PacMask&, const PacMask&) = default;
};
inline constexpr uint32_t kRecordTypePacMask = 60000;
// A type we do not know, or whose content we carry as it is (SCHEDSTAT_*).
struct Opaque {
  std::vector<uint8_t> payload;
  friend bool operator==(const Opaque&, const Opaque&) = default;
};

// Every record but SAMPLE (see sample.h), COMPRESSED and COMPRESSED2 (which the reader unpacks).
using RecordBody =
    std::variant<Opaque, Mmap, Mmap2, Lost, Comm, Task, Throttle, Read, Aux, ItraceStart,
                 LostSamples, Switch, SwitchCpuWide, Namespaces, Ksymbol, BpfEvent, Cgroup,
                 TextPoke, AuxOutputHwId, CallchainDeferred, PtrAuth, HeaderAttr, HeaderEventType,
                 HeaderTracingData, HeaderBuildId, FinishedRound, IdIndex, AuxtraceInfo, Auxtrace,
                 AuxtraceError, ThreadMap, CpuMap, StatConfig, Stat, StatRound, EventUpdate,
                 TimeConv, HeaderFeature, FinishedInit, BpfMetadata, PacMask>;

struct Record {
  uint32_t type = 0;
  uint16_t misc = 0;
  RecordBody body;
  std::optional<SampleId> sample_id;  // kernel records of events with sample_id_all
  friend bool operator==(const Record&, const Record&) = default;
};

// Which event's layout a record's trailer and READ values follow; null attr: no trailer.
struct RecordContext {
  Endian endian = Endian::kLittle;
  const Attr* attr = nullptr;
};

// Bytes of the trailer in records of an event that has one.
size_t SampleIdSize(const Attr& attr);

// Decodes any record but SAMPLE; PTR_AUTH of an event without ptr_auth is Opaque. kDamaged (offset
// = raw.file_offset) if it is too short for what it says; strings without NUL end at the record's
// end. Bytes behind the fields are left out.
Result<Record> DecodeRecord(const RawRecord& raw, const RecordContext& context);
// Encodes it with its 8-byte header and, if the context's event has one, its trailer (zeros if the
// record has none), ready to write; TRACING_DATA's bytes follow it. Fails with kUnsupported if it
// does not fit 65,535 bytes. decode(encode(r)) == r for what can be decoded: text ends before its
// first NUL, and a trailer is there just when the context's event has one.
Result<std::vector<uint8_t>> EncodeRecord(const Record& record, const RecordContext& context);

}  // namespace stackreel::perfdata
