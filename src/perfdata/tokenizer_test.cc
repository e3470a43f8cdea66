#include "perfdata/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include <random>

#include "perfdata/record_size.h"
#include "perfdata/synthetic_recording.h"

namespace stackreel::perfdata {
namespace {

using synthetic::Bytes;
using synthetic::Join;
using synthetic::Numbers;
using synthetic::RecordBytes;
using synthetic::RoundBytes;
using testing::ElementsAre;
using testing::HasSubstr;

// What a tokenizer makes of some bytes.
struct Tokens {
  std::vector<RawRecord> records;
  ReadEnd end;
  Counters counters;

  [[nodiscard]] std::vector<uint32_t> types() const {
    std::vector<uint32_t> types;
    types.reserve(records.size());
    for (const RawRecord& raw : records) types.push_back(raw.type);
    return types;
  }
};

Tokens Tokenize(const Bytes& bytes, size_t chunk = SIZE_MAX) {
  Tokens tokens;
  MemorySource source(bytes, false, chunk);
  BlockStream stream(source);
  Tokenizer tokenizer(stream, Endian::kLittle, tokens.counters);
  RawRecord raw;
  for (;;) {
    const Result<bool> more = tokenizer.Next(raw);
    EXPECT_TRUE(more);
    if (!more || !*more) break;
    tokens.records.push_back(raw);
  }
  tokens.end = tokenizer.end();
  return tokens;
}

// A SAMPLE of `size` bytes, filled from `seed`.
Bytes Patterned(size_t size, uint8_t seed) {
  Bytes payload(size - kRecordHeaderSize);
  for (size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<uint8_t>(seed + 7 * i);
  return RecordBytes(RecordType::kSample, payload);
}

// Bytes that zstd cannot make smaller.
Bytes Noise(size_t size) {
  std::mt19937 random(1);
  Bytes noise(size);
  for (uint8_t& byte : noise) byte = static_cast<uint8_t>(random());
  return noise;
}

// One zstd stream, flushed after each piece.
class ZstdStream {
 public:
  ~ZstdStream() { ZSTD_freeCCtx(context_); }
  Bytes Pack(const Bytes& bytes) {
    Bytes packed(ZSTD_compressBound(bytes.size()) + 1024);
    ZSTD_inBuffer input = {bytes.data(), bytes.size(), 0};
    ZSTD_outBuffer output = {packed.data(), packed.size(), 0};
    EXPECT_EQ(ZSTD_compressStream2(context_, &output, &input, ZSTD_e_flush), 0u);
    packed.resize(output.pos);
    return packed;
  }

 private:
  ZSTD_CCtx* context_ = ZSTD_createCCtx();
};

Bytes Compressed(const Bytes& packed) { return RecordBytes(RecordType::kCompressed, packed); }

// A COMPRESSED2 as perf writes it, with header.size `size` and no padding of its own.
Bytes Compressed2(const Bytes& packed, uint16_t size) {
  Bytes record = RecordBytes(RecordType::kCompressed2, Numbers({packed.size()}));
  StoreUnaligned<uint16_t>(record.data() + 6, size, Endian::kLittle);
  return Join({record, packed});
}

TEST(TokenizerTest, CutsRecordsOfEverySizeWhereverBlocksEnd) {
  std::vector<Bytes> written;
  written.reserve(61);
  for (int i = 0; i < 60; ++i) {
    written.push_back(Patterned(8 + 8 * static_cast<size_t>(i * i * 2 + i % 5), i));
  }
  written.push_back(Patterned(65528, 99));
  for (const size_t chunk : {size_t{1000}, size_t{65536}, SIZE_MAX}) {
    const Tokens tokens = Tokenize(Join(written), chunk);
    // All are compared after all was read: nothing may have been overwritten.
    ASSERT_EQ(tokens.records.size(), written.size());
    for (size_t i = 0; i < written.size(); ++i) {
      EXPECT_TRUE(std::ranges::equal(tokens.records[i].bytes, written[i])) << i;
    }
    EXPECT_TRUE(tokens.end.complete);
  }
}

// Maps pieces of memory, the first `pieces` it is asked for.
class MappingSource : public MemorySource {
 public:
  MappingSource(const Bytes& bytes, size_t pieces)
      : MemorySource(bytes), all_(bytes), pieces_(pieces) {}
  FileImagePtr MapAt(uint64_t offset, size_t size) override {
    if (mapped == pieces_ || offset > all_.size() || size > all_.size() - offset) return nullptr;
    ++mapped;
    const auto from = all_.begin() + static_cast<std::ptrdiff_t>(offset);
    return std::make_shared<MemoryImage>(Bytes(from, from + static_cast<std::ptrdiff_t>(size)));
  }
  size_t mapped = 0;

 private:
  const Bytes& all_;
  size_t pieces_;
};

// Wherever mapping ends and reading goes on: records lie across the pieces' ends.
TEST(TokenizerTest, ReadsWhatIsMapped) {
  std::vector<Bytes> written;
  for (size_t i = 0; i < 1000; ++i) {
    written.push_back(Patterned(8 + 8 * (i * 7919 % 8000), static_cast<uint8_t>(i)));
  }
  const Bytes bytes = Join(written);  // 32 MB
  for (const size_t pieces : {size_t{0}, size_t{1}, size_t{2}, size_t{100}}) {
    MappingSource source(bytes, pieces);
    BlockStream stream(source, 0, bytes.size());
    Counters counters;
    Tokenizer tokenizer(stream, Endian::kLittle, counters);
    std::vector<RawRecord> records;
    RawRecord raw;
    while (*tokenizer.Next(raw)) records.push_back(raw);
    EXPECT_TRUE(tokenizer.end().complete);
    // All but the last few bytes.
    if (pieces == 100) {
      EXPECT_GE(source.mapped, 5u);
    } else if (pieces < 100) {
      EXPECT_EQ(source.mapped, pieces);
    }
    ASSERT_EQ(records.size(), written.size());
    uint64_t offset = 0;
    for (size_t i = 0; i < written.size(); ++i) {
      ASSERT_TRUE(std::ranges::equal(records[i].bytes, written[i])) << i;
      ASSERT_EQ(records[i].file_offset, offset);
      offset += written[i].size();
    }
  }
}

TEST(TokenizerTest, ASmallSourceIsNotMapped) {
  const Bytes bytes = Join(std::vector<Bytes>(10, Patterned(8192, 1)));
  MappingSource source(bytes, 100);
  BlockStream stream(source, 0, bytes.size());
  Counters counters;
  Tokenizer tokenizer(stream, Endian::kLittle, counters);
  RawRecord raw;
  size_t records = 0;
  while (*tokenizer.Next(raw)) ++records;
  EXPECT_EQ(records, 10u);
  EXPECT_EQ(source.mapped, 0u);
}

TEST(TokenizerTest, ReusesBlocksThatNoRecordPointsInto) {
  const Bytes bytes = Join(std::vector<Bytes>(1000, Patterned(8192, 1)));
  MemorySource source(bytes, false);
  BlockStream stream(source);
  Counters counters;
  Tokenizer tokenizer(stream, Endian::kLittle, counters);
  std::vector<const Block*> blocks;
  RawRecord raw;
  while (*tokenizer.Next(raw)) {
    if (!std::ranges::count(blocks, raw.block.get())) blocks.push_back(raw.block.get());
  }
  EXPECT_LE(blocks.size(), 8u);  // of 8 MB
}

TEST(TokenizerTest, GivesOffsets) {
  const Tokens tokens = Tokenize(Join({Patterned(16, 1), Patterned(24, 2), Patterned(8, 3)}), 5);
  ASSERT_EQ(tokens.records.size(), 3u);
  EXPECT_EQ(tokens.records[1].file_offset, 16u);
  EXPECT_EQ(tokens.records[2].file_offset, 40u);
  EXPECT_EQ(tokens.end.bytes, 48u);
}

TEST(TokenizerTest, ReadsOnWhereACompressedRecordEndsInsideARecord) {
  const Bytes inner = Join({Patterned(64, 1), Patterned(4096, 2), Patterned(128, 3)});
  ZstdStream zstd;
  // Cut in the middle of the second record's content, and of the third's header.
  const Bytes bytes = Join({
      Compressed(zstd.Pack({inner.begin(), inner.begin() + 1000})),
      Patterned(16, 9),
      Compressed(zstd.Pack({inner.begin() + 1000, inner.begin() + 64 + 4096 + 3})),
      Compressed(zstd.Pack({inner.begin() + 64 + 4096 + 3, inner.end()})),
  });
  for (const size_t chunk : {size_t{1}, size_t{50}, SIZE_MAX}) {
    const Tokens tokens = Tokenize(bytes, chunk);
    ASSERT_EQ(tokens.records.size(), 4u);
    EXPECT_TRUE(tokens.records[0].decompressed);
    EXPECT_FALSE(tokens.records[1].decompressed);
    EXPECT_TRUE(std::ranges::equal(tokens.records[0].bytes, Patterned(64, 1)));
    EXPECT_TRUE(std::ranges::equal(tokens.records[1].bytes, Patterned(16, 9)));
    EXPECT_TRUE(std::ranges::equal(tokens.records[2].bytes, Patterned(4096, 2)));
    EXPECT_TRUE(std::ranges::equal(tokens.records[3].bytes, Patterned(128, 3)));
    EXPECT_TRUE(tokens.end.complete);
    EXPECT_EQ(tokens.end.decompressed_bytes, inner.size());
    EXPECT_EQ(tokens.end.records, 4u);
  }
}

TEST(TokenizerTest, UnpacksABombBlockByBlock) {
  Bytes zeros = RecordBytes(RecordType::kSample, Bytes(65520));
  Bytes inner;
  for (int i = 0; i < 256; ++i) inner.insert(inner.end(), zeros.begin(), zeros.end());  // 16 MB
  ZstdStream zstd;
  const Bytes packed = zstd.Pack(inner);
  ASSERT_LT(packed.size(), 65000u);
  const Bytes bytes = Compressed(packed);
  MemorySource source(bytes, false);
  BlockStream stream(source);
  Counters counters;
  Tokenizer tokenizer(stream, Endian::kLittle, counters);
  RawRecord raw;
  uint64_t records = 0;
  while (*tokenizer.Next(raw)) {
    ++records;
    EXPECT_LE(raw.block->bytes.size(), BlockPool::kBlockSize);
    EXPECT_LE(tokenizer.end().decompressed_bytes, records * 65528 + BlockPool::kBlockSize);
  }
  EXPECT_EQ(records, 256u);
}

TEST(TokenizerTest, ReadsPaddedCompressed2) {
  ZstdStream zstd;
  const Bytes packed = zstd.Pack(Join({Patterned(64, 1), Patterned(72, 2)}));
  const size_t padded = (16 + packed.size() + 7) / 8 * 8;
  const Bytes bytes = Join({Compressed2(packed, static_cast<uint16_t>(padded)),
                            Bytes(padded - 16 - packed.size()), RoundBytes()});
  const Tokens tokens = Tokenize(bytes, 10);
  EXPECT_THAT(tokens.types(), ElementsAre(9, 9, 68));
  EXPECT_TRUE(tokens.end.complete);
  EXPECT_EQ(tokens.counters.Get("perfdata.overflowed_compressed2"), 0u);
}

// Records whose compressed form has exactly `size` bytes, of which most is noise.
struct PackedRecords {
  Bytes records, packed;
};
PackedRecords PackToSize(size_t size) {
  PackedRecords result;
  size_t noise = size;
  for (int attempt = 0; attempt < 20 && result.packed.size() != size; ++attempt) {
    noise += size - result.packed.size() - (attempt == 0 ? size : 0);
    result.records = Patterned(32768, 2);
    const Bytes all = Noise(noise);
    for (size_t at = 0; at < noise; at += 60000) {
      const size_t end = std::min(noise, at + 60000);
      result.records = Join(
          {result.records, RecordBytes(RecordType::kSample, {all.data() + at, all.data() + end})});
    }
    result.packed = ZstdStream().Pack(result.records);
  }
  EXPECT_EQ(result.packed.size(), size);
  return result;
}

// What perf makes of it: one COMPRESSED2 whose size has overflowed, with the headers of the pieces
// behind the first inside its data; padded only if the size did not overflow.
Bytes PerfCompressed2(const Bytes& packed) {
  constexpr size_t kPiece = 65519;
  Bytes data;
  for (size_t at = 0; at < packed.size(); at += kPiece) {
    const size_t size = std::min(packed.size() - at, kPiece);
    if (at > 0) {
      Bytes header = RecordBytes(RecordType::kCompressed2, Numbers({0x1234567812345678}));
      StoreUnaligned<uint16_t>(header.data() + 6, static_cast<uint16_t>(16 + size),
                               Endian::kLittle);
      data = Join({data, header});
    }
    data.insert(data.end(), packed.data() + at, packed.data() + at + size);
  }
  const size_t aligned = (16 + data.size() + 7) / 8 * 8;
  const size_t padding = aligned > 0xffff ? 0 : aligned - 16 - data.size();
  return Join({Compressed2(data, static_cast<uint16_t>(aligned)), Bytes(padding)});
}

// 16 + 65513 bytes align to 65536, which is 0 in 16 bits.
TEST(TokenizerTest, RecoversOverflowedCompressed2) {
  for (const size_t size : {65500, 65512, 65513, 65519, 65520, 65600, 131038, 131039, 150000}) {
    const PackedRecords written = PackToSize(size);
    const Tokens tokens = Tokenize(Join({PerfCompressed2(written.packed), RoundBytes()}), 4096);
    EXPECT_TRUE(tokens.end.complete) << size;
    EXPECT_EQ(tokens.counters.Get("perfdata.overflowed_compressed2"), size > 65512 ? 1u : 0u);
    Bytes unpacked;
    for (const RawRecord& raw : tokens.records) {
      if (raw.decompressed) unpacked.insert(unpacked.end(), raw.bytes.begin(), raw.bytes.end());
    }
    EXPECT_TRUE(unpacked == written.records) << size;
    ASSERT_FALSE(tokens.records.empty());
    EXPECT_EQ(tokens.records.back().record_type(), RecordType::kFinishedRound) << size;
  }
}

TEST(TokenizerTest, ReadsWhatThereIsOfACutCompressedRecord) {
  ZstdStream zstd;
  const Bytes first = zstd.Pack(Patterned(64, 1));
  const Bytes second = zstd.Pack(Patterned(64, 2));
  Bytes bytes = Compressed2(Join({first, second}), 65000);
  bytes.resize(bytes.size() - second.size());
  const Tokens tokens = Tokenize(bytes);
  EXPECT_THAT(tokens.types(), ElementsAre(9));
  EXPECT_FALSE(tokens.end.complete);
  EXPECT_THAT(tokens.end.damage->message, HasSubstr("cut off"));
}

TEST(TokenizerTest, SaysThatTheLastCompressedRecordEndsInsideARecord) {
  ZstdStream zstd;
  const Bytes record = Patterned(64, 1);
  const Tokens tokens = Tokenize(Compressed(zstd.Pack({record.begin(), record.begin() + 40})));
  EXPECT_TRUE(tokens.records.empty());
  EXPECT_FALSE(tokens.end.complete);
  EXPECT_THAT(tokens.end.damage->message, HasSubstr("inside a record"));
}

TEST(TokenizerTest, ReadsPlainRecordsBehindDamagedZstd) {
  ZstdStream zstd;
  Bytes bad = zstd.Pack(Patterned(640, 1));
  for (size_t i = 5; i < bad.size(); ++i) bad[i] ^= 0x5a;
  ZstdStream other;
  const Bytes bytes =
      Join({Patterned(16, 1), Compressed(bad), Compressed(zstd.Pack(Bytes(100))), Patterned(24, 2),
            RoundBytes(), Compressed(other.Pack(Patterned(32, 3)))});  // a new stream
  const Tokens tokens = Tokenize(bytes);
  EXPECT_THAT(tokens.types(), ElementsAre(9, 9, 68, 9));
  EXPECT_FALSE(tokens.end.complete);
  EXPECT_EQ(tokens.end.damage->offset, 16u);
  EXPECT_THAT(tokens.end.damage->message, HasSubstr("zstd"));
  EXPECT_EQ(tokens.counters.Get("perfdata.lost_compressed_record"), 2u);
  EXPECT_TRUE(std::ranges::equal(tokens.records[3].bytes, Patterned(32, 3)));
}

TEST(TokenizerTest, FindsRecordsAgainBehindTheNextRound) {
  ZstdStream zstd;
  const Bytes bytes =
      Join({Compressed(zstd.Pack(Join({Patterned(64, 1), Bytes(32, 0xff), Patterned(64, 2)}))),
            Compressed(zstd.Pack(Patterned(64, 3))), Patterned(16, 4), RoundBytes(),
            Compressed(zstd.Pack(Patterned(64, 5)))});
  const Tokens tokens = Tokenize(bytes);
  EXPECT_THAT(tokens.types(), ElementsAre(9, 9, 68, 9));
  EXPECT_TRUE(std::ranges::equal(tokens.records[1].bytes, Patterned(16, 4)));
  EXPECT_TRUE(std::ranges::equal(tokens.records[3].bytes, Patterned(64, 5)));
  EXPECT_FALSE(tokens.end.complete);
  EXPECT_EQ(tokens.end.damage->offset, 0u);
}

TEST(TokenizerTest, PassesOverCompressedRecordsInsideCompressedRecords) {
  ZstdStream zstd;
  const Tokens tokens =
      Tokenize(Compressed(zstd.Pack(Join({Compressed(Bytes(16)), Patterned(64, 1)}))));
  EXPECT_THAT(tokens.types(), ElementsAre(9));
  EXPECT_EQ(tokens.counters.Get("perfdata.nested_compressed_record"), 1u);
}

// Records of several kinds and sizes, a round after each four.
std::vector<Bytes> Mixed(int count) {
  std::vector<Bytes> records;
  records.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    records.push_back(i % 5 == 4 ? RecordBytes(RecordType::kFinishedRound, {})
                                 : Patterned(64 + 8 * static_cast<size_t>(i % 7), i));
  }
  return records;
}

TEST(TokenizerTest, ReadsOnBehindADamagedHeader) {
  const std::vector<Bytes> good = Mixed(40);
  for (size_t hit = 0; hit < good.size(); ++hit) {
    // The size gone, or the type: the next record is found, and nothing before it.
    for (const size_t byte : {size_t{6}, size_t{3}}) {
      std::vector<Bytes> records = good;
      if (byte == 6) records[hit][6] = records[hit][7] = 0;
      if (byte == 3) records[hit][3] = 0xee;
      const Bytes bytes = Join(records);
      const Tokens tokens = Tokenize(bytes, 1000);
      uint64_t at = 0;
      for (size_t i = 0; i < hit; ++i) at += good[i].size();
      // Where only one record or none is left behind it, that is no proof.
      const bool provable = hit + 2 < good.size();
      ASSERT_EQ(tokens.records.size(), provable ? good.size() - 1 : hit) << hit << " " << byte;
      EXPECT_FALSE(tokens.end.complete);
      ASSERT_TRUE(tokens.end.damage);
      EXPECT_EQ(tokens.end.damage->offset, at);
      if (!provable) continue;
      EXPECT_THAT(tokens.end.damage->message, HasSubstr("passed over"));
      EXPECT_EQ(tokens.counters.Get("perfdata.passed_over_bytes"), good[hit].size());
      EXPECT_THAT(tokens.end.passed_over,
                  testing::ElementsAre(ReadEnd::PassedOver{at, at + good[hit].size()}));
    }
  }
}

TEST(TokenizerTest, ReadsOnBehindALongHole) {
  const Bytes before = Join(Mixed(10));
  const Bytes after = Join(Mixed(20));
  for (const size_t hole : {size_t{1}, size_t{13}, size_t{70'000}, size_t{1'500'000}}) {
    const Tokens tokens = Tokenize(Join({before, Noise(hole), after}), 65536);
    EXPECT_EQ(tokens.records.size(), 30U) << hole;
    EXPECT_EQ(tokens.counters.Get("perfdata.passed_over_bytes"), hole);
  }
}

TEST(TokenizerTest, EachHoleIsToldOf) {
  std::vector<Bytes> parts;
  for (int i = 0; i < 120; ++i) {
    parts.push_back(Join(Mixed(6)));
    parts.push_back(Bytes(24, 0xee));
  }
  parts.push_back(Join(Mixed(6)));
  const Tokens tokens = Tokenize(Join(parts));
  EXPECT_EQ(tokens.records.size(), 121U * 6);
  EXPECT_EQ(tokens.end.passed_over.size(), ReadEnd::kPassedOverKept);
  EXPECT_EQ(tokens.counters.Get("perfdata.passed_over_bytes"), 120U * 24);
}

TEST(TokenizerTest, CompressedDataIsNotReadOnBehindAHole) {
  ZstdStream zstd;
  const Bytes one = Compressed(zstd.Pack(Patterned(640, 1)));
  const Bytes two = Compressed(zstd.Pack(Patterned(648, 2)));
  const Bytes three = Compressed(zstd.Pack(Patterned(656, 3)));
  ZstdStream other;
  const Bytes four = Compressed(other.Pack(Patterned(664, 4)));
  const Bytes round = RecordBytes(RecordType::kFinishedRound, {});
  Bytes lost = two;
  lost[3] = 0xee;
  const Tokens tokens = Tokenize(Join({one, round, lost, round, three, round, four, round}));
  // What was in `three` needs what was in `two`; `four` begins anew.
  std::vector<size_t> sizes;
  sizes.reserve(tokens.records.size());
  for (const RawRecord& raw : tokens.records) sizes.push_back(raw.bytes.size());
  EXPECT_THAT(sizes, testing::ElementsAre(640, 8, 8, 8, 664, 8));
  EXPECT_EQ(tokens.counters.Get("perfdata.lost_compressed_record"), 1U);
  EXPECT_EQ(tokens.end.passed_over.size(), 1U);
}

TEST(TokenizerTest, AuxDataIsCounted) {
  const Bytes trace = Noise(1000);
  const Bytes aux = RecordBytes(RecordType::kAuxtrace, Numbers({trace.size(), 0, 0, 0, 0}));
  const Tokens tokens = Tokenize(Join({aux, trace, Patterned(64, 1)}), 100);
  ASSERT_EQ(tokens.records.size(), 2U);
  EXPECT_EQ(tokens.records[0].extra_size, 1000U);
  EXPECT_EQ(tokens.counters.Get("perfdata.aux_bytes"), 1000U);
  const Tokens cut = Tokenize(Join({aux, Noise(10)}));
  EXPECT_EQ(cut.records[0].extra_size, 10U);
  EXPECT_FALSE(cut.end.complete);
}

TEST(TokenizerTest, DoesNotBelieveSizes) {
  Bytes absurd = Compressed2(Bytes(100), 16);
  StoreUnaligned<uint64_t>(absurd.data() + 8, uint64_t{1} << 50, Endian::kLittle);
  EXPECT_THAT(Tokenize(absurd).end.damage->message, HasSubstr("says it holds"));
  StoreUnaligned<uint64_t>(absurd.data() + 8, uint64_t{200} << 20, Endian::kLittle);
  EXPECT_THAT(Tokenize(absurd).end.damage->message, HasSubstr("cut off"));
  const Bytes tracing = RecordBytes(RecordType::kHeaderTracingData, {0xff, 0xff, 0xff, 0xff});
  EXPECT_FALSE(Tokenize(tracing).end.complete);
  EXPECT_FALSE(Tokenize(RecordBytes(RecordType::kAuxtrace, Bytes(4))).end.complete);
}

}  // namespace
}  // namespace stackreel::perfdata
