// How texts lie in feature sections.
#pragma once

#include <string>
#include <vector>

#include "perfdata/wire.h"

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

}  // namespace stackreel::perfdata
