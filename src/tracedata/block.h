// Blocks: what both files of a trace are made of, below what stands in them.
//
//   file   := file head, block…
//   head   := magic 8 | version u32 | kind u32 | size of the head u32 | 0 u32 | hash u64
//   block  := magic u32 | stored u32 | bytes u32 | thread u32 | sequence u32 | codec u32 | base u64
//   |
//             hash of the stored bytes u64 | hash of the 40 bytes before u64 | stored bytes
//
// All is little-endian; hashes are XXH3, 64 bits. A block whose head is whole can be passed over
// when its bytes are damaged; where a head is damaged, the next one is found by its magic and hash.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/io.h"

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

namespace stackreel::tracedata {

inline constexpr uint32_t kTraceVersion = 3;
inline constexpr size_t kFileHeadSize = 32;
inline constexpr size_t kBlockHeadSize = 48;
inline constexpr uint32_t kMaxBlockBytes = 16 << 20;

enum class TraceFileKind : uint32_t { kCalls = 1, kFacts = 2 };
enum class BlockCodec : uint32_t {
  kPlain = 0,
  kZstd = 1,
  kColumns = 2,  // zstd of what SplitIntoColumns makes of them
};

struct FileHead {
  uint32_t version = 0;
  uint64_t size = 0;  // the first block stands behind it
};

struct BlockHead {
  uint32_t stored = 0;  // bytes that follow the head
  uint32_t bytes = 0;   // when decompressed; up to kMaxBlockBytes
  uint32_t thread = 0, sequence = 0;
  BlockCodec codec = BlockCodec::kPlain;
  uint64_t base = 0;
  uint64_t hash = 0;  // of the stored bytes
};

// Writes a file's head, then blocks.
class BlockWriter {
 public:
  // The sink must outlive it. `level` is zstd's; 0 does not compress.
  static Result<BlockWriter> Begin(ByteSink& sink, TraceFileKind kind, int level);

  // `head` says thread, sequence and base; the rest is found here. kUsage for more than
  // kMaxBlockBytes.
  Status Write(BlockHead head, ByteView bytes);

 private:
  struct FreeContext {
    void operator()(ZSTD_CCtx_s* context) const;
  };
  BlockWriter(ByteSink& sink, BlockCodec codec, int level)
      : sink_(&sink), codec_(codec), level_(level) {}

  ByteSink* sink_;
  BlockCodec codec_;  // what is tried
  int level_;
  std::unique_ptr<ZSTD_CCtx_s, FreeContext> context_;
  std::vector<uint8_t> columns_, out_;
};

// Whether `bytes` begin with the magic of a trace's file.
bool HasTraceMagic(ByteView bytes);
// kDamaged if these first bytes of a file are no head of that kind; kUnsupported for a version that
// is not known here.
Result<FileHead> CheckFileHead(ByteView bytes, TraceFileKind kind);
// Nothing if the bytes are no whole, undamaged head.
std::optional<BlockHead> DecodeBlockHead(ByteView bytes);
// The offset of the next place from `start` on where a block's head may stand; bytes.size() if
// there is none. The last kBlockHeadSize - 1 bytes are not looked at.
size_t FindBlockHead(ByteView bytes, size_t start);

// Takes blocks apart. One a thread.
class BlockDecoder {
 public:
  BlockDecoder();
  // What `stored` holds, valid until the next call; nothing if it is not what `head` says.
  std::optional<ByteView> Decode(const BlockHead& head, ByteView stored);

 private:
  struct FreeContext {
    void operator()(ZSTD_DCtx_s* context) const;
  };
  std::unique_ptr<ZSTD_DCtx_s, FreeContext> context_;
  std::vector<uint8_t> out_, joined_;
};

}  // namespace stackreel::tracedata
