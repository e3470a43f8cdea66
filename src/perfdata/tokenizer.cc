#include "perfdata/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "perfdata/record_size.h"
#include "perfdata/resync.h"

namespace stackreel::perfdata {
namespace {

constexpr size_t kCompressed2HeaderSize = 16;
// The largest part of a zstd stream that perf puts behind one header of COMPRESSED2.
constexpr size_t kMaxCompressed2Piece = kMaxRecordSize - kCompressed2HeaderSize;
// Types are small numbers: the kernel's below 64, perf's from there, simpleperf's from 32768 and
// ours from 60000. A larger one is no record but what somebody printed into the pipe.
constexpr uint32_t kMaxType = 0xffff;
// Above what any recorder writes for one ring's worth of COMPRESSED2, or as TRACING_DATA.
constexpr uint64_t kMaxPayload = uint64_t{256} << 20;

}  // namespace

Tokenizer::Tokenizer(BlockStream& stream, Endian endian, Counters& counters)
    : stream_(stream), endian_(endian), counters_(counters), inner_(decompressor_) {}

Tokenizer::Header Tokenizer::LoadHeader(const uint8_t* bytes) const {
  return {LoadUnaligned<uint32_t>(bytes, endian_), LoadUnaligned<uint16_t>(bytes + 4, endian_),
          LoadUnaligned<uint16_t>(bytes + 6, endian_)};
}

// Reading is bound by memory: each record is little to do, and its pages are new to the processor,
// which does not look ahead across pages. Of what is far ahead as much is asked for as is read
// here, so that all of it is once; of long records, whose stacks are hardly looked at, the next
// header. The addresses may lie behind the data: a prefetch of what is not there does nothing.
void Tokenizer::PrefetchBehind(const uint8_t* record, size_t size) {
  constexpr size_t kLine = 64, kAhead = 2048, kLong = 1024;
  if (size > kLong) return __builtin_prefetch(record + size);
  for (size_t i = 0; i < size; i += kLine) __builtin_prefetch(record + kAhead + i);
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

// A record of a kind that is not known is believed if behind it the data ends or what may be a
// header lies: damage makes such types too.
Result<bool> Tokenizer::IsFollowedByRecord(const Header& header) {
  TRY_ASSIGN(const size_t ready, stream_.Ensure(header.size + kRecordHeaderSize));
  if (ready <= header.size) return ready == header.size;
  if (ready < header.size + kRecordHeaderSize) return false;
  const Header next = LoadHeader(stream_.view().data() + header.size);
  return next.type <= kMaxType && next.size >= kRecordHeaderSize;
}

// Looks for the next records behind a header that cannot be one. True if there are some; else the
// reading ends here. What was passed over may have been a part of the compressed stream, which then
// cannot be read on.
Result<bool> Tokenizer::PassOverDamage(std::string message, uint64_t at) {
  constexpr size_t kWindow = 2 * kResyncReach;
  constexpr uint64_t kLeastCompressed = 16;
  for (size_t from = 1;; from = 0) {
    TRY_ASSIGN(const size_t ready, stream_.Ensure(kWindow));
    const bool at_end = ready < kWindow;
    const std::optional<size_t> found = FindRecords(stream_.view(), from, at_end, endian_);
    if (!found && at_end) return Stop(std::move(message), at);
    stream_.Advance(found ? *found : ready - kResyncReach + 1);
    if (!found) continue;
    const uint64_t size = stream_.offset() - at;
    Note(fmt::format("{}; passed over {} bytes, to the next records at {:#x}", message, size,
                     stream_.offset()),
         at);
    if (end_.passed_over.size() < ReadEnd::kPassedOverKept) {
      end_.passed_over.push_back({at, stream_.offset()});
    }
    counters_.Add("perfdata.passed_over_bytes", size);
    if (size >= kLeastCompressed) {
      decompressor_.LosePiece();
      inner_.DropAvailable();
    }
    return true;
  }
}

void Tokenizer::CountUnknown(uint32_t type) {
  if (!IsKnownRecordType(type)) counters_.Add("perfdata.unknown_record");
}

// Asks for what will be read first of a record that is a few ahead: its header and the fields up to
// the registers, and the end of the one before it, where the size of a dumped stack is. Where it
// lies can be told only while all are of one size, as samples with stacks mostly are.
void Tokenizer::Prefetch(const BlockStream& stream, size_t size) {
  constexpr size_t kAhead = 4;
  constexpr size_t kLeast = 1024;  // smaller ones follow so closely that the CPU sees them coming
  constexpr size_t kLine = 64;
  constexpr size_t kFirstBytes = 320;
  const ByteView view = stream.view();
  if (size < kLeast || view.size() < kAhead * size + kFirstBytes) return;
  const uint8_t* at = view.data() + kAhead * size;
  __builtin_prefetch(at - 8);
  for (size_t i = 0; i < kFirstBytes; i += kLine) __builtin_prefetch(at + i);
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
  Prefetch(stream, header.size);
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
      // Every recorder flushes what it compresses at the end of each record.
      if (!inner_lost_ && decompressor_.bytes_out() == out_before_) {
        Note("a compressed record unpacks to nothing", compressed_at_);
        counters_.Add("perfdata.lost_compressed_record");
      }
      fed_block_.reset();
    }
    bool again = false;
    TRY_ASSIGN(const bool found, NextOuter(record, again));
    if (!again) return found;
  }
  return false;
}

// The next record of the outer stream; a compressed one is opened, damage passed over, and `again`
// made true: there may be more.
Result<bool> Tokenizer::NextOuter(RawRecord& record, bool& again) {
  const uint64_t at = stream_.offset();
  TRY_ASSIGN(size_t ready, stream_.Ensure(kRecordHeaderSize));
  if (ready < kRecordHeaderSize) {
    if (ready > 0) return Stop("the last record is cut off in its header", at);
    if (inner_.available() > 0) Note("the last compressed record ends inside a record", at);
    stopped_ = true;
    return false;
  }
  const Header header = LoadHeader(stream_.view().data());
  PrefetchBehind(stream_.view().data(), header.size);
  if (header.type > kMaxType) {
    TRY_ASSIGN(again, PassOverDamage(fmt::format("what follows is no record: type {:#x}, size {}",
                                                 header.type, header.size),
                                     at));
    return false;
  }
  if (header.type == static_cast<uint32_t>(RecordType::kCompressed2)) {
    TRY_ASSIGN(again, TakeCompressed2(header));
    return false;
  }
  if (header.size < kRecordHeaderSize) {
    TRY_ASSIGN(again, PassOverDamage(fmt::format("a record of type {} gives its size as {}, which "
                                                 "is less than its header's 8",
                                                 header.type, header.size),
                                     at));
    return false;
  }
  if (!IsKnownRecordType(header.type)) {
    TRY_ASSIGN(const bool whole, IsFollowedByRecord(header));
    if (!whole) {
      TRY_ASSIGN(again, PassOverDamage(fmt::format("no record of type {} and {} bytes is here",
                                                   header.type, header.size),
                                       at));
      return false;
    }
  }
  TRY_ASSIGN(ready, stream_.Ensure(header.size));
  if (ready < header.size) {
    return Stop(
        fmt::format("the last record is cut off: {} bytes of {} are there", ready, header.size),
        at);
  }
  end_.bytes += header.size;
  if (header.type == static_cast<uint32_t>(RecordType::kCompressed)) {
    TRY_ASSIGN(again, TakeCompressed(header));
    return false;
  }
  record.decompressed = false;
  if (header.type == static_cast<uint32_t>(RecordType::kHeaderTracingData) ||
      header.type == static_cast<uint32_t>(RecordType::kAuxtrace)) {
    return TakeExtra(header, at, record, again);
  }
  if (header.type == static_cast<uint32_t>(RecordType::kFinishedRound)) inner_lost_ = false;
  Emit(header, stream_, at, record);
  return true;
}

// Records that bytes follow which header.size does not count:
//   TRACING_DATA  u32 size, then align8(size) bytes, kept
//   AUXTRACE      u64 size, then size bytes, passed over
Result<bool> Tokenizer::TakeExtra(const Header& header, uint64_t at, RawRecord& record,
                                  bool& again) {
  const bool tracing = header.type == static_cast<uint32_t>(RecordType::kHeaderTracingData);
  if (header.size < kRecordHeaderSize + (tracing ? 4u : 8u)) {
    TRY_ASSIGN(again,
               PassOverDamage("a record that bytes follow is too short to say how many", at));
    return false;
  }
  const uint8_t* payload = stream_.view().data() + kRecordHeaderSize;
  const uint64_t size = tracing ? AlignTo8(LoadUnaligned<uint32_t>(payload, endian_))
                                : LoadUnaligned<uint64_t>(payload, endian_);
  if (!tracing) {
    Emit(header, stream_, at, record);
    TRY_ASSIGN(const uint64_t skipped, stream_.Skip(size));
    record.extra_size = skipped;
    end_.bytes += skipped;
    counters_.Add("perfdata.aux_bytes", skipped);
    if (skipped < size) Note("the AUX area data behind the last record is cut off", at);
    return true;
  }
  if (size > kMaxPayload) {
    TRY_ASSIGN(again, PassOverDamage(fmt::format("tracing data of {} bytes", size), at));
    return false;
  }
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
  Feed(stream_.view().subspan(kRecordHeaderSize, header.size - kRecordHeaderSize));
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
  const auto data_size =
      LoadUnaligned<uint64_t>(stream_.view().data() + kRecordHeaderSize, endian_);
  if (data_size > kMaxPayload) {
    return PassOverDamage(fmt::format("a compressed record says it holds {} bytes", data_size), at);
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
  if (!unpacking_) out_before_ = decompressor_.bytes_out();
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
    if (ensure(kRecordHeaderSize) < kRecordHeaderSize) return false;
    const Header header = LoadHeader(inner_.view().data());
    if (header.type > kMaxType || header.size < kRecordHeaderSize) {
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
