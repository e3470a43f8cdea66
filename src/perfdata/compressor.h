// Packs a stream of records into COMPRESSED records.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/byte_writer.h"
#include "base/bytes.h"
#include "base/error.h"

struct ZSTD_CCtx_s;

namespace stackreel::perfdata {

// A row of zstd frames, each with a checksum of its content at the end, and cut so that each
// COMPRESSED record unpacks by itself (given those before it) and to at most kChunk bytes: perf
// gives up at one that yields nothing, or more than the mmap_len of feature COMPRESSED.
class Compressor {
 public:
  // What fits one record even if it cannot be compressed; see ZSTD_COMPRESSBOUND.
  static constexpr size_t kChunk = 65000;

  // kUsage if zstd has no such level.
  static Result<std::unique_ptr<Compressor>> Create(int level);
  ~Compressor();
  Compressor(const Compressor&) = delete;
  Compressor& operator=(const Compressor&) = delete;

  // Appends to `out` the COMPRESSED records that hold `bytes`, which is not empty. After kFrame
  // bytes or so, and where `end_frame` says so, a frame ends: so far damage reaches at most.
  static constexpr size_t kFrame = size_t{1} << 20;
  Status Compress(ByteView bytes, bool end_frame, ByteWriter& out);
  // What was compressed last has no checksum yet.
  [[nodiscard]] bool in_frame() const { return frame_bytes_ != 0; }
  [[nodiscard]] uint64_t bytes_in() const { return bytes_in_; }
  [[nodiscard]] uint64_t bytes_out() const { return bytes_out_; }  // without the record headers

 private:
  struct FreeContext {
    void operator()(ZSTD_CCtx_s* context) const;
  };
  Compressor() = default;
  Status CompressChunk(ByteView chunk, bool end_frame, ByteWriter& out);

  std::unique_ptr<ZSTD_CCtx_s, FreeContext> context_;
  std::vector<uint8_t> packed_;
  uint64_t frame_bytes_ = 0;  // of the frame that is open
  uint64_t bytes_in_ = 0, bytes_out_ = 0;
};

}  // namespace stackreel::perfdata
