// perf_event_attr, decoded: linux/perf_event.h, in every published size from 64 to 144 bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"

namespace stackreel::perfdata {

// Bits of sample_type (enum perf_event_sample_format).
enum SampleBit : uint64_t {
  kSampleIp = 1u << 0,
  kSampleTid = 1u << 1,
  kSampleTime = 1u << 2,
  kSampleAddr = 1u << 3,
  kSampleRead = 1u << 4,
  kSampleCallchain = 1u << 5,
  kSampleId = 1u << 6,
  kSampleCpu = 1u << 7,
  kSamplePeriod = 1u << 8,
  kSampleStreamId = 1u << 9,
  kSampleRaw = 1u << 10,
  kSampleBranchStack = 1u << 11,
  kSampleRegsUser = 1u << 12,
  kSampleStackUser = 1u << 13,
  kSampleWeight = 1u << 14,
  kSampleDataSrc = 1u << 15,
  kSampleIdentifier = 1u << 16,
  kSampleTransaction = 1u << 17,
  kSampleRegsIntr = 1u << 18,
  kSamplePhysAddr = 1u << 19,
  kSampleAux = 1u << 20,
  kSampleCgroup = 1u << 21,
  kSampleDataPageSize = 1u << 22,
  kSampleCodePageSize = 1u << 23,
  kSampleWeightStruct = 1u << 24,
  // Kernels with the series in kernel/: enabled_keys, insn_mask, data_mask of pointer
  // authentication.
  kSampleArch1 = 1u << 25,
};

// Bits of read_format (enum perf_event_read_format).
enum ReadFormatBit : uint64_t {
  kReadTotalTimeEnabled = 1u << 0,
  kReadTotalTimeRunning = 1u << 1,
  kReadId = 1u << 2,
  kReadGroup = 1u << 3,
  kReadLost = 1u << 4,
};

// Bits of the attr's flag word, in little-endian bit order (Attr::flags is always in this order).
enum AttrFlag : uint64_t {
  kAttrDisabled = 1ull << 0,
  kAttrInherit = 1ull << 1,
  kAttrPinned = 1ull << 2,
  kAttrExclusive = 1ull << 3,
  kAttrExcludeUser = 1ull << 4,
  kAttrExcludeKernel = 1ull << 5,
  kAttrExcludeHv = 1ull << 6,
  kAttrExcludeIdle = 1ull << 7,
  kAttrMmap = 1ull << 8,
  kAttrComm = 1ull << 9,
  kAttrFreq = 1ull << 10,
  kAttrInheritStat = 1ull << 11,
  kAttrEnableOnExec = 1ull << 12,
  kAttrTask = 1ull << 13,
  kAttrWatermark = 1ull << 14,
  kAttrPreciseIpMask = 3ull << 15,
  kAttrMmapData = 1ull << 17,
  kAttrSampleIdAll = 1ull << 18,
  kAttrExcludeHost = 1ull << 19,
  kAttrExcludeGuest = 1ull << 20,
  kAttrExcludeCallchainKernel = 1ull << 21,
  kAttrExcludeCallchainUser = 1ull << 22,
  kAttrMmap2 = 1ull << 23,
  kAttrCommExec = 1ull << 24,
  kAttrUseClockid = 1ull << 25,
  kAttrContextSwitch = 1ull << 26,
  kAttrWriteBackward = 1ull << 27,
  kAttrNamespaces = 1ull << 28,
  kAttrKsymbol = 1ull << 29,
  kAttrBpfEvent = 1ull << 30,
  kAttrAuxOutput = 1ull << 31,
  kAttrCgroup = 1ull << 32,
  kAttrTextPoke = 1ull << 33,
  kAttrBuildId = 1ull << 34,
  kAttrInheritThread = 1ull << 35,
  kAttrRemoveOnExec = 1ull << 36,
  kAttrSigtrap = 1ull << 37,
  kAttrDeferCallchain = 1ull << 38,
  kAttrDeferOutput = 1ull << 39,
  kAttrPtrAuth = 1ull << 40,  // PTR_AUTH records; kernels with the series in kernel/
};

inline constexpr uint32_t kTypeHardware = 0;
inline constexpr uint32_t kTypeSoftware = 1;
inline constexpr uint32_t kTypeTracepoint = 2;
inline constexpr uint32_t kTypeHwCache = 3;
inline constexpr uint32_t kTypeRaw = 4;
inline constexpr uint32_t kTypeBreakpoint = 5;
// config of some software events: PERF_COUNT_SW_…
inline constexpr uint64_t kSwPageFaults = 2, kSwPageFaultsMin = 5, kSwPageFaultsMaj = 6;

struct Attr {
  uint32_t type = 0;
  uint32_t size = 0;  // as read; EncodeAttr chooses its own
  uint64_t config = 0;
  uint64_t sample_period_or_freq = 0;
  uint64_t sample_type = 0;
  uint64_t read_format = 0;
  uint64_t flags = 0;  // AttrFlag
  uint32_t wakeup_events_or_watermark = 0;
  uint32_t bp_type = 0;
  uint64_t config1 = 0;  // or bp_addr
  uint64_t config2 = 0;  // or bp_len
  uint64_t branch_sample_type = 0;
  uint64_t sample_regs_user = 0;
  uint32_t sample_stack_user = 0;
  int32_t clockid = 0;
  uint64_t sample_regs_intr = 0;
  uint32_t aux_watermark = 0;
  uint16_t sample_max_stack = 0;
  uint32_t aux_sample_size = 0;
  uint32_t aux_action = 0;
  uint64_t sig_data = 0;
  uint64_t config3 = 0;
  uint64_t config4 = 0;
  std::vector<uint8_t> tail;  // bytes past 144, opaque, in the file's byte order

  [[nodiscard]] bool Has(AttrFlag flag) const { return (flags & flag) != 0; }
  [[nodiscard]] bool sample_id_all() const { return Has(kAttrSampleIdAll); }
  friend bool operator==(const Attr&, const Attr&) = default;
};

// Decodes an attr from all of `bytes` (its size is what the container said; the size field inside
// is checked against it, 0 standing for 64). kDamaged if that size is less than 64, more than
// `bytes`, or not a multiple of 8.
Result<Attr> DecodeAttr(ByteView bytes, Endian endian);
// Encodes into the smallest published size that holds the fields that are not zero.
std::vector<uint8_t> EncodeAttr(const Attr& attr, Endian endian);
// Encodes into exactly `size` bytes, at least AttrBytesUsed.
std::vector<uint8_t> EncodeAttrSized(const Attr& attr, Endian endian, uint32_t size);
// Up to the last word that is not 0; at least 64.
uint32_t AttrBytesUsed(const Attr& attr);
// The smallest published size that holds them (with a tail: 144 and the tail).
uint32_t SmallestAttrSize(const Attr& attr);

// An attr with the event ids that carry it and the name it goes by ("cycles:u").
struct Event {
  Attr attr;
  std::vector<uint64_t> ids;
  std::string name;  // from EVENT_DESC or EVENT_UPDATE, else the one AttrName makes
};
// The name perf gives an attr: "cycles", "cpu-clock:u", "L1-dcache-load-misses", "raw 0x1b0".
std::string AttrName(const Attr& attr);

}  // namespace stackreel::perfdata
