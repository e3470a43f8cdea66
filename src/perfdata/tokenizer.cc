#include "perfdata/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace stackreel::perfdata {
namespace {

constexpr size_t kHeaderSize = 8;
constexpr size_t kCompressed2HeaderSize = 16;
// The largest part of a zstd stream that perf puts behind one header of COMPRESSED2.
constexpr size_t kMaxCompressed2Piece = 65535 - kCompressed2HeaderSize;
// Types are small numbers: the kernel's below 64, perf's from there, simpleperf's from 32768 and
// ours from 60000. A larger one is no record but what somebody printed into the pipe.
constexpr uint32_t kMaxType = 0xffff;
// Above what any recorder writes for one ring's worth of COMPRESSED2, or as TRACING_DATA.
constexpr uint64_t kMaxPayload = uint64_t{256} << 20;

bool IsKnown(uint32_t type) {
  return (type >= static_cast<uint32_t>(RecordType::kMmap) &&
          type <= static_cast<uint32_t>(RecordType::kCallchainDeferred)) ||
         (type >= static_cast<uint32_t>(RecordType::kHeaderAttr) &&
          type <= static_cast<uint32_t>(RecordType::kSchedstatDomain)) ||
         type == kRecordTypePacMask;
}

uint64_t AlignTo8(uint64_t n) { return (n + 7) & ~uint64_t{7}; }

}  // namespace

Tokenizer::Tokenizer(BlockStream& stream, Endian endian, Counters& counters)
    : stream_(stream), endian_(endian), counters_(counters), inner_(decompressor_) {}

Tokenizer::Header Tokenizer::LoadHeader(const uint8_t* bytes) const {
  return {LoadUnaligned<uint32_t>(bytes, endian_), LoadUnaligned<uint16_t>(bytes + 4, endian_),
          LoadUnaligned<uint16_t>(bytes + 6, endian_)};
}

void Tokenizer::Note(std::string message, uint64_t offset) {
  end_.complete = false;
  if (end_.damage) return;
  end_.damage = Error(ErrorKind::kDamaged, std::move(message)).AtOffset(offset);
}

bool Tokenizer::Stop(std::string message, uint64_t offset) {
  Note(std::move(message), offset);
  stopped_ = true;
  return false;
}

void Tokenizer::CountUnknown(uint32_t type) {
  if (!IsKnown(type)) counters_.Add("perfdata.unknown_record");
}

void Tokenizer::Emit(const Header& header, BlockStream& stream, uint64_t file_offset,
                     RawRecord& record) {
  record.type = header.type;
  record.misc = header.misc;
  record.bytes = stream.view().first(header.size);
  record.extra = {};
  record.extra_size = 0;
  record.file_offset = file_offset;
  if (record.block != stream.block()) record.block = stream.block();
  stream.Advance(header.size);
  ++end_.records;
  CountUnknown(header.type);
}

Result<bool> Tokenizer::Next(RawRecord& record) {
  while (!stopped_) {
    if (unpacking_) {
      TRY_ASSIGN(const bool found, NextInner(record));
      if (found) return true;
      unpacking_ = false;
      fed_block_.reset();
    }
    bool compressed = false;
    TRY_ASSIGN(const bool found, NextOuter(record, compressed));
    if (!compressed) return found;
  }
  return false;
}

// The next record of the outer stream; a compressed one is opened and makes `compressed` true.
Result<bool> Tokenizer::NextOuter(RawRecord& record, bool& compressed) {
  const uint64_t at = stream_.offset();
  TRY_ASSIGN(size_t ready, stream_.Ensure(kHeaderSize));
  if (ready < kHeaderSize) {
    if (ready > 0) return Stop("the last record is cut off in its header", at);
    if (inner_.available() > 0) Note("the last compressed record ends inside a record", at);
    stopped_ = true;
    return false;
  }
  const Header header = LoadHeader(stream_.view().data());
  if (header.type > kMaxType) {
    return Stop(
        fmt::format("what follows is no record: type {:#x}, size {}", header.type, header.size),
        at);
  }
  if (header.type == static_cast<uint32_t>(RecordType::kCompressed2)) {
    TRY_ASSIGN(compressed, TakeCompressed2(header));
    return false;
  }
  if (header.size < kHeaderSize) {
    return Stop(fmt::format("a record of type {} gives its size as {}, which is less than its "
                            "header's 8",
                            header.type, header.size),
                at);
  }
  TRY_ASSIGN(ready, stream_.Ensure(header.size));
  if (ready < header.size) {
    return Stop(
        fmt::format("the last record is cut off: {} bytes of {} are there", ready, header.size),
        at);
  }
  end_.bytes += header.size;
  if (header.type == static_cast<uint32_t>(RecordType::kCompressed)) {
    TRY_ASSIGN(compressed, TakeCompressed(header));
    return false;
  }
  record.decompressed = false;
  if (header.type == static_cast<uint32_t>(RecordType::kHeaderTracingData) ||
      header.type == static_cast<uint32_t>(RecordType::kAuxtrace)) {
    return TakeExtra(header, at, record);
  }
  if (header.type == static_cast<uint32_t>(RecordType::kFinishedRound)) inner_lost_ = false;
  Emit(header, stream_, at, record);
  return true;
}

// Records that bytes follow which header.size does not count:
//   TRACING_DATA  u32 size, then align8(size) bytes, kept
//   AUXTRACE      u64 size, then size bytes, passed over
Result<bool> Tokenizer::TakeExtra(const Header& header, uint64_t at, RawRecord& record) {
  const bool tracing = header.type == static_cast<uint32_t>(RecordType::kHeaderTracingData);
  if (header.size < kHeaderSize + (tracing ? 4u : 8u)) {
    return Stop("a record that bytes follow is too short to say how many", at);
  }
  const uint8_t* payload = stream_.view().data() + kHeaderSize;
  const uint64_t size = tracing ? AlignTo8(LoadUnaligned<uint32_t>(payload, endian_))
                                : LoadUnaligned<uint64_t>(payload, endian_);
  if (!tracing) {
    Emit(header, stream_, at, record);
    record.extra_size = size;
    TRY_ASSIGN(const uint64_t skipped, stream_.Skip(size));
    end_.bytes += skipped;
    if (skipped < size) Note("the AUX area data behind the last record is cut off", at);
    return true;
  }
  if (size > kMaxPayload) return Stop(fmt::format("tracing data of {} bytes", size), at);
  TRY_ASSIGN(const size_t ready, stream_.Ensure(header.size + size));
  if (ready < header.size + size) {
    return Stop(
        fmt::format("tracing data is cut off: {} bytes of {} are there", ready - header.size, size),
        at);
  }
  Emit(header, stream_, at, record);
  record.extra = stream_.view().first(size);
  record.extra_size = size;
  stream_.Advance(size);
  end_.bytes += size;
  return true;
}

Result<bool> Tokenizer::TakeCompressed(const Header& header) {
  compressed_at_ = stream_.offset();
  Feed(stream_.view().subspan(kHeaderSize, header.size - kHeaderSize));
  stream_.Advance(header.size);
  return true;
}

// {header, u64 data_size, data, zeros to a multiple of 8}. perf from 6.16 writes header.size as the
// low 16 bits of align8(16 + data_size), and then no zeros if that overflowed; and when the data
// was more than one header could hold, further headers lie inside it:
//
//   | header, data_size | 65519 bytes | header, 8 bytes | … bytes | header, 8 bytes | … bytes
//                       └──────────────────────── data_size ────────────────────────────────┘
Result<bool> Tokenizer::TakeCompressed2(const Header& header) {
  const uint64_t at = stream_.offset();
  TRY_ASSIGN(size_t ready, stream_.Ensure(kCompressed2HeaderSize));
  if (ready < kCompressed2HeaderSize) return Stop("the last compressed record is cut off", at);
  const auto data_size = LoadUnaligned<uint64_t>(stream_.view().data() + kHeaderSize, endian_);
  if (data_size > kMaxPayload) {
    return Stop(fmt::format("a compressed record says it holds {} bytes", data_size), at);
  }
  const uint64_t unpadded = kCompressed2HeaderSize + data_size;
  const bool overflowed = AlignTo8(unpadded) != header.size;
  if (overflowed) counters_.Add("perfdata.overflowed_compressed2");
  const uint64_t whole = overflowed ? unpadded : header.size;
  TRY_ASSIGN(ready, stream_.Ensure(whole));
  // Padding may be missing at the very end.
  if (ready < unpadded) {
    Note(fmt::format("the last compressed record is cut off: {} bytes of {} are there", ready,
                     whole),
         at);
  }
  compressed_at_ = at;
  end_.bytes += std::min<uint64_t>(ready, whole);
  ByteView data = stream_.view().subspan(
      kCompressed2HeaderSize, std::min<uint64_t>(ready, unpadded) - kCompressed2HeaderSize);
  stream_.Advance(std::min<uint64_t>(ready, whole));
  if (data.size() <= kMaxCompressed2Piece) {
    Feed(data);
    return true;
  }
  Feed(data.first(kMaxCompressed2Piece));
  data = data.subspan(kMaxCompressed2Piece);
  while (data.size() >= kCompressed2HeaderSize) {
    const Header inside = LoadHeader(data.data());
    if (inside.type != header.type || inside.misc != 0 || inside.size < kCompressed2HeaderSize) {
      break;
    }
    const size_t size = std::min<size_t>(inside.size, data.size());
    Feed(data.subspan(kCompressed2HeaderSize, size - kCompressed2HeaderSize));
    data = data.subspan(size);
  }
  if (!data.empty()) Feed(data);  // all one piece after all
  return true;
}

void Tokenizer::Feed(ByteView payload) {
  end_.compressed_bytes += payload.size();
  if (Status fed = decompressor_.Feed(payload); !fed) {
    counters_.Add("perfdata.lost_compressed_record");
    Note(fed.error().message, compressed_at_);
    return;
  }
  fed_block_ = stream_.block();
  unpacking_ = true;
}

// After damage inside the compressed stream, records are found again behind the next
// FINISHED_ROUND: every ring was drained to its end by then.
void Tokenizer::LoseInner() {
  inner_lost_ = true;
  inner_.DropAvailable();
  counters_.Add("perfdata.lost_compressed_record");
}

Result<bool> Tokenizer::NextInner(RawRecord& record) {
  const auto ensure = [this](size_t want) -> size_t {
    Result<size_t> ready = inner_.Ensure(want);
    end_.decompressed_bytes = decompressor_.bytes_out();
    if (ready) return *ready;
    Note(ready.error().message, compressed_at_);
    LoseInner();
    return 0;
  };
  for (;;) {
    if (inner_lost_) {
      inner_.DropAvailable();
      if (ensure(1) == 0) return false;
      continue;
    }
    if (ensure(kHeaderSize) < kHeaderSize) return false;
    const Header header = LoadHeader(inner_.view().data());
    if (header.type > kMaxType || header.size < kHeaderSize) {
      Note(fmt::format("inside a compressed record: no record has type {:#x} and size {}",
                       header.type, header.size),
           compressed_at_);
      LoseInner();
      continue;
    }
    if (ensure(header.size) < header.size) return false;
    if (header.type == static_cast<uint32_t>(RecordType::kCompressed) ||
        header.type == static_cast<uint32_t>(RecordType::kCompressed2)) {
      counters_.Add("perfdata.nested_compressed_record");
      inner_.Advance(header.size);
      continue;
    }
    record.decompressed = true;
    Emit(header, inner_, compressed_at_, record);
    return true;
  }
}

}  // namespace stackreel::perfdata
