#include "perfdata/attr.h"

#include <gtest/gtest.h>

#include "base/byte_writer.h"

namespace stackreel::perfdata {
namespace {

Attr AttrOfEveryField() {
  Attr attr;
  attr.type = 4;
  attr.size = 144;
  attr.config = 0x1b0;
  attr.sample_period_or_freq = 4000;
  attr.sample_type = kSampleIp | kSampleTid | kSampleTime;
  attr.read_format = kReadId | kReadLost;
  attr.flags =
      kAttrDisabled | kAttrFreq | kAttrSampleIdAll | (1ull << 15) | kAttrDeferOutput | kAttrPtrAuth;
  attr.wakeup_events_or_watermark = 7;
  attr.bp_type = 3;
  attr.config1 = 0x1111;
  attr.config2 = 0x2222;
  attr.branch_sample_type = 8;
  attr.sample_regs_user = 0xff0fff;
  attr.sample_stack_user = 8192;
  attr.clockid = -1;
  attr.sample_regs_intr = 0xff;
  attr.aux_watermark = 9;
  attr.sample_max_stack = 127;
  attr.aux_sample_size = 4096;
  attr.aux_action = 1;
  attr.sig_data = 5;
  attr.config3 = 6;
  attr.config4 = 7;
  return attr;
}

TEST(Attr, GoesThroughBothByteOrders) {
  const Attr attr = AttrOfEveryField();
  for (const Endian endian : {Endian::kLittle, Endian::kBig}) {
    const std::vector<uint8_t> bytes = EncodeAttr(attr, endian);
    EXPECT_EQ(bytes.size(), 144u);
    const Result<Attr> decoded = DecodeAttr(bytes, endian);
    ASSERT_TRUE(decoded.has_value());
    EXPECT_EQ(*decoded, attr);
  }
}

// All versions have a size that is a multiple of 8; what has another is damaged, and ids that
// follow it would be read from the middle of a word.
TEST(Attr, SizesThatAreNoMultipleOf8AreRefused) {
  std::vector<uint8_t> bytes = EncodeAttr(AttrOfEveryField(), Endian::kLittle);
  bytes.resize(160);
  for (uint32_t size = 64; size <= 160; ++size) {
    StoreUnaligned<uint32_t>(bytes.data() + 4, size, Endian::kLittle);
    EXPECT_EQ(DecodeAttr(bytes, Endian::kLittle).has_value(), size % 8 == 0) << size;
  }
}

// Bit 40 of the flag word: the first of its sixth byte, from whichever end bits are allotted.
TEST(Attr, PtrAuthIsBit40) {
  constexpr size_t kFlags = 40;
  Attr attr;
  attr.flags = kAttrPtrAuth;
  EXPECT_EQ(EncodeAttr(attr, Endian::kLittle)[kFlags + 5], 0x01);
  EXPECT_EQ(EncodeAttr(attr, Endian::kBig)[kFlags + 5], 0x80);
}

// Offsets of linux/perf_event.h.
TEST(Attr, FieldsLieWhereTheHeaderSays) {
  const std::vector<uint8_t> bytes = EncodeAttr(AttrOfEveryField(), Endian::kLittle);
  const auto u64 = [&](size_t at) { return LoadUnaligned<uint64_t>(&bytes[at], Endian::kLittle); };
  const auto u32 = [&](size_t at) { return LoadUnaligned<uint32_t>(&bytes[at], Endian::kLittle); };
  EXPECT_EQ(u64(8), 0x1b0u);
  EXPECT_EQ(u64(64), 0x2222u);
  EXPECT_EQ(u32(88), 8192u);
  EXPECT_EQ(u32(92), 0xffffffffu);
  EXPECT_EQ(u32(104), 9u);
  EXPECT_EQ(u32(108), 127u);
  EXPECT_EQ(u32(112), 4096u);
  EXPECT_EQ(u64(120), 5u);
  EXPECT_EQ(u64(136), 7u);
}

// A big-endian compiler allots bitfields from the top: disabled is the top bit of the first byte,
// precise_ip is the low bit of the second byte (its high bit) and the top bit of the third.
TEST(Attr, BigEndianFlagsAreAllottedFromTheTop) {
  Attr attr;
  attr.flags = kAttrDisabled;
  EXPECT_EQ(EncodeAttr(attr, Endian::kBig)[40], 0x80);
  attr.flags = 2ull << 15;  // precise_ip = 2
  const std::vector<uint8_t> bytes = EncodeAttr(attr, Endian::kBig);
  EXPECT_EQ(bytes[41], 0x01);
  EXPECT_EQ(bytes[42], 0x00);
  EXPECT_EQ(DecodeAttr(bytes, Endian::kBig)->flags, 2ull << 15);
}

TEST(Attr, SmallestSizeHoldsTheLastFieldThatIsNotZero) {
  Attr attr;
  EXPECT_EQ(SmallestAttrSize(attr), 64u);
  attr.config2 = 1;
  EXPECT_EQ(SmallestAttrSize(attr), 72u);
  attr.sample_stack_user = 1;
  EXPECT_EQ(SmallestAttrSize(attr), 96u);
  attr.sample_max_stack = 1;
  EXPECT_EQ(SmallestAttrSize(attr), 112u);
  attr.aux_action = 1;
  EXPECT_EQ(SmallestAttrSize(attr), 120u);
  attr.config3 = 1;
  EXPECT_EQ(SmallestAttrSize(attr), 136u);
  attr.tail = {1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(SmallestAttrSize(attr), 152u);
}

TEST(Attr, ShortOnesAreFilledWithZerosAndLongOnesKeepTheirTail) {
  const std::vector<uint8_t> longest = EncodeAttr(AttrOfEveryField(), Endian::kLittle);
  for (const uint32_t size : {64u, 72u, 80u, 96u, 104u, 112u, 120u, 128u, 136u}) {
    std::vector<uint8_t> bytes(longest.begin(), longest.begin() + size);
    StoreUnaligned(&bytes[4], size, Endian::kLittle);
    const Result<Attr> attr = DecodeAttr(bytes, Endian::kLittle);
    ASSERT_TRUE(attr.has_value()) << size;
    EXPECT_EQ(attr->size, size);
    EXPECT_EQ(EncodeAttrSized(*attr, Endian::kLittle, size), bytes) << size;
  }
  Attr with_tail = AttrOfEveryField();
  with_tail.tail = std::vector<uint8_t>(24, 0x5a);
  with_tail.size = 168;
  EXPECT_EQ(*DecodeAttr(EncodeAttr(with_tail, Endian::kLittle), Endian::kLittle), with_tail);
}

TEST(Attr, SizesThatCannotBeAreRefused) {
  std::vector<uint8_t> bytes = EncodeAttr(Attr(), Endian::kLittle);
  StoreUnaligned<uint32_t>(&bytes[4], 0, Endian::kLittle);  // before sizes were filled in
  EXPECT_EQ(DecodeAttr(bytes, Endian::kLittle)->size, 64u);
  StoreUnaligned<uint32_t>(&bytes[4], 72, Endian::kLittle);  // more than there is
  EXPECT_EQ(DecodeAttr(bytes, Endian::kLittle).error().kind, ErrorKind::kDamaged);
  StoreUnaligned<uint32_t>(&bytes[4], 63, Endian::kLittle);
  EXPECT_FALSE(DecodeAttr(bytes, Endian::kLittle).has_value());
  bytes.resize(63);
  EXPECT_FALSE(DecodeAttr(bytes, Endian::kLittle).has_value());
  EXPECT_FALSE(DecodeAttr({}, Endian::kLittle).has_value());
}

TEST(AttrName, SpellsEventsAsPerfDoes) {
  const auto name = [](uint32_t type, uint64_t config, uint64_t flags = 0) {
    Attr attr;
    attr.type = type;
    attr.config = config;
    attr.flags = flags;
    return AttrName(attr);
  };
  EXPECT_EQ(name(kTypeHardware, 0), "cycles");
  EXPECT_EQ(name(kTypeHardware, (4ull << 32) | 1), "instructions");
  EXPECT_EQ(name(kTypeSoftware, 0, kAttrExcludeKernel | kAttrExcludeHv), "cpu-clock:u");
  EXPECT_EQ(name(kTypeHardware, 0, kAttrExcludeUser | kAttrExcludeHv | (2ull << 15)), "cycles:kpp");
  EXPECT_EQ(name(kTypeHwCache, 0x10000), "L1-dcache-load-misses");
  EXPECT_EQ(name(kTypeHwCache, 0x103), "dTLB-stores");
  EXPECT_EQ(name(kTypeHwCache, 0xff), "hw-cache 0xff");
  EXPECT_EQ(name(kTypeRaw, 0x1b0), "raw 0x1b0");
  EXPECT_EQ(name(kTypeHardware, 99), "hardware 0x63");
}

}  // namespace
}  // namespace stackreel::perfdata
