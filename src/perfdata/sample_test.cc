#include "perfdata/sample.h"

#include <gtest/gtest.h>

#include "base/byte_writer.h"

namespace stackreel::perfdata {
namespace {

RawRecord AsRaw(const std::vector<uint8_t>& bytes, Endian endian) {
  RawRecord raw;
  raw.type = LoadUnaligned<uint32_t>(bytes.data(), endian);
  raw.misc = LoadUnaligned<uint16_t>(bytes.data() + 4, endian);
  raw.bytes = bytes;
  return raw;
}

constexpr uint64_t kAllBits = ((uint64_t{kSampleArch1} << 1) - 1) & ~uint64_t{kSampleWeightStruct};

// The words of a sample with every field, each field with a value of its own.
std::vector<uint8_t> EveryField(Endian endian) {
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
    const std::vector<uint8_t> bytes = EveryField(endian);
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
    EXPECT_EQ(*EncodeSample(sample, 2, attr, other), EveryField(other));
  }
}

TEST(Sample, EveryCutIsRefused) {
  const Attr attr = EveryFieldAttr();
  const std::vector<uint8_t> bytes = EveryField(Endian::kLittle);
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

}  // namespace
}  // namespace stackreel::perfdata
