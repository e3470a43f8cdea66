#include "perfdata/decompressor.h"

#include <zstd.h>

#include <algorithm>
#include <array>
#include <string>

#include "base/check.h"

namespace stackreel::perfdata {
namespace {

// ZSTD_MAGICNUMBER as it lies in a file.
constexpr std::array<uint8_t, 4> kFrameMagic = {0x28, 0xb5, 0x2f, 0xfd};

bool BeginsFrame(ByteView piece) {
  return piece.size() >= kFrameMagic.size() &&
         std::equal(kFrameMagic.begin(), kFrameMagic.end(), piece.begin());
}

}  // namespace

Decompressor::Decompressor() = default;
Decompressor::~Decompressor() = default;

void Decompressor::FreeContext::operator()(ZSTD_DCtx_s* context) const { ZSTD_freeDCtx(context); }

Status Decompressor::Feed(ByteView piece) {
  if (!context_) {
    context_.reset(ZSTD_createDCtx());
    CHECK(context_ != nullptr);
  }
  bytes_in_ += piece.size();
  if (broken_) {
    if (!BeginsFrame(piece)) {
      return Fail(ErrorKind::kDamaged, "compressed data cannot be read on after an error");
    }
    ZSTD_DCtx_reset(context_.get(), ZSTD_reset_session_only);
    broken_ = false;
  }
  if (next_piece_ == pieces_.size()) {
    pieces_.clear();
    next_piece_ = 0;
  }
  pieces_.push_back(piece);
  drained_ = false;
  return {};
}

void Decompressor::LosePiece() {
  broken_ = bytes_in_ > 0;
  pieces_.clear();
  next_piece_ = used_ = 0;
}

Result<size_t> Decompressor::Read(std::span<uint8_t> out) {
  if (!context_ || broken_ || drained_) return size_t{0};
  ZSTD_outBuffer output = {out.data(), out.size(), 0};
  // zstd may hold finished output back when `out` was full: it is asked once without input too.
  for (;;) {
    const ByteView piece = next_piece_ < pieces_.size() ? pieces_[next_piece_] : ByteView();
    ZSTD_inBuffer input = {piece.data(), piece.size(), used_};
    const size_t status = ZSTD_decompressStream(context_.get(), &output, &input);
    if (ZSTD_isError(status)) {
      LosePiece();
      return Fail(ErrorKind::kDamaged, std::string("compressed data is damaged: zstd says ") +
                                           ZSTD_getErrorName(status));
    }
    used_ = input.pos;
    const bool piece_done = input.pos == input.size;
    if (piece_done && next_piece_ < pieces_.size()) {
      ++next_piece_;
      used_ = 0;
    }
    if (output.pos == output.size) break;
    if (next_piece_ >= pieces_.size()) {
      drained_ = true;
      break;
    }
  }
  bytes_out_ += output.pos;
  return output.pos;
}

Result<size_t> Decompressor::ReadAt(uint64_t, std::span<uint8_t>) {
  return Fail(ErrorKind::kUnsupported, "cannot seek in compressed records");
}

}  // namespace stackreel::perfdata
