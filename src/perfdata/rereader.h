// Reads records a second time, from where they were read first.
#pragma once

#include <array>
#include <cstdint>

#include "base/error.h"
#include "base/io.h"
#include "perfdata/record.h"

namespace stackreel::perfdata {

// For records that lie plainly in a source that can be sought in. Those of one ring lie one behind
// the other, and a few rings take turns: the last windows read are kept.
class Rereader {
 public:
  // `source` must outlive it.
  Rereader(FileSource& source, Endian endian) : source_(source), endian_(endian) {}

  // Makes `record` the one of `size` bytes at `offset`. kDamaged if it is not there any more.
  Status Read(uint64_t offset, uint32_t size, RawRecord& record);

 private:
  // A window reaches one record's greatest size past its stride, so that whatever begins in the
  // stride is whole.
  static constexpr uint64_t kStride = uint64_t{64} << 10;
  static constexpr uint64_t kWindow = 2 * kStride;
  static constexpr size_t kWindows = 32;

  struct Window {
    uint64_t start = UINT64_MAX;
    BlockPtr block;
  };
  FileSource& source_;
  Endian endian_;
  std::array<Window, kWindows> windows_;
};

}  // namespace stackreel::perfdata
