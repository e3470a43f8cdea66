#include "perfdata/attr.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "perfdata/attr_layout.h"
#include "perfdata/record_size.h"

namespace stackreel::perfdata {

namespace {

// PERF_ATTR_SIZE_VER0 … VER9.
constexpr std::array<uint32_t, 10> kPublishedSizes = {64,  72,  80,  96,  104,
                                                      112, 120, 128, 136, kAttrSizeLast};

// All published fields, then the tail.
std::vector<uint8_t> EncodeWhole(const Attr& attr, Endian endian) {
  ByteWriter out(endian);
  EncodeFields(out, attr, WireScope());
  CHECK(out.size() == kAttrSizeLast + attr.tail.size());
  return out.Take();
}

}  // namespace

Result<Attr> DecodeAttr(ByteView bytes, Endian endian) {
  if (bytes.size() < kAttrSizeFirst) {
    return Fail(ErrorKind::kDamaged,
                fmt::format("perf_event_attr has {} bytes, not the {} of its first version",
                            bytes.size(), kAttrSizeFirst));
  }
  // The attr's own size says how much of it was written; 0 stands for the first version.
  uint32_t size = LoadUnaligned<uint32_t>(bytes.data() + 4, endian);
  if (size == 0) size = kAttrSizeFirst;
  if (size < kAttrSizeFirst || size > bytes.size() || size % 8 != 0) {
    return Fail(ErrorKind::kDamaged,
                fmt::format("perf_event_attr says it has {} bytes, its container gives it {}", size,
                            bytes.size()));
  }
  bytes = bytes.first(size);
  // A shorter attr is one whose later fields are 0.
  std::array<uint8_t, kAttrSizeLast> padded = {};
  if (size < kAttrSizeLast) {
    std::copy(bytes.begin(), bytes.end(), padded.begin());
    bytes = ByteView(padded);
  }
  ByteReader in(bytes, endian);
  Attr attr;
  NoTrace trace;
  DecodeFields(in, attr, WireScope(), trace);
  CHECK(in.ok());
  attr.size = size;
  return attr;
}

uint32_t AttrBytesUsed(const Attr& attr) {
  if (!attr.tail.empty()) return kAttrSizeLast + static_cast<uint32_t>(attr.tail.size());
  const std::vector<uint8_t> whole = EncodeWhole(attr, kNativeEndian);
  const auto last = std::find_if(whole.rbegin(), whole.rend(), [](uint8_t b) { return b != 0; });
  const auto used = static_cast<uint32_t>(whole.rend() - last);
  return std::max(static_cast<uint32_t>(AlignTo8(used)), kAttrSizeFirst);
}

uint32_t SmallestAttrSize(const Attr& attr) {
  const uint32_t used = AttrBytesUsed(attr);
  if (used > kAttrSizeLast) return used;
  return *std::find_if(kPublishedSizes.begin(), kPublishedSizes.end(),
                       [used](uint32_t size) { return size >= used; });
}

std::vector<uint8_t> EncodeAttrSized(const Attr& attr, Endian endian, uint32_t size) {
  CHECK(size >= AttrBytesUsed(attr));
  Attr sized = attr;
  sized.size = size;
  std::vector<uint8_t> bytes = EncodeWhole(sized, endian);
  bytes.resize(size);
  return bytes;
}

std::vector<uint8_t> EncodeAttr(const Attr& attr, Endian endian) {
  return EncodeAttrSized(attr, endian, SmallestAttrSize(attr));
}

namespace {

// The words of linux/perf_event.h as perf spells them on the command line.
constexpr std::array<const char*, 10> kHardwareNames = {"cycles",
                                                        "instructions",
                                                        "cache-references",
                                                        "cache-misses",
                                                        "branches",
                                                        "branch-misses",
                                                        "bus-cycles",
                                                        "stalled-cycles-frontend",
                                                        "stalled-cycles-backend",
                                                        "ref-cycles"};
constexpr std::array<const char*, 12> kSoftwareNames = {
    "cpu-clock",        "task-clock",   "page-faults",  "context-switches",
    "cpu-migrations",   "minor-faults", "major-faults", "alignment-faults",
    "emulation-faults", "dummy",        "bpf-output",   "cgroup-switches"};
constexpr std::array<const char*, 7> kCacheNames = {"L1-dcache", "L1-icache", "LLC", "dTLB",
                                                    "iTLB",      "branch",    "node"};
constexpr std::array<const char*, 3> kCacheOps = {"load", "store", "prefetch"};
constexpr std::array<const char*, 3> kCacheAccesses = {"loads", "stores", "prefetches"};

// config = cache | op << 8 | result << 16 (0 access, 1 miss).
std::string CacheEventName(uint64_t config) {
  const uint64_t cache = config & 0xff;
  const uint64_t op = (config >> 8) & 0xff;
  const uint64_t result = (config >> 16) & 0xff;
  if (cache >= kCacheNames.size() || op >= kCacheOps.size() || result > 1) {
    return fmt::format("hw-cache {:#x}", config);
  }
  return result == 0 ? fmt::format("{}-{}", kCacheNames[cache], kCacheAccesses[op])
                     : fmt::format("{}-{}-misses", kCacheNames[cache], kCacheOps[op]);
}

// bp_type: HW_BREAKPOINT_R 1, _W 2, _X 4.
std::string BreakpointName(const Attr& attr) {
  std::string access;
  if ((attr.bp_type & 1) != 0) access += 'r';
  if ((attr.bp_type & 2) != 0) access += 'w';
  if ((attr.bp_type & 4) != 0) access += 'x';
  return fmt::format("mem:{:#x}:{}", attr.config1, access);
}

std::string BaseName(const Attr& attr) {
  // On hybrid machines the upper half of a generic event's config is the PMU's type.
  const uint64_t generic = attr.config & 0xffffffff;
  switch (attr.type) {
    case kTypeHardware:
      if (generic < kHardwareNames.size()) return kHardwareNames[generic];
      return fmt::format("hardware {:#x}", attr.config);
    case kTypeSoftware:
      if (attr.config < kSoftwareNames.size()) return kSoftwareNames[attr.config];
      return fmt::format("software {:#x}", attr.config);
    case kTypeTracepoint:
      return fmt::format("tracepoint {}", attr.config);
    case kTypeHwCache:
      return CacheEventName(generic);
    case kTypeRaw:
      return fmt::format("raw {:#x}", attr.config);
    case kTypeBreakpoint:
      return BreakpointName(attr);
    default:
      return fmt::format("pmu {} config {:#x}", attr.type, attr.config);
  }
}

}  // namespace

std::string AttrName(const Attr& attr) {
  std::string modifiers;
  if (attr.Has(kAttrExcludeKernel) || attr.Has(kAttrExcludeUser) || attr.Has(kAttrExcludeHv)) {
    if (!attr.Has(kAttrExcludeKernel)) modifiers += 'k';
    if (!attr.Has(kAttrExcludeUser)) modifiers += 'u';
    if (!attr.Has(kAttrExcludeHv)) modifiers += 'h';
  }
  modifiers.append((attr.flags & kAttrPreciseIpMask) >> 15, 'p');
  if (attr.Has(kAttrExcludeHost)) modifiers += 'G';
  return modifiers.empty() ? BaseName(attr) : BaseName(attr) + ":" + modifiers;
}

}  // namespace stackreel::perfdata
