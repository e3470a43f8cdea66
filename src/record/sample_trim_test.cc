#include "record/sample_trim.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "perfdata/sample.h"
#include "record/event_set.h"

namespace stackreel::record {
namespace {

perfdata::Attr StackAttr() {
  perfdata::Attr attr;
  attr.sample_type = perfdata::kSampleIdentifier | perfdata::kSampleIp | perfdata::kSampleTid |
                     perfdata::kSampleTime | perfdata::kSampleCallchain | perfdata::kSampleCpu |
                     perfdata::kSamplePeriod | perfdata::kSampleRaw | perfdata::kSampleRegsUser |
                     perfdata::kSampleStackUser | perfdata::kSampleWeight;
  attr.sample_regs_user = UserRegisterMask();
  return attr;
}

// As the kernel writes it: `size` bytes kept for the stack, `valid` of them filled.
std::vector<uint8_t> MakeRecord(const perfdata::Attr& attr, uint64_t size, uint64_t valid,
                                uint64_t abi) {
  const std::vector<uint8_t> stack(valid, 0xab);
  const std::vector<uint8_t> chain(5 * 8, 0x11);
  const std::vector<uint8_t> registers(64 * 8, 0x22);
  const std::vector<uint8_t> raw(12, 0x33);
  perfdata::Sample sample;
  sample.present = attr.sample_type;
  sample.id = 77;
  sample.ip = 0x1234;
  sample.callchain = perfdata::U64Array(chain, kNativeEndian);
  sample.raw = raw;
  sample.regs_user.abi = abi;
  sample.regs_user.mask = attr.sample_regs_user;
  if (abi != 0) {
    const auto count = static_cast<size_t>(std::popcount(attr.sample_regs_user));
    sample.regs_user.values =
        perfdata::U64Array(ByteView(registers).first(count * 8), kNativeEndian);
  }
  sample.stack_user = stack;
  sample.stack_user_size = size;
  sample.weight = 99;
  sample.read.values = {{1, 7, 0}, {2, 8, 0}};
  return perfdata::EncodeSample(sample, 2, attr, kNativeEndian).value();
}

perfdata::Sample Decode(const std::vector<uint8_t>& bytes, const perfdata::Attr& attr) {
  perfdata::RawRecord raw;
  raw.type = 9;
  raw.misc = 2;
  raw.bytes = bytes;
  perfdata::Sample sample;
  EXPECT_TRUE(perfdata::DecodeSample(raw, attr, kNativeEndian, sample).has_value());
  return sample;
}

TEST(AppendTrimmed, CutsWhatWasNotFilledAndNothingElse) {
  const perfdata::Attr attr = StackAttr();
  for (const uint64_t valid : {0, 1, 7, 8, 100, 4096, 8176, 8184, 8191}) {
    const auto record = MakeRecord(attr, 8192, valid, 2);
    std::vector<uint8_t> out = {1, 2, 3};  // what was there stays
    AppendTrimmed(record, attr, out);
    out.erase(out.begin(), out.begin() + 3);
    ASSERT_EQ(LoadUnaligned<uint16_t>(out.data() + 6, kNativeEndian), out.size());
    EXPECT_EQ(out.size() % 8, 0u);
    EXPECT_LE(out.size(), record.size());
    const perfdata::Sample sample = Decode(out, attr);
    ASSERT_EQ(sample.stack_user.size(), valid);
    EXPECT_TRUE(std::ranges::all_of(sample.stack_user, [](uint8_t b) { return b == 0xab; }));
    EXPECT_EQ(sample.id, 77u);
    EXPECT_EQ(sample.callchain.size(), 5u);
    EXPECT_EQ(sample.weight, 99u);  // behind the stack
    // It was not cut by the dump's size, and must not look so.
    EXPECT_LT(sample.stack_user.size(), sample.stack_user_size);
    EXPECT_LE(out.size(), record.size() - 8192 + valid + 24);
  }
}

TEST(AppendTrimmed, CountsBeforeTheStackAreSteppedOver) {
  perfdata::Attr attr = StackAttr();
  attr.sample_type |= perfdata::kSampleRead;
  for (uint64_t format = 0; format < 32; ++format) {
    attr.read_format = format;
    const auto record = MakeRecord(attr, 8192, 100, 2);
    std::vector<uint8_t> out;
    AppendTrimmed(record, attr, out);
    EXPECT_LT(out.size() + 8000, record.size()) << format;
    const perfdata::Sample sample = Decode(out, attr);
    EXPECT_EQ(sample.stack_user.size(), 100u) << format;
    EXPECT_EQ(sample.read.values[0].value, 1u) << format;
    EXPECT_EQ(sample.weight, 99u) << format;
  }
}

TEST(AppendTrimmed, AFullDumpStaysFull) {
  const perfdata::Attr attr = StackAttr();
  const auto record = MakeRecord(attr, 8192, 8192, 2);
  std::vector<uint8_t> out;
  AppendTrimmed(record, attr, out);
  EXPECT_EQ(out, record);
}

TEST(AppendTrimmed, SamplesWithoutRegistersOrStack) {
  perfdata::Attr attr = StackAttr();
  const auto no_stack = MakeRecord(attr, 0, 0, 0);
  std::vector<uint8_t> out;
  AppendTrimmed(no_stack, attr, out);
  EXPECT_EQ(out, no_stack);
  attr.sample_type &= ~static_cast<uint64_t>(perfdata::kSampleStackUser);
  const auto other = MakeRecord(attr, 0, 0, 2);
  out.clear();
  AppendTrimmed(other, attr, out);
  EXPECT_EQ(out, other);
}

TEST(AppendTrimmed, RecordsThatAreNotAsTheAttrSaysStayAsTheyAre) {
  const perfdata::Attr attr = StackAttr();
  const auto whole = MakeRecord(attr, 512, 100, 2);
  for (size_t size = 8; size < whole.size(); size += 8) {
    std::vector<uint8_t> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    std::vector<uint8_t> out;
    AppendTrimmed(cut, attr, out);
    if (size >= whole.size() - 8) continue;  // the weight may be missing
    EXPECT_EQ(out, cut) << size;
  }
}

}  // namespace
}  // namespace stackreel::record
