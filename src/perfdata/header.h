// The header of perf.data: 16 bytes of a pipe, or 104 of a file.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"

namespace stackreel::perfdata {

// A part of the file.
struct Section {
  uint64_t offset = 0;
  uint64_t size = 0;
};

inline constexpr size_t kPipeHeaderSize = 16;
inline constexpr size_t kFileHeaderSize = 104;

//   0 magic | 8 size | 16 attr_size | 24 attrs | 40 data | 56 event_types | 72 feature bits, 32 B
// A size of 16 makes it a pipe's, which ends there.
struct FileHeader {
  Endian endian = kNativeEndian;
  uint64_t size = kFileHeaderSize;
  uint64_t attr_size = 0;  // of an attr with its ids section behind it
  Section attrs;           // {perf_event_attr, Section ids} each
  Section data;            // size 0: the recorder did not end
  std::array<uint64_t, 4> features = {};

  [[nodiscard]] bool is_pipe() const { return size == kPipeHeaderSize; }
  [[nodiscard]] bool HasFeature(uint32_t feature) const {
    return (features[feature / 64] >> (feature % 64) & 1) != 0;
  }
  void SetFeature(uint32_t feature) { features[feature / 64] |= uint64_t{1} << (feature % 64); }
  // The feature numbers set, ascending: the order of the table behind the data.
  [[nodiscard]] std::vector<uint32_t> FeatureList() const;
};

// Parses the first bytes of a source: 16 are enough for a pipe; for a file, as many as there are up
// to 104. kDamaged if it is no perf.data, or a file's header is cut off.
Result<FileHeader> ParseHeader(ByteView bytes);
// The 16 or 104 bytes.
std::vector<uint8_t> EncodeHeader(const FileHeader& header);

}  // namespace stackreel::perfdata
