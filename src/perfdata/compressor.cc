#include "perfdata/compressor.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>

#include "base/check.h"
#include "perfdata/record.h"
#include "perfdata/record_size.h"

namespace stackreel::perfdata {
namespace {

constexpr size_t kMaxPacked = kMaxRecordSize - kRecordHeaderSize;
static_assert(ZSTD_COMPRESSBOUND(Compressor::kChunk) <= kMaxPacked);

}  // namespace

void Compressor::FreeContext::operator()(ZSTD_CCtx_s* context) const { ZSTD_freeCCtx(context); }
Compressor::~Compressor() = default;

Result<std::unique_ptr<Compressor>> Compressor::Create(int level) {
  if (level < ZSTD_minCLevel() || level > ZSTD_maxCLevel() || level == 0) {
    return Fail(ErrorKind::kUsage,
                fmt::format("zstd has no compression level {}: 1 to {}", level, ZSTD_maxCLevel()));
  }
  std::unique_ptr<Compressor> compressor(new Compressor);
  compressor->context_.reset(ZSTD_createCCtx());
  CHECK(compressor->context_ != nullptr);
  ZSTD_CCtx_setParameter(compressor->context_.get(), ZSTD_c_compressionLevel, level);
  ZSTD_CCtx_setParameter(compressor->context_.get(), ZSTD_c_checksumFlag, 1);
  compressor->packed_.resize(kMaxPacked);
  return compressor;
}

Status Compressor::Compress(ByteView bytes, bool end_frame, ByteWriter& out) {
  while (!bytes.empty()) {
    const size_t size = std::min(bytes.size(), kChunk);
    frame_bytes_ += size;
    // A frame's end has no record of its own: perf gives up at one that unpacks to nothing.
    const bool ends = frame_bytes_ >= kFrame || (end_frame && size == bytes.size());
    TRY(CompressChunk(bytes.first(size), ends, out));
    if (ends) frame_bytes_ = 0;
    bytes = bytes.subspan(size);
  }
  return {};
}

Status Compressor::CompressChunk(ByteView chunk, bool end_frame, ByteWriter& out) {
  bytes_in_ += chunk.size();
  ZSTD_inBuffer input = {chunk.data(), chunk.size(), 0};
  for (size_t left = 1; left != 0;) {  // once, but where zstd's bound does not hold
    ZSTD_outBuffer output = {packed_.data(), packed_.size(), 0};
    left = ZSTD_compressStream2(context_.get(), &output, &input,
                                end_frame ? ZSTD_e_end : ZSTD_e_flush);
    if (ZSTD_isError(left)) {
      return Fail(ErrorKind::kIo,
                  fmt::format("cannot compress: zstd says {}", ZSTD_getErrorName(left)));
    }
    out.U32(static_cast<uint32_t>(RecordType::kCompressed));
    out.U16(0);
    out.U16(static_cast<uint16_t>(kRecordHeaderSize + output.pos));
    out.Bytes({packed_.data(), output.pos});
    bytes_out_ += output.pos;
  }
  return {};
}

}  // namespace stackreel::perfdata
