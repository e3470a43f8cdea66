// Cuts a stream of bytes into records, those inside compressed records too.
#pragma once

#include <cstdint>
#include <string>

#include "base/counters.h"
#include "base/error.h"
#include "perfdata/block_stream.h"
#include "perfdata/decompressor.h"
#include "perfdata/reader.h"
#include "perfdata/record.h"

namespace stackreel::perfdata {

// Reads records from `stream` one after another. Only sizes are looked at; what a record holds is
// its decoder's matter.
//
//   outer stream:  MMAP | COMPRESSED | COMPRESSED | FINISHED_ROUND | …
//                            └── inner stream: SAMPLE | SAMPLE | SAM    (zstd, one stream a file)
//                                         └──────────────────────── PLE | COMM
class Tokenizer {
 public:
  // `stream` and `counters` must outlive the tokenizer.
  Tokenizer(BlockStream& stream, Endian endian, Counters& counters);

  // The next record; false at the end of what can be read, when end() tells what is to be told. An
  // Error is the source's.
  Result<bool> Next(RawRecord& record);
  // How far reading got so far.
  [[nodiscard]] const ReadEnd& end() const { return end_; }

 private:
  struct Header {
    uint32_t type;
    uint16_t misc;
    uint16_t size;
  };
  [[nodiscard]] Header LoadHeader(const uint8_t* bytes) const;
  static void PrefetchBehind(const uint8_t* record, size_t size);
  Result<bool> NextOuter(RawRecord& record, bool& again);
  Result<bool> NextInner(RawRecord& record);
  Result<bool> TakeExtra(const Header& header, uint64_t at, RawRecord& record, bool& again);
  Result<bool> TakeCompressed(const Header& header);
  Result<bool> TakeCompressed2(const Header& header);
  void Feed(ByteView payload);
  static void Prefetch(const BlockStream& stream, size_t size);
  void Emit(const Header& header, BlockStream& stream, uint64_t file_offset, RawRecord& record);
  Result<bool> IsFollowedByRecord(const Header& header);
  Result<bool> PassOverDamage(std::string message, uint64_t at);
  void CountUnknown(uint32_t type);
  void LoseInner();
  // Notes the first damage; what comes after it may still be read.
  void Note(std::string message, uint64_t offset);
  // Notes it and ends the reading.
  bool Stop(std::string message, uint64_t offset);

  BlockStream& stream_;
  Endian endian_;
  Counters& counters_;
  Decompressor decompressor_;
  BlockStream inner_;
  BlockPtr fed_block_;          // keeps the pieces that the decompressor reads
  uint64_t compressed_at_ = 0;  // offset of the compressed record being unpacked
  bool unpacking_ = false;      // the decompressor may have more
  uint64_t out_before_ = 0;     // bytes unpacked before the record that is being unpacked
  bool inner_lost_ = false;     // no record boundary is known inside the compressed stream
  bool stopped_ = false;
  ReadEnd end_;
};

}  // namespace stackreel::perfdata
