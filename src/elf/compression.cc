#include "elf/compression.h"

#include <elf.h>
#include <fmt/format.h>
#include <libdeflate.h>
#include <lzma.h>
#include <zstd.h>

#include <algorithm>
#include <memory>

#include "base/byte_reader.h"
#include "base/page_advice.h"

namespace stackreel::elf {

namespace {

constexpr uint32_t kCompressZlib = 1;  // ELFCOMPRESS_ZLIB
constexpr uint32_t kCompressZstd = 2;  // ELFCOMPRESS_ZSTD, not in every <elf.h>
constexpr uint64_t kLeastLimit = uint64_t{64} << 10;
// From here on, pages are better made in one go.
constexpr size_t kLarge = size_t{256} << 10;
constexpr uint64_t kMostLimit = uint64_t{1} << 30;
// xz -9 needs 65 MiB; a dictionary beyond this is refused before it is allocated.
constexpr uint64_t kXzMemoryLimit = uint64_t{128} << 20;
// The same for zstd: windows of up to 2^27 bytes, as the zstd tool takes without --long.
constexpr int kZstdWindowLog = 27;

Error Damaged(std::string text) { return {ErrorKind::kDamaged, std::move(text)}; }

Error TooLong(const char* format, size_t compressed, uint64_t limit) {
  return Damaged(
      fmt::format("{} stream of {} bytes gives more than {} bytes", format, compressed, limit));
}

// `size` bytes to be filled.
std::vector<uint8_t> ToFill(size_t size) {
  std::vector<uint8_t> bytes;
  bytes.reserve(size);
  if (size >= kLarge) WillWrite(bytes.data(), size);
  bytes.resize(size);
  return bytes;
}

// Bytes that come out of a decompressor; grows as they come, so that a stated size costs nothing.
class Output {
 public:
  Output(uint64_t limit, size_t compressed)
      : bytes_(ToFill(std::min<uint64_t>(limit, std::max<uint64_t>(kLeastLimit, 4 * compressed)))),
        limit_(limit) {}
  [[nodiscard]] std::span<uint8_t> Free() { return std::span(bytes_).subspan(used_); }
  void Use(size_t count) { used_ += count; }
  // Room for at least one more byte; false if the limit is reached.
  [[nodiscard]] bool Grow() {
    if (used_ < bytes_.size()) return true;
    if (used_ >= limit_) return false;
    bytes_.resize(std::min<uint64_t>(limit_, 2 * uint64_t{bytes_.size()}));
    return true;
  }
  std::vector<uint8_t> Take() {
    bytes_.resize(used_);
    return std::move(bytes_);
  }

 private:
  std::vector<uint8_t> bytes_;
  size_t used_ = 0;
  uint64_t limit_;
};

enum class Step : uint8_t { kMore, kEnd, kDamaged };

// Calls `step` (which fills Output::Free() and says how it went) until the stream ends. A stream
// that gives nothing though it has room wants input that is not there.
template <typename StepFunction>
Result<std::vector<uint8_t>> Run(const char* format, size_t compressed, uint64_t limit,
                                 StepFunction step) {
  // One byte beyond the limit tells a stream that is too long from one that just fits.
  Output output(limit + 1, compressed);
  while (true) {
    if (!output.Grow()) {
      return Fail(TooLong(format, compressed, limit));
    }
    const size_t room = output.Free().size();
    const Step how = step(output);
    if (how == Step::kEnd) return output.Take();
    if (how == Step::kDamaged) return Fail(Damaged(fmt::format("{} stream is damaged", format)));
    if (output.Free().size() == room) {
      return Fail(Damaged(fmt::format("{} stream is cut off", format)));
    }
  }
}

enum class DeflateFormat : uint8_t { kZlib, kGzip };

// libdeflate fills a buffer from the beginning or says that it is too small. The first one is of
// the size that nearly all streams fit in; a larger one is made only once so much did come out, so
// that a stated size costs nothing.
Result<std::vector<uint8_t>> Inflate(ByteView stream, uint64_t limit, DeflateFormat format) {
  const std::unique_ptr<libdeflate_decompressor, void (*)(libdeflate_decompressor*)> deflate(
      libdeflate_alloc_decompressor(), libdeflate_free_decompressor);
  if (deflate == nullptr) return Fail(ErrorKind::kIo, "libdeflate has no memory");
  const auto run = format == DeflateFormat::kZlib ? libdeflate_zlib_decompress_ex
                                                  : libdeflate_gzip_decompress_ex;
  uint64_t size = std::min<uint64_t>(limit, std::max<uint64_t>(kLeastLimit, 8 * stream.size()));
  while (true) {
    std::vector<uint8_t> bytes = ToFill(size);
    size_t taken = 0;
    size_t given = 0;
    switch (run(deflate.get(), stream.data(), stream.size(), bytes.data(), size, &taken, &given)) {
      case LIBDEFLATE_SUCCESS:
        bytes.resize(given);
        return bytes;
      case LIBDEFLATE_INSUFFICIENT_SPACE:
        if (size == limit) return Fail(TooLong("zlib", stream.size(), limit));
        size = std::min(limit, 8 * size);
        break;
      default:
        return Fail(Damaged("zlib stream is damaged or cut off"));
    }
  }
}

Result<std::vector<uint8_t>> InflateZstd(ByteView stream, uint64_t limit) {
  const std::unique_ptr<ZSTD_DCtx, size_t (*)(ZSTD_DCtx*)> zstd(ZSTD_createDCtx(), ZSTD_freeDCtx);
  if (zstd == nullptr) return Fail(ErrorKind::kIo, "zstd has no memory");
  ZSTD_DCtx_setParameter(zstd.get(), ZSTD_d_windowLogMax, kZstdWindowLog);
  ZSTD_inBuffer in = {stream.data(), stream.size(), 0};
  return Run("zstd", stream.size(), limit, [&](Output& output) {
    const std::span<uint8_t> free = output.Free();
    ZSTD_outBuffer out = {free.data(), free.size(), 0};
    const size_t result = ZSTD_decompressStream(zstd.get(), &out, &in);
    output.Use(out.pos);
    if (ZSTD_isError(result) != 0) return Step::kDamaged;
    return result == 0 && in.pos == in.size ? Step::kEnd : Step::kMore;
  });
}

Result<std::vector<uint8_t>> DecompressToSize(ByteView stream, uint64_t size, uint32_t type) {
  const uint64_t limit = DecompressedLimit(stream.size());
  if (size > limit) {
    return Fail(Damaged(
        fmt::format("compressed section says it becomes {} bytes; {} bytes may become {} at most",
                    size, stream.size(), limit)));
  }
  Result<std::vector<uint8_t>> bytes = std::vector<uint8_t>();
  if (type == kCompressZlib) {
    bytes = Inflate(stream, size, DeflateFormat::kZlib);
  } else if (type == kCompressZstd) {
    bytes = InflateZstd(stream, size);
  } else {
    return Fail(
        ErrorKind::kUnsupported,
        fmt::format("section is compressed by method {}; 1 (zlib) and 2 (zstd) are known", type));
  }
  if (bytes && bytes->size() != size) {
    return Fail(Damaged(
        fmt::format("compressed section became {} bytes, not {} as it says", bytes->size(), size)));
  }
  return bytes;
}

}  // namespace

uint64_t DecompressedLimit(size_t compressed) {
  return std::clamp(uint64_t{1032} * std::min<uint64_t>(compressed, kMostLimit), kLeastLimit,
                    kMostLimit);
}

Result<std::vector<uint8_t>> DecompressSection(ByteView raw, Class elf_class, Endian endian) {
  ByteReader reader(raw, endian);
  const uint32_t type = reader.U32();
  uint64_t size = 0;
  if (elf_class == Class::k64) {
    reader.Skip(4);  // ch_reserved
    size = reader.U64();
    reader.Skip(8);  // ch_addralign
  } else {
    size = reader.U32();
    reader.Skip(4);
  }
  if (!reader.ok()) return Fail(Damaged("compressed section is shorter than its header"));
  return DecompressToSize(reader.Rest(), size, type);
}

Result<std::vector<uint8_t>> DecompressZdebug(ByteView raw) {
  ByteReader reader(raw, Endian::kBig);
  const std::string_view magic = AsText(reader.Bytes(4));
  const uint64_t size = reader.U64();
  if (magic != "ZLIB" || !reader.ok()) {
    return Fail(Damaged("compressed debug section does not begin with \"ZLIB\" and a size"));
  }
  return DecompressToSize(reader.Rest(), size, kCompressZlib);
}

Result<std::vector<uint8_t>> DecompressXz(ByteView stream) {
  lzma_stream xz = LZMA_STREAM_INIT;
  if (lzma_stream_decoder(&xz, kXzMemoryLimit, 0) != LZMA_OK) {
    return Fail(ErrorKind::kIo, "xz has no memory");
  }
  const std::unique_ptr<lzma_stream, void (*)(lzma_stream*)> end(&xz, lzma_end);
  xz.next_in = stream.data();
  xz.avail_in = stream.size();
  return Run("xz", stream.size(), DecompressedLimit(stream.size()), [&](Output& output) {
    const std::span<uint8_t> free = output.Free();
    xz.next_out = free.data();
    xz.avail_out = free.size();
    const lzma_ret result = lzma_code(&xz, LZMA_RUN);
    output.Use(free.size() - xz.avail_out);
    if (result == LZMA_STREAM_END) return Step::kEnd;
    return result == LZMA_OK || result == LZMA_BUF_ERROR ? Step::kMore : Step::kDamaged;
  });
}

Result<std::vector<uint8_t>> DecompressZstd(ByteView stream) {
  return InflateZstd(stream, DecompressedLimit(stream.size()));
}

Result<std::vector<uint8_t>> DecompressGzip(ByteView stream) {
  return Inflate(stream, DecompressedLimit(stream.size()), DeflateFormat::kGzip);
}

}  // namespace stackreel::elf
