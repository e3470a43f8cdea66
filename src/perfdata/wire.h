// How single values lie in a perf.data file: the wire forms that layout tables name.
//
// A wire form is a type with
//   static void Decode(ByteReader&, M& value, const WireScope&);
//   static void Encode(ByteWriter&, const M& value, const WireScope&);
// Decoding never fails by itself: it reads zeros past the end, and the reader's ok() tells.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/byte_reader.h"
#include "base/byte_writer.h"
#include "perfdata/attr.h"

namespace stackreel::perfdata {

// What a layout depends on besides the bytes.
struct WireScope {
  uint16_t misc = 0;
  const Attr* attr = nullptr;  // sample_type, read_format, register masks; may be null
  // Inside features:
  uint32_t nr_cpus = 0;            // NRCPUS's available; 0 if not known
  uint32_t attr_size = 0;          // EVENT_DESC's
  uint32_t schedstat_version = 0;  // CPU_DOMAIN_INFO's
  [[nodiscard]] uint64_t sample_type() const { return attr == nullptr ? 0 : attr->sample_type; }
};

// Marks a reader as overrun: for counts that the bytes at hand cannot hold.
inline void FailRead(ByteReader& in) { in.Skip(in.remaining() + uint64_t{1}); }

// The member's own width.
struct Number {
  template <typename M>
  static void Decode(ByteReader& in, M& value, const WireScope&) {
    if constexpr (sizeof(M) == 1) {
      value = static_cast<M>(in.U8());
    } else if constexpr (sizeof(M) == 2) {
      value = static_cast<M>(in.U16());
    } else if constexpr (sizeof(M) == 4) {
      value = static_cast<M>(in.U32());
    } else {
      static_assert(sizeof(M) == 8);
      value = static_cast<M>(in.U64());
    }
  }
  template <typename M>
  static void Encode(ByteWriter& out, const M& value, const WireScope&) {
    if constexpr (sizeof(M) == 1) {
      out.U8(static_cast<uint8_t>(value));
    } else if constexpr (sizeof(M) == 2) {
      out.U16(static_cast<uint16_t>(value));
    } else if constexpr (sizeof(M) == 4) {
      out.U32(static_cast<uint32_t>(value));
    } else {
      out.U64(static_cast<uint64_t>(value));
    }
  }
};

// Text to the end of the record: up to a NUL (or the end), written with one and zeros up to a
// multiple of kAlign.
template <size_t kAlign>
struct PaddedText {
  static void Decode(ByteReader& in, std::string& value, const WireScope&) {
    value = TextUpToNul(in.Bytes(in.remaining()));
  }
  static void Encode(ByteWriter& out, const std::string& value, const WireScope&) {
    const size_t size = (value.size() + 1 + kAlign - 1) / kAlign * kAlign;
    out.Text(value);
    out.Zeros(size - value.size());
  }
};

// Text in a field of N bytes, NUL-terminated unless it fills it. Longer text is cut when written.
template <size_t kSize>
struct FixedText {
  static void Decode(ByteReader& in, std::string& value, const WireScope&) {
    value = TextUpToNul(in.Bytes(kSize));
  }
  static void Encode(ByteWriter& out, const std::string& value, const WireScope&) {
    const size_t size = std::min(value.size(), kSize);
    out.Text(std::string_view(value).substr(0, size));
    out.Zeros(kSize - size);
  }
};

// N bytes as they are.
struct FixedBytes {
  template <size_t kSize>
  static void Decode(ByteReader& in, std::array<uint8_t, kSize>& value, const WireScope&) {
    const ByteView bytes = in.Bytes(kSize);
    std::copy(bytes.begin(), bytes.end(), value.begin());
  }
  template <size_t kSize>
  static void Encode(ByteWriter& out, const std::array<uint8_t, kSize>& value, const WireScope&) {
    out.Bytes(value);
  }
};

// All that is left, as it is.
struct RestBytes {
  static void Decode(ByteReader& in, std::vector<uint8_t>& value, const WireScope&) {
    const ByteView bytes = in.Bytes(in.remaining());
    value.assign(bytes.begin(), bytes.end());
  }
  static void Encode(ByteWriter& out, const std::vector<uint8_t>& value, const WireScope&) {
    out.Bytes(value);
  }
};

// An array of numbers with its length, a Count, before it.
template <typename Count>
struct Counted {
  template <typename E>
  static void Decode(ByteReader& in, std::vector<E>& value, const WireScope& scope) {
    Count count = 0;
    Number::Decode(in, count, scope);
    value.clear();
    if (count > in.remaining() / sizeof(E)) {
      return FailRead(in);
    }
    value.resize(count);
    for (E& element : value) Number::Decode(in, element, scope);
  }
  template <typename E>
  static void Encode(ByteWriter& out, const std::vector<E>& value, const WireScope& scope) {
    Number::Encode(out, static_cast<Count>(value.size()), scope);
    for (const E& element : value) Number::Encode(out, element, scope);
  }
};

// Numbers to the end of the record.
struct RestNumbers {
  template <typename E>
  static void Decode(ByteReader& in, std::vector<E>& value, const WireScope& scope) {
    value.clear();
    while (in.remaining() >= sizeof(E)) Number::Decode(in, value.emplace_back(), scope);
  }
  template <typename E>
  static void Encode(ByteWriter& out, const std::vector<E>& value, const WireScope& scope) {
    for (const E& element : value) Number::Encode(out, element, scope);
  }
};

}  // namespace stackreel::perfdata
