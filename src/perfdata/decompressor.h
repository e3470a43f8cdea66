// The zstd stream that COMPRESSED and COMPRESSED2 records carry piece by piece.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/io.h"

struct ZSTD_DCtx_s;

namespace stackreel::perfdata {

// A FileSource of the decompressed bytes: Read() gives 0 when the pieces fed so far are used up,
// and goes on when more are fed. It makes no more output than Read has room for.
class Decompressor : public FileSource {
 public:
  Decompressor();
  ~Decompressor() override;
  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;

  // Adds a piece, which must stay where it is until Read() has given 0. Only the first piece of a
  // stream begins with a frame's magic; after an error, pieces up to the next such are refused.
  Status Feed(ByteView piece);
  // A piece is missing: nothing can be read on before a new frame begins.
  void LosePiece();
  [[nodiscard]] uint64_t bytes_in() const { return bytes_in_; }
  [[nodiscard]] uint64_t bytes_out() const { return bytes_out_; }

  [[nodiscard]] std::string_view name() const override { return "compressed records"; }
  [[nodiscard]] std::optional<uint64_t> size() const override { return std::nullopt; }
  // kDamaged if zstd says so.
  Result<size_t> Read(std::span<uint8_t> out) override;
  Result<size_t> ReadAt(uint64_t offset, std::span<uint8_t> out) override;

 private:
  struct FreeContext {
    void operator()(ZSTD_DCtx_s* context) const;
  };
  std::unique_ptr<ZSTD_DCtx_s, FreeContext> context_;
  std::vector<ByteView> pieces_;  // not used up yet
  size_t next_piece_ = 0;
  size_t used_ = 0;       // of the next piece
  bool broken_ = false;   // an error was met; waits for a new frame
  bool drained_ = false;  // all that the pieces hold was read
  uint64_t bytes_in_ = 0, bytes_out_ = 0;
};

}  // namespace stackreel::perfdata
