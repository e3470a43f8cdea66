// The feature sections as structures, and their layouts: perf's Documentation of perf.data and, for
// the bits from 200 up, our own.
#pragma once

#include <string>
#include <vector>

#include "perfdata/attr_layout.h"
#include "perfdata/features.h"
#include "perfdata/layout.h"

namespace stackreel::perfdata {

// u32 size, then the text, NUL-terminated and padded with zeros; perf pads to 64 bytes.
struct FeatureString {
  static void Decode(ByteReader& in, std::string& value, const WireScope&) {
    value = TextUpToNul(in.Bytes(in.U32()));
  }
  static void Encode(ByteWriter& out, const std::string& value, const WireScope&) {
    const size_t size = (value.size() + 1 + 63) / 64 * 64;
    out.U32(static_cast<uint32_t>(size));
    out.Text(value);
    out.Zeros(size - value.size());
  }
};
// u32 count, then strings.
struct FeatureStrings {
  static void Decode(ByteReader& in, std::vector<std::string>& value, const WireScope& scope) {
    const uint32_t count = in.U32();
    value.clear();
    for (uint32_t i = 0; i < count && in.ok(); ++i) {
      FeatureString::Decode(in, value.emplace_back(), scope);
    }
  }
  static void Encode(ByteWriter& out, const std::vector<std::string>& value,
                     const WireScope& scope) {
    out.U32(static_cast<uint32_t>(value.size()));
    for (const std::string& text : value) FeatureString::Encode(out, text, scope);
  }
};

// HOSTNAME, OSRELEASE, VERSION, ARCH, CPUDESC, CPUID.
struct HostText {
  std::string text;
};
template <>
inline constexpr auto kLayout<HostText> =
    Layout<HostText>(F<FeatureString>("text", &HostText::text, Sensitivity::kHost));

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
    Layout<TotalMem>(F("kilobytes", &TotalMem::kilobytes, Sensitivity::kHost));

struct Cmdline {
  std::vector<std::string> words;
};
template <>
inline constexpr auto kLayout<Cmdline> =
    Layout<Cmdline>(F<FeatureStrings>("words", &Cmdline::words, Sensitivity::kCommandLine));

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

template <>
inline constexpr auto kLayout<Features::Compressed> = Layout<Features::Compressed>(
    F("version", &Features::Compressed::version, Sensitivity::kNone),
    F("type", &Features::Compressed::type, Sensitivity::kNone),
    F("level", &Features::Compressed::level, Sensitivity::kNone),
    F("ratio", &Features::Compressed::ratio, Sensitivity::kNone),
    F("mmap_len", &Features::Compressed::mmap_len, Sensitivity::kNone));

}  // namespace stackreel::perfdata
