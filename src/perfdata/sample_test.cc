#include "perfdata/sample.h"

#include <gtest/gtest.h>

#include "base/byte_writer.h"
#include "perfdata/synthetic_recording.h"

namespace stackreel::perfdata {
namespace {

using synthetic::AsRaw;

constexpr uint64_t kAllBits = ((uint64_t{kSampleArch1} << 1) - 1) & ~uint64_t{kSampleWeightStruct};

// The words of a sample with every field, each field with a value of its own.
std::vector<uint8_t> SampleOfEveryField(Endian endian) {
  ByteWriter out(endian);
  out.U32(9);
  out.U16(2);
  out.U16(0);
  out.U64(1001);      // IDENTIFIER
  out.U64(0x401000);  // IP
  out.U32(11);        // pid
  out.U32(12);        // tid
  out.U64(13);        // TIME
  out.U64(0xadd7);    // ADDR
  out.U64(1001);      // ID
  out.U64(1002);      // STREAM_ID
  out.U32(3);         // CPU
  out.U32(4);         // its reserved half
  out.U64(15);        // PERIOD
  out.U64(2);         // READ: nr, enabled, running, 2 × {value, id, lost}
  for (const uint64_t word : {100, 90, 1, 2, 3, 4, 5, 6}) out.U64(word);
  out.U64(2);  // CALLCHAIN
  out.U64(kContextUser);
  out.U64(0x401000);
  out.U32(4);  // RAW
  out.Text("raw!");
  out.U64(1);  // BRANCH_STACK
  out.U64(7);  // hw_index
  out.U64(0x1);
  out.U64(0x2);
  // predicted, cycles 5, type 3.
  const uint64_t flags = (1u << 1) | (5u << 4) | (3u << 20);
  const uint64_t flags_be = (uint64_t{1} << 62) | (uint64_t{5} << 44) | (uint64_t{3} << 40);
  out.U64(endian == Endian::kLittle ? flags : flags_be);
  out.U64(8);  // its counters
  out.U64(2);  // REGS_USER: abi 64
  out.U64(0xa0);
  out.U64(0xa7);
  out.U64(16);  // STACK_USER
  out.Text("stackbytes");
  out.Zeros(6);
  out.U64(10);
  out.U64(21);  // WEIGHT
  out.U64(22);  // DATA_SRC
  out.U64(23);  // TRANSACTION
  out.U64(1);   // REGS_INTR
  out.U64(0xb1);
  out.U64(24);  // PHYS_ADDR
  out.U64(25);  // CGROUP
  out.U64(26);  // DATA_PAGE_SIZE
  out.U64(27);  // CODE_PAGE_SIZE
  out.U64(8);   // AUX
  out.Text("auxbytes");
  for (const uint64_t word : {31, 32, 33}) out.U64(word);  // ARCH_1
  out.PutAt(6, static_cast<uint16_t>(out.size()));
  return out.Take();
}

Attr EveryFieldAttr() {
  Attr attr;
  attr.sample_type = kAllBits;
  attr.read_format =
      kReadTotalTimeEnabled | kReadTotalTimeRunning | kReadId | kReadGroup | kReadLost;
  attr.branch_sample_type = kBranchHwIndex | kBranchCounters;
  attr.sample_regs_user = 0x81;
  attr.sample_regs_intr = 0x2;
  return attr;
}

TEST(Sample, EveryFieldIsWhereTheKernelPutsIt) {
  const Attr attr = EveryFieldAttr();
  for (const Endian endian : {Endian::kLittle, Endian::kBig}) {
    const std::vector<uint8_t> bytes = SampleOfEveryField(endian);
    Sample sample;
    const Status status = DecodeSample(AsRaw(bytes, endian), attr, endian, sample);
    ASSERT_TRUE(status.has_value()) << status.error().ToString();
    EXPECT_EQ(sample.present, kAllBits);
    EXPECT_EQ(sample.id, 1001u);
    EXPECT_EQ(sample.ip, 0x401000u);
    EXPECT_EQ(sample.pid, 11u);
    EXPECT_EQ(sample.tid, 12u);
    EXPECT_EQ(sample.time, 13u);
    EXPECT_EQ(sample.addr, 0xadd7u);
    EXPECT_EQ(sample.stream_id, 1002u);
    EXPECT_EQ(sample.cpu, 3u);
    EXPECT_EQ(sample.cpu_reserved, 4u);
    EXPECT_EQ(sample.period, 15u);
    EXPECT_EQ(sample.read, (ReadValues{100, 90, {{1, 2, 3}, {4, 5, 6}}}));
    ASSERT_EQ(sample.callchain.size(), 2u);
    EXPECT_EQ(sample.callchain[0], kContextUser);
    EXPECT_EQ(AsText(sample.raw), "raw!");
    EXPECT_EQ(sample.branch_hw_index, 7u);
    EXPECT_EQ(sample.branches[0].to, 2u);
    EXPECT_EQ(sample.branches[0].flags, (1u << 1) | (5u << 4) | (3u << 20));
    EXPECT_EQ(sample.branch_counters[0], 8u);
    EXPECT_EQ(sample.regs_user.Get(0), 0xa0u);
    EXPECT_EQ(sample.regs_user.Get(7), 0xa7u);
    EXPECT_EQ(sample.regs_user.Get(1), std::nullopt);
    EXPECT_EQ(AsText(sample.stack_user), "stackbytes");
    EXPECT_EQ(sample.stack_user_size, 16u);
    EXPECT_EQ(sample.weight, 21u);
    EXPECT_EQ(sample.data_src, 22u);
    EXPECT_EQ(sample.transaction, 23u);
    EXPECT_EQ(sample.regs_intr.Get(1), 0xb1u);
    EXPECT_EQ(sample.phys_addr, 24u);
    EXPECT_EQ(sample.cgroup, 25u);
    EXPECT_EQ(sample.data_page_size, 26u);
    EXPECT_EQ(sample.code_page_size, 27u);
    EXPECT_EQ(AsText(sample.aux), "auxbytes");
    EXPECT_EQ(sample.arch_data_mask, 33u);
    // And back, in either byte order.
    EXPECT_EQ(*EncodeSample(sample, 2, attr, endian), bytes);
    const Endian other = endian == Endian::kLittle ? Endian::kBig : Endian::kLittle;
    EXPECT_EQ(*EncodeSample(sample, 2, attr, other), SampleOfEveryField(other));
  }
}

TEST(Sample, EveryCutIsRefused) {
  const Attr attr = EveryFieldAttr();
  const std::vector<uint8_t> bytes = SampleOfEveryField(Endian::kLittle);
  for (size_t size = 0; size < bytes.size(); ++size) {
    const std::vector<uint8_t> cut(bytes.begin(), bytes.begin() + static_cast<long>(size));
    RawRecord raw = AsRaw(bytes, Endian::kLittle);
    raw.bytes = cut;
    raw.file_offset = 0x1000;
    Sample sample;
    const Status status = DecodeSample(raw, attr, Endian::kLittle, sample);
    ASSERT_FALSE(status.has_value()) << size;
    EXPECT_EQ(status.error().offset, 0x1000u);
  }
}

// A sample of `attr` with these words as its payload.
Status Decode(const Attr& attr, const std::vector<uint64_t>& words, Sample& sample) {
  static std::vector<uint8_t> bytes;  // outlives the sample's views
  ByteWriter out(Endian::kLittle);
  out.U64(9);
  for (const uint64_t word : words) out.U64(word);
  out.PutAt(6, static_cast<uint16_t>(out.size()));
  bytes = out.Take();
  return DecodeSample(AsRaw(bytes, Endian::kLittle), attr, Endian::kLittle, sample);
}

TEST(Sample, CountsBeyondTheRecordAreRefused) {
  Sample sample;
  for (const uint64_t count : {uint64_t{3}, uint64_t{1} << 32, uint64_t{1} << 61, UINT64_MAX}) {
    Attr attr;
    attr.sample_type = kSampleCallchain;
    EXPECT_FALSE(Decode(attr, {count, 1, 2}, sample));
    attr.sample_type = kSampleBranchStack;
    EXPECT_FALSE(Decode(attr, {count, 1, 2, 3}, sample));
    attr.sample_type = kSampleStackUser;
    EXPECT_FALSE(Decode(attr, {count + 32, 1, 2, 3}, sample));
    attr.sample_type = kSampleAux;
    EXPECT_FALSE(Decode(attr, {count + 32, 1, 2, 3}, sample));
    attr.sample_type = kSampleRaw;
    EXPECT_FALSE(Decode(attr, {(count & 0xffffffff) + 32}, sample));
    attr.sample_type = kSampleRead;
    attr.read_format = kReadGroup;
    EXPECT_FALSE(Decode(attr, {count, 1, 2}, sample));
  }
}

TEST(Sample, MoreValidStackThanDumpedIsRefused) {
  Attr attr;
  attr.sample_type = kSampleStackUser;
  Sample sample;
  EXPECT_TRUE(Decode(attr, {8, 0xaa, 8}, sample));
  EXPECT_EQ(sample.stack_user.size(), 8u);
  EXPECT_FALSE(Decode(attr, {8, 0xaa, 9}, sample));
}

TEST(Sample, NoRegistersAndNoStackAreOneWordEach) {
  Attr attr;
  attr.sample_type = kSampleRegsUser | kSampleStackUser | kSampleWeight;
  attr.sample_regs_user = 0xff;
  Sample sample;
  ASSERT_TRUE(Decode(attr, {0, 0, 77}, sample));  // a kernel thread
  EXPECT_EQ(sample.regs_user.abi, 0u);
  EXPECT_EQ(sample.regs_user.Get(0), std::nullopt);
  EXPECT_EQ(sample.stack_user_size, 0u);
  EXPECT_EQ(sample.weight, 77u);
}

TEST(Sample, VectorRegistersFollowTheOthers) {
  Attr attr;
  attr.sample_type = kSampleRegsUser | kSampleWeight;
  attr.sample_regs_user = 1;
  Sample sample;
  // abi 64 | SIMD, one register, 1 vector of 2 words, 1 predicate of 1 word.
  const uint64_t shape = 1 | uint64_t{2} << 16 | uint64_t{1} << 32 | uint64_t{1} << 48;
  ASSERT_TRUE(Decode(attr, {2 | kRegsAbiSimd, 5, shape, 10, 11, 12, 77}, sample));
  EXPECT_EQ(sample.regs_user.simd.size(), 3u);
  EXPECT_EQ(sample.weight, 77u);
  EXPECT_FALSE(Decode(attr, {2 | kRegsAbiSimd, 5, UINT64_MAX, 10, 11, 12, 77}, sample));
}

TEST(Sample, BranchesHaveIndexAndCountersOnlyIfTheEventAsksForThem) {
  Attr attr;
  attr.sample_type = kSampleBranchStack | kSampleWeight;
  Sample sample;
  ASSERT_TRUE(Decode(attr, {1, 0x10, 0x20, 1, 77}, sample));
  EXPECT_EQ(sample.branches[0].to, 0x20u);
  EXPECT_FALSE(sample.has_branch_hw_index);
  EXPECT_EQ(sample.weight, 77u);
  attr.branch_sample_type = kBranchHwIndex;
  ASSERT_TRUE(Decode(attr, {1, 9, 0x10, 0x20, 1, 77}, sample));
  EXPECT_EQ(sample.branch_hw_index, 9u);
  EXPECT_EQ(sample.weight, 77u);
}

TEST(Sample, ADecodedSampleForgetsTheOneBefore) {
  Attr attr;
  attr.sample_type = kSampleCallchain;
  Sample sample;
  ASSERT_TRUE(Decode(attr, {2, 1, 2}, sample));
  Attr ip_only;
  ip_only.sample_type = kSampleIp;
  ASSERT_TRUE(Decode(ip_only, {5}, sample));
  EXPECT_TRUE(sample.callchain.empty());
  EXPECT_FALSE(sample.Has(kSampleCallchain));
  EXPECT_EQ(sample.ip, 5u);
}

TEST(Sample, UnknownBitsOfSampleTypeAreNotPresent) {
  Attr attr;
  attr.sample_type = kSampleIp | (uint64_t{1} << 40);
  Sample sample;
  ASSERT_TRUE(Decode(attr, {5, 6}, sample));
  EXPECT_EQ(sample.present, uint64_t{kSampleIp});
}

TEST(Sample, WhatDoesNotFitIsRefused) {
  Attr attr;
  attr.sample_type = kSampleStackUser;
  Sample sample;
  sample.stack_user_size = uint64_t{1} << 40;  // nothing of that size is allocated
  EXPECT_EQ(EncodeSample(sample, 0, attr, Endian::kLittle).error().kind, ErrorKind::kUnsupported);
  sample.stack_user_size = 65528;
  EXPECT_FALSE(EncodeSample(sample, 0, attr, Endian::kLittle).has_value());
  sample.stack_user_size = 65504;
  EXPECT_EQ(EncodeSample(sample, 0, attr, Endian::kLittle)->size(), 65528u);
}

TEST(BranchFlags, EachFieldGoesToTheOtherEnd) {
  // mispred, cycles 0x1234, type 0xa, spec 2, new_type 0xb, priv 5.
  const uint64_t flags = 1 | uint64_t{0x1234} << 4 | uint64_t{0xa} << 20 | uint64_t{2} << 24 |
                         uint64_t{0xb} << 26 | uint64_t{5} << 30;
  const uint64_t big = uint64_t{1} << 63 | uint64_t{0x1234} << 44 | uint64_t{0xa} << 40 |
                       uint64_t{2} << 38 | uint64_t{0xb} << 34 | uint64_t{5} << 31;
  EXPECT_EQ(BranchFlagsFromBigEndian(big), flags);
  EXPECT_EQ(BranchFlagsToBigEndian(flags), big);
}

// u32 var1, u16 var2, u16 var3 in a little-endian file; the other way round in a big-endian one, so
// that the word is one number in both.
TEST(Sample, WeightStructIsOneWordInBothByteOrders) {
  Attr attr;
  attr.sample_type = kSampleWeightStruct;
  std::vector<uint8_t> little = {9, 0, 0, 0, 0, 0, 16, 0, 1, 0, 0, 0, 2, 0, 3, 0};
  std::vector<uint8_t> big = {0, 0, 0, 9, 0, 0, 0, 16, 0, 3, 0, 2, 0, 0, 0, 1};
  Sample sample;
  ASSERT_TRUE(DecodeSample(AsRaw(little, Endian::kLittle), attr, Endian::kLittle, sample));
  EXPECT_EQ(sample.weight, 1 | uint64_t{2} << 32 | uint64_t{3} << 48);
  ASSERT_TRUE(DecodeSample(AsRaw(big, Endian::kBig), attr, Endian::kBig, sample));
  EXPECT_EQ(sample.weight, 1 | uint64_t{2} << 32 | uint64_t{3} << 48);
}

TEST(Sample, OfTwoIdsThatDifferTheIdentifierStays) {
  Attr attr;
  attr.sample_type = kSampleIdentifier | kSampleId;
  ByteWriter bytes(Endian::kLittle);
  bytes.U32(static_cast<uint32_t>(RecordType::kSample));
  bytes.U32(24u << 16);
  bytes.U64(7);
  bytes.U64(8);
  RawRecord raw;
  raw.type = static_cast<uint32_t>(RecordType::kSample);
  raw.bytes = bytes.view();
  Sample sample;
  ASSERT_TRUE(DecodeSample(raw, attr, Endian::kLittle, sample));
  EXPECT_EQ(sample.id, 7U);
  attr.sample_type = kSampleId;
  ASSERT_TRUE(DecodeSample(raw, attr, Endian::kLittle, sample));
}

}  // namespace
}  // namespace stackreel::perfdata
