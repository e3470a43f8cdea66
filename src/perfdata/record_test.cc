#include "perfdata/record.h"

#include <gtest/gtest.h>

#include "base/byte_writer.h"
#include "perfdata/one_of_each.h"
#include "perfdata/synthetic_recording.h"

namespace stackreel::perfdata {
namespace {

using one_of_each::KernelRecords;
using one_of_each::Make;
using one_of_each::SomeBuildId;
using one_of_each::TrailerAttr;
using one_of_each::UserRecords;

// The record at the start of `bytes`; what is behind it is its extra.
RawRecord FirstRecord(const std::vector<uint8_t>& bytes, Endian endian) {
  RawRecord raw = synthetic::AsRaw(bytes, endian);
  const auto size = LoadUnaligned<uint16_t>(bytes.data() + 6, endian);
  raw.bytes = ByteView(bytes).first(size);
  raw.extra = ByteView(bytes).subspan(size);
  raw.extra_size = raw.extra.size();
  return raw;
}

TEST(Record, KernelRecordsGoThroughBothByteOrdersWithAndWithoutTrailer) {
  const Attr attr = TrailerAttr();
  Attr no_trailer = attr;
  no_trailer.flags = kAttrPtrAuth;
  for (const Endian endian : {Endian::kLittle, Endian::kBig}) {
    for (const bool trailer : {false, true}) {
      const RecordContext context{endian, trailer ? &attr : &no_trailer};
      for (Record record : KernelRecords()) {
        if (trailer) {
          record.sample_id = SampleId{attr.sample_type & ~kSampleIp, 1, 2, 3, 4, 5, 6, 7};
        }
        const auto bytes = EncodeRecord(record, context);
        ASSERT_TRUE(bytes.has_value()) << record.type;
        EXPECT_EQ(bytes->size() % 8, 0u) << record.type;
        const auto decoded = DecodeRecord(FirstRecord(*bytes, endian), context);
        ASSERT_TRUE(decoded.has_value()) << decoded.error().ToString();
        EXPECT_TRUE(*decoded == record) << RecordTypeName(record.type);
        EXPECT_EQ(*EncodeRecord(*decoded, context), *bytes);
      }
    }
  }
}

TEST(Record, UserRecordsGoThroughBothByteOrders) {
  const Attr attr = TrailerAttr();  // user records have no trailer whatever the event says
  for (const Endian endian : {Endian::kLittle, Endian::kBig}) {
    const RecordContext context{endian, &attr};
    for (const Record& record : UserRecords()) {
      const auto bytes = EncodeRecord(record, context);
      ASSERT_TRUE(bytes.has_value()) << record.type;
      const auto decoded = DecodeRecord(FirstRecord(*bytes, endian), context);
      ASSERT_TRUE(decoded.has_value()) << decoded.error().ToString();
      EXPECT_TRUE(*decoded == record) << RecordTypeName(record.type);
      EXPECT_EQ(*EncodeRecord(*decoded, context), *bytes);
    }
  }
}

TEST(Record, TrailerIsReadFromTheEnd) {
  const Attr attr = TrailerAttr();
  Record record = Make(RecordType::kComm, Comm{1, 2, "x"});
  record.sample_id = SampleId{attr.sample_type & ~kSampleIp, 1, 2, 3, 4, 5, 6, 7};
  const auto bytes = *EncodeRecord(record, {Endian::kLittle, &attr});
  // IDENTIFIER is the last word, CPU two u32 before it, in either byte order.
  EXPECT_EQ(LoadUnaligned<uint64_t>(&bytes[bytes.size() - 8], Endian::kLittle), 4u);
  EXPECT_EQ(LoadUnaligned<uint32_t>(&bytes[bytes.size() - 16], Endian::kLittle), 6u);
  EXPECT_EQ(LoadUnaligned<uint32_t>(&bytes[bytes.size() - 12], Endian::kLittle), 7u);
  const auto big = *EncodeRecord(record, {Endian::kBig, &attr});
  EXPECT_EQ(LoadUnaligned<uint32_t>(&big[big.size() - 16], Endian::kBig), 6u);
}

TEST(Record, EveryCutIsAnErrorOrAShorterRecordNeverMore) {
  const Attr attr = TrailerAttr();
  const RecordContext context{Endian::kLittle, &attr};
  std::vector<Record> records = KernelRecords();
  for (Record& record : UserRecords()) records.push_back(std::move(record));
  for (const Record& record : records) {
    const auto bytes = *EncodeRecord(record, context);
    for (size_t size = 0; size < bytes.size(); ++size) {
      RawRecord raw = FirstRecord(bytes, Endian::kLittle);
      // Its own heap block, so that a sanitizer sees a read past the end.
      const std::vector<uint8_t> cut(bytes.begin(), bytes.begin() + static_cast<long>(size));
      raw.bytes = cut;
      raw.file_offset = 0x40;
      const auto decoded = DecodeRecord(raw, context);
      if (!decoded) {
        EXPECT_EQ(decoded.error().kind, ErrorKind::kDamaged);
        EXPECT_EQ(decoded.error().offset, 0x40u);
      }
    }
  }
}

// ---- bytes as others wrote them ----

// A record with `payload`, as a file has it.
class Written {
 public:
  explicit Written(RecordType type, uint16_t misc = 0, Endian endian = Endian::kLittle)
      : endian_(endian), out_(endian) {
    out_.U32(static_cast<uint32_t>(type));
    out_.U16(misc);
    out_.U16(0);
  }
  ByteWriter& out() { return out_; }
  Result<Record> Decode(const Attr* attr = nullptr) {
    out_.PutAt(6, static_cast<uint16_t>(out_.size()));
    bytes_ = std::vector<uint8_t>(out_.view().begin(), out_.view().end());
    return DecodeRecord(FirstRecord(bytes_, endian_), {endian_, attr});
  }

 private:
  Endian endian_;
  ByteWriter out_;
  std::vector<uint8_t> bytes_;
};

TEST(Record, TextWithoutNulEndsWithTheRecord) {
  Written comm(RecordType::kComm);
  comm.out().U64(1);
  comm.out().Text("sixteen letters!");
  EXPECT_EQ(std::get<Comm>(comm.Decode()->body).comm, "sixteen letters!");
}

TEST(Record, TextEndsBeforeTheTrailer) {
  Attr attr;
  attr.flags = kAttrSampleIdAll;
  attr.sample_type = kSampleTime;
  Written comm(RecordType::kComm);
  comm.out().U64(1);
  comm.out().Text("12345678");  // no NUL
  comm.out().U64(0x4141414141414141);
  const auto record = comm.Decode(&attr);
  EXPECT_EQ(std::get<Comm>(record->body).comm, "12345678");
  EXPECT_EQ(record->sample_id->time, 0x4141414141414141u);
}

// Kernels before 3.16 wrote MMAP2 without prot and flags.
TEST(Record, Mmap2OfTheFirstKernelsHasNoProtection) {
  for (const std::string_view name : {"/lib/libc.so", "[stack]", "//anon"}) {
    for (const Endian endian : {Endian::kLittle, Endian::kBig}) {
      Written mmap(RecordType::kMmap2, 0, endian);
      mmap.out().Zeros(8 + 24 + 24);
      mmap.out().Text(name);
      mmap.out().Zeros(16 - name.size());
      const auto record = mmap.Decode();
      EXPECT_EQ(std::get<Mmap2>(record->body).filename, name);
      EXPECT_EQ(std::get<Mmap2>(record->body).prot, 0u);
    }
  }
}

// A protection may have the bits of a '/' or a '[', but no letter's behind them.
TEST(Record, Mmap2WithOddProtectionsIsNotOfTheFirstKernels) {
  for (const uint32_t prot : {0x2fu, 0x5bu, 0x15bu, 0x12fu, 0x2f000000u, 0x5b010000u}) {
    for (const Endian endian : {Endian::kLittle, Endian::kBig}) {
      Written mmap(RecordType::kMmap2, 0, endian);
      mmap.out().Zeros(8 + 24 + 24);
      mmap.out().U32(prot);
      mmap.out().U32(2);
      mmap.out().Text("/bin/cat");
      mmap.out().Zeros(8);
      const auto record = mmap.Decode();
      EXPECT_EQ(std::get<Mmap2>(record->body).filename, "/bin/cat") << prot;
      EXPECT_EQ(std::get<Mmap2>(record->body).prot, prot);
      EXPECT_EQ(std::get<Mmap2>(record->body).flags, 2U);
    }
  }
}

TEST(Record, ReadHasEveryLayout) {
  for (uint64_t format = 0; format < 32; ++format) {
    Attr attr;
    attr.read_format = format;
    const bool group = (format & kReadGroup) != 0;
    ReadValues values;
    if ((format & kReadTotalTimeEnabled) != 0) values.time_enabled = 100;
    if ((format & kReadTotalTimeRunning) != 0) values.time_running = 90;
    for (uint64_t i = 0; i < (group ? 3 : 1); ++i) {
      values.values.push_back(
          {10 + i, (format & kReadId) != 0 ? 20 + i : 0, (format & kReadLost) != 0 ? 30 + i : 0});
    }
    const Record record = Make(RecordType::kRead, Read{1, 2, values});
    const auto bytes = *EncodeRecord(record, {Endian::kLittle, &attr});
    const size_t per_value =
        1 + ((format & kReadId) != 0 ? 1 : 0) + ((format & kReadLost) != 0 ? 1 : 0);
    const size_t words = (group ? 1 + 3 * per_value : per_value) +
                         ((format & kReadTotalTimeEnabled) != 0 ? 1 : 0) +
                         ((format & kReadTotalTimeRunning) != 0 ? 1 : 0);
    EXPECT_EQ(bytes.size(), 8 + 8 + 8 * words) << format;
    EXPECT_TRUE(*DecodeRecord(FirstRecord(bytes, Endian::kLittle), {Endian::kLittle, &attr}) ==
                record);
  }
}

// Non-group: value, enabled, running, id, lost. Group: nr, enabled, running, then each.
TEST(Record, ReadFieldsAreInTheKernelsOrder) {
  Attr attr;
  attr.read_format = 31 & ~uint64_t{kReadGroup};
  Written read(RecordType::kRead);
  for (const uint64_t word : {0, 1, 2, 3, 4, 5}) read.out().U64(word);
  const auto one = std::get<Read>(read.Decode(&attr)->body).values;
  EXPECT_EQ(one, (ReadValues{2, 3, {{1, 4, 5}}}));
  attr.read_format = 31;
  Written group(RecordType::kRead);
  for (const uint64_t word : {0, 1, 2, 3, 4, 5, 6}) group.out().U64(word);
  EXPECT_EQ(std::get<Read>(group.Decode(&attr)->body).values, (ReadValues{2, 3, {{4, 5, 6}}}));
}

TEST(Record, PtrAuthIsAsTheKernelWritesIt) {
  Attr attr;
  attr.sample_type = kSampleTid | kSampleTime | kSampleIdentifier;
  attr.flags = kAttrSampleIdAll | kAttrPtrAuth;
  for (const Endian endian : {Endian::kLittle, Endian::kBig}) {
    ByteWriter out(endian);
    out.U32(23);
    out.U16(0);
    out.U16(8 + 32 + 24);
    out.U32(5);  // pid
    out.U32(6);  // tid
    out.U64(0x1c);
    out.U64(0x007f000000000000);
    out.U64(0x0070000000000000);
    out.U32(5);  // trailer: pid, tid, time, identifier
    out.U32(6);
    out.U64(77);
    out.U64(1001);
    const std::vector<uint8_t> bytes = out.Take();
    const auto record = DecodeRecord(FirstRecord(bytes, endian), {endian, &attr});
    ASSERT_TRUE(record.has_value()) << record.error().ToString();
    EXPECT_EQ(std::get<PtrAuth>(record->body),
              (PtrAuth{5, 6, 0x1c, 0x007f000000000000, 0x0070000000000000}));
    EXPECT_EQ(record->sample_id->time, 77u);
    EXPECT_EQ(EncodeRecord(*record, {endian, &attr}), bytes);
  }
}

// Another kernel may give the number to another record: of that all is payload.
TEST(Record, APtrAuthThatWasNotAskedForIsOpaque) {
  Attr attr = TrailerAttr();
  attr.flags &= ~uint64_t{kAttrPtrAuth};
  const RecordContext context{Endian::kLittle, &attr};
  Written record(RecordType::kPtrAuth);
  record.out().Zeros(32 + SampleIdSize(attr));
  const auto decoded = record.Decode(&attr);
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(std::get<Opaque>(decoded->body).payload.size(), 32 + SampleIdSize(attr));
  EXPECT_FALSE(decoded->sample_id);
  EXPECT_EQ(EncodeRecord(*decoded, context)->size(), 8 + 32 + SampleIdSize(attr));
}

// A record that ends within its masks has none of them, and its trailer is not read as one.
TEST(Record, AShortPtrAuthIsRefused) {
  const Attr attr = TrailerAttr();
  for (const size_t size : {0, 8, 24, 31}) {
    Written alone(RecordType::kPtrAuth);
    alone.out().Zeros(size);
    EXPECT_FALSE(alone.Decode().has_value()) << size;
    Written with_trailer(RecordType::kPtrAuth);
    with_trailer.out().Zeros(size + SampleIdSize(attr));
    EXPECT_FALSE(with_trailer.Decode(&attr).has_value()) << size;
  }
}

// ---- the robustness list: counts and sizes that the bytes cannot hold ----

TEST(Record, CountsBeyondTheRecordAreRefused) {
  const auto refused = [](RecordType type, const std::vector<uint64_t>& words) {
    Written record(type);
    for (const uint64_t word : words) record.out().U64(word);
    record.out().Zeros(64);
    const auto decoded = record.Decode();
    return !decoded && decoded.error().kind == ErrorKind::kDamaged;
  };
  for (const uint64_t count : {uint64_t{100}, uint64_t{1} << 32, uint64_t{1} << 60, UINT64_MAX}) {
    EXPECT_TRUE(refused(RecordType::kNamespaces, {0, count}));
    EXPECT_TRUE(refused(RecordType::kThreadMap, {count}));
    EXPECT_TRUE(refused(RecordType::kIdIndex, {count}));
    EXPECT_TRUE(refused(RecordType::kStatConfig, {count}));
    EXPECT_TRUE(refused(RecordType::kCallchainDeferred, {0, count}));
  }
  EXPECT_TRUE(refused(RecordType::kTextPoke, {0, 0xffffffff}));
  Written metadata(RecordType::kBpfMetadata);
  metadata.out().Zeros(256);
  metadata.out().U64(UINT64_MAX);
  EXPECT_FALSE(metadata.Decode().has_value());
}

TEST(Record, CpuMapsThatCannotBeAreRefused) {
  const auto refused = [](std::initializer_list<uint16_t> words) {
    Written map(RecordType::kCpuMap);
    for (const uint16_t word : words) map.out().U16(word);
    return !map.Decode();
  };
  EXPECT_TRUE(refused({0, 3, 1, 2}));                 // three CPUs, two there
  EXPECT_TRUE(refused({1, 2, 8, 0, 0, 1, 0, 0, 0}));  // two words, one there
  EXPECT_TRUE(refused({1, 1, 3, 0, 0, 0, 0}));        // words of 3 bytes
  EXPECT_TRUE(refused({2, 0, 5, 4}));                 // from 5 to 4
  EXPECT_TRUE(refused({3, 0, 0, 0}));                 // no such kind
  EXPECT_FALSE(refused({2, 1, 4, 4}));
}

TEST(Record, HeaderAttrGoesByTheAttrsOwnSize) {
  const auto written = [](uint32_t attr_size) {
    Written record(RecordType::kHeaderAttr);
    record.out().U32(0);
    record.out().U32(attr_size);
    record.out().Zeros(72 - 8);
    record.out().U64(41);
    record.out().U64(42);
    return record.Decode();
  };
  EXPECT_EQ(std::get<HeaderAttr>(written(72)->body).ids, (std::vector<uint64_t>{41, 42}));
  EXPECT_EQ(std::get<HeaderAttr>(written(64)->body).ids, (std::vector<uint64_t>{0, 41, 42}));
  EXPECT_EQ(std::get<HeaderAttr>(written(0)->body).attr.size, 64u);
  EXPECT_FALSE(written(63).has_value());
  EXPECT_FALSE(written(96).has_value());
  EXPECT_FALSE(written(0xfffffff8).has_value());
}

TEST(Record, BuildIdSizeIsBounded) {
  Written record(RecordType::kHeaderBuildId, kMiscBuildIdSize);
  record.out().U32(1);
  record.out().Bytes(SomeBuildId().bytes());
  record.out().U32(255);
  record.out().Text("/x");
  record.out().Zeros(6);
  EXPECT_EQ(std::get<HeaderBuildId>(record.Decode()->body).build_id, SomeBuildId());
}

TEST(Record, TracingDataTakesWhatThereIsOfItsBytes) {
  const Record record = Make(RecordType::kHeaderTracingData, HeaderTracingData{{1, 2, 3, 4, 5}});
  const auto bytes = *EncodeRecord(record, {});
  EXPECT_EQ(bytes.size(), 12u + 8u);  // size 12 in the header, 5 bytes, 3 zeros
  RawRecord raw = FirstRecord(bytes, Endian::kLittle);
  raw.extra = raw.extra.first(3);
  EXPECT_EQ(std::get<HeaderTracingData>(DecodeRecord(raw, {})->body).bytes.size(), 3u);
}

TEST(Record, AZeroTrailerIsWrittenForARecordThatHasNone) {
  const Attr attr = TrailerAttr();
  const auto bytes =
      *EncodeRecord(Make(RecordType::kComm, Comm{1, 2, "x"}), {Endian::kLittle, &attr});
  EXPECT_EQ(bytes.size(), 8u + 8u + 8u + SampleIdSize(attr));
  const auto decoded = DecodeRecord(FirstRecord(bytes, Endian::kLittle), {Endian::kLittle, &attr});
  EXPECT_EQ(std::get<Comm>(decoded->body).comm, "x");
  EXPECT_EQ(decoded->sample_id->tid, 0u);
}

TEST(Record, WhatDoesNotFitIsRefused) {
  const auto bytes = EncodeRecord(Make(RecordType::kComm, Comm{1, 2, std::string(65530, 'x')}), {});
  EXPECT_EQ(bytes.error().kind, ErrorKind::kUnsupported);
}

TEST(RecordTypeName, NamesKnownAndUnknownTypes) {
  EXPECT_EQ(RecordTypeName(10), "MMAP2");
  EXPECT_EQ(RecordTypeName(23), "PTR_AUTH");
  EXPECT_EQ(RecordTypeName(kRecordTypePacMask), "STACKREEL_PAC_MASK");
  EXPECT_EQ(RecordTypeName(300), "TYPE_300");
}

}  // namespace
}  // namespace stackreel::perfdata
