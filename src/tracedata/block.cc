#include "tracedata/block.h"

#include <fmt/format.h>
#include <xxhash.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/byte_reader.h"
#include "base/byte_writer.h"
#include "tracedata/columns.h"

namespace stackreel::tracedata {

namespace {

constexpr std::array<uint8_t, 8> kFileMagic = {'S', 'R', 't', 'r', 'a', 'c', 'e', '\n'};
constexpr uint32_t kBlockMagic = 0x4b4c4253;  // "SBLK"
constexpr size_t kHashedHead = kBlockHeadSize - sizeof(uint64_t);

uint64_t HashOf(ByteView bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

}  // namespace

void BlockWriter::FreeContext::operator()(ZSTD_CCtx_s* context) const { ZSTD_freeCCtx(context); }

Result<BlockWriter> BlockWriter::Begin(ByteSink& sink, TraceFileKind kind, int level) {
  const BlockCodec packed =
      kind == TraceFileKind::kCalls ? BlockCodec::kColumns : BlockCodec::kZstd;
  BlockWriter writer(sink, level == 0 ? BlockCodec::kPlain : packed, level);
  if (level != 0) {
    writer.context_.reset(ZSTD_createCCtx());
    if (writer.context_ == nullptr) return Fail(ErrorKind::kIo, "no memory to compress in");
  }
  ByteWriter head(Endian::kLittle);
  head.Bytes(kFileMagic);
  head.U32(kTraceVersion);
  head.U32(static_cast<uint32_t>(kind));
  head.U32(kFileHeadSize);
  head.U32(0);
  head.U64(HashOf(head.view()));
  TRY(sink.Write(head.view()));
  return writer;
}

Status BlockWriter::Write(BlockHead head, ByteView bytes) {
  if (bytes.size() > kMaxBlockBytes) {
    return Fail(ErrorKind::kUsage, fmt::format("a block of {} bytes; at most {} are possible",
                                               bytes.size(), kMaxBlockBytes));
  }
  head.bytes = static_cast<uint32_t>(bytes.size());
  out_.resize(kBlockHeadSize + std::max(bytes.size(), ZSTD_compressBound(bytes.size())));
  size_t stored = bytes.size();
  head.codec = BlockCodec::kPlain;
  if (context_ != nullptr) {
    ByteView from = bytes;
    if (codec_ == BlockCodec::kColumns) {
      columns_.resize(bytes.size());
      SplitIntoColumns(bytes, columns_);
      from = columns_;
    }
    const size_t packed =
        ZSTD_compressCCtx(context_.get(), out_.data() + kBlockHeadSize,
                          out_.size() - kBlockHeadSize, from.data(), from.size(), level_);
    if (ZSTD_isError(packed) == 0 && packed < bytes.size()) {
      stored = packed;
      head.codec = codec_;
    }
  }
  if (head.codec == BlockCodec::kPlain && !bytes.empty()) {
    std::memcpy(out_.data() + kBlockHeadSize, bytes.data(), bytes.size());
  }
  ByteWriter fields(Endian::kLittle);
  fields.U32(kBlockMagic);
  fields.U32(static_cast<uint32_t>(stored));
  fields.U32(head.bytes);
  fields.U32(head.thread);
  fields.U32(head.sequence);
  fields.U32(static_cast<uint32_t>(head.codec));
  fields.U64(head.base);
  fields.U64(HashOf(ByteView(out_).subspan(kBlockHeadSize, stored)));
  fields.U64(HashOf(fields.view()));
  std::memcpy(out_.data(), fields.view().data(), kBlockHeadSize);
  return sink_->Write(ByteView(out_).first(kBlockHeadSize + stored));
}

bool HasTraceMagic(ByteView bytes) {
  return bytes.size() >= kFileMagic.size() &&
         std::equal(kFileMagic.begin(), kFileMagic.end(), bytes.begin());
}

Result<FileHead> CheckFileHead(ByteView bytes, TraceFileKind kind) {
  if (!HasTraceMagic(bytes)) {
    return Fail(
        Error(ErrorKind::kDamaged, "not a file of a trace: its magic is missing").AtOffset(0));
  }
  ByteReader reader(bytes);
  reader.Skip(kFileMagic.size());
  const uint32_t version = reader.U32();
  const uint32_t found = reader.U32();
  const uint32_t size = reader.U32();
  reader.U32();
  const uint64_t hash = reader.U64();
  if (!reader.ok()) {
    return Fail(Error(ErrorKind::kDamaged,
                      fmt::format("the head of a trace's file ends after {} of {} bytes",
                                  bytes.size(), kFileHeadSize))
                    .AtOffset(bytes.size()));
  }
  if (version == 0 || version > kTraceVersion) {
    return Fail(Error(ErrorKind::kUnsupported,
                      fmt::format("version {} of the trace format; this program reads up to {}",
                                  version, kTraceVersion))
                    .WithCure("a newer stackreel"));
  }
  if (hash != HashOf(bytes.first(kFileHeadSize - sizeof(uint64_t))) || size != kFileHeadSize) {
    return Fail(Error(ErrorKind::kDamaged, "the head of a trace's file is damaged").AtOffset(0));
  }
  if (found != static_cast<uint32_t>(kind)) {
    return Fail(Error(ErrorKind::kDamaged, fmt::format("kind {} of a trace's file where {} belongs",
                                                       found, static_cast<uint32_t>(kind)))
                    .AtOffset(12));
  }
  return FileHead{.version = version, .size = size};
}

std::optional<BlockHead> DecodeBlockHead(ByteView bytes) {
  if (bytes.size() < kBlockHeadSize) return std::nullopt;
  ByteReader reader(bytes);
  if (reader.U32() != kBlockMagic) return std::nullopt;
  BlockHead head;
  head.stored = reader.U32();
  head.bytes = reader.U32();
  head.thread = reader.U32();
  head.sequence = reader.U32();
  const uint32_t codec = reader.U32();
  head.base = reader.U64();
  head.hash = reader.U64();
  if (reader.U64() != HashOf(bytes.first(kHashedHead))) return std::nullopt;
  if (codec > static_cast<uint32_t>(BlockCodec::kColumns)) return std::nullopt;
  head.codec = static_cast<BlockCodec>(codec);
  if (head.bytes > kMaxBlockBytes || head.stored > kMaxBlockBytes) return std::nullopt;
  return head;
}

size_t FindBlockHead(ByteView bytes, size_t start) {
  for (size_t at = start; at + kBlockHeadSize <= bytes.size(); ++at) {
    const void* found =
        std::memchr(bytes.data() + at, static_cast<uint8_t>(kBlockMagic), bytes.size() - at);
    if (found == nullptr) break;
    at = static_cast<size_t>(static_cast<const uint8_t*>(found) - bytes.data());
    if (DecodeBlockHead(bytes.subspan(at))) return at;
  }
  return bytes.size();
}

void BlockDecoder::FreeContext::operator()(ZSTD_DCtx_s* context) const { ZSTD_freeDCtx(context); }

BlockDecoder::BlockDecoder() : context_(ZSTD_createDCtx()) {}

std::optional<ByteView> BlockDecoder::Decode(const BlockHead& head, ByteView stored) {
  if (stored.size() != head.stored || HashOf(stored) != head.hash) return std::nullopt;
  if (head.codec == BlockCodec::kPlain) {
    if (head.bytes != head.stored) return std::nullopt;
    return stored;
  }
  if (context_ == nullptr || head.bytes > kMaxBlockBytes) return std::nullopt;
  if (out_.size() < head.bytes) out_.resize(head.bytes);
  const size_t n =
      ZSTD_decompressDCtx(context_.get(), out_.data(), head.bytes, stored.data(), stored.size());
  if (ZSTD_isError(n) != 0 || n != head.bytes) return std::nullopt;
  if (head.codec == BlockCodec::kZstd) return ByteView(out_).first(n);
  if (joined_.size() < n) joined_.resize(n);
  JoinColumns(ByteView(out_).first(n), std::span(joined_).first(n));
  return ByteView(joined_).first(n);
}

}  // namespace stackreel::tracedata
