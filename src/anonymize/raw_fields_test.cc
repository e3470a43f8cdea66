#include "anonymize/raw_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "anonymize/fake_recording.h"
#include "base/byte_writer.h"

namespace stackreel::anonymize {
namespace {

using fake::Bytes;
using fake::Read;
using fake::Recording;
using fake::SomeEvent;
using perfdata::TracingDataParts;
using testing::HasSubstr;
using testing::Not;

constexpr uint32_t kPid = 10;
constexpr uint64_t kText = 0x555500000000, kKernel = 0xffffffff9a000000;
constexpr uint64_t kConfig = 317;

constexpr std::string_view kFormat =
    "name: probe\nID: 317\nformat:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
    "\tfield:char comm[8];\toffset:8;\tsize:8;\tsigned:0;\n"
    "\tfield:const void * ptr;\toffset:16;\tsize:8;\tsigned:0;\n"
    "\tfield:unsigned long args[2];\toffset:24;\tsize:16;\tsigned:0;\n"
    "\tfield:unsigned long number;\toffset:40;\tsize:8;\tsigned:0;\n"
    "\tfield:__data_loc char[] name;\toffset:48;\tsize:4;\tsigned:0;\n"
    "\tfield:u32 low;\toffset:52;\tsize:4;\tsigned:0;\n"
    "\tfield:char tag[4];\toffset:56;\tsize:4;\tsigned:0;\n\n"
    "print fmt: \"%d\", REC->common_pid\n";

Bytes TracingDataBytes(Endian endian, std::string_view format = kFormat) {
  TracingDataParts parts;
  parts.version = "0.6";
  parts.endian = endian;
  parts.page_size = 4096;
  parts.header_page = "\tfield: u64 timestamp;\n";
  parts.header_event = "# compressed entry header\n";
  parts.systems = {{"demo", {format}}};
  parts.kallsyms = "ffffffff9a000000 T secret_text\n";
  parts.printk_formats = "0xffffffff9a000010 : \"secret literal\"\n";
  parts.saved_cmdlines = "10 secret_task\n";
  return perfdata::EncodeTracingData(parts);
}

// Of one tracepoint's raw data: "low" is 0x400000, where something is mapped, or not.
Bytes RawBytes(Endian endian, uint64_t number, uint32_t low) {
  ByteWriter out(endian);
  out.U16(kConfig);
  out.U16(0x7777);  // flags that the format does not name
  out.U32(1234);
  out.Text("secretly");
  out.U64(5);  // a pointer, however small
  out.U64(1);
  out.U64(2);
  out.U64(number);
  out.U32(0x00080038);
  out.U32(low);
  out.Text("secretly");
  out.U32(0);
  return out.Take();
}

class RawFieldsTest : public testing::TestWithParam<Endian> {
 protected:
  // What becomes of a sample with such raw data.
  Read Anonymized(uint64_t number, uint32_t low, KeepRaw keep, uint64_t config = kConfig) {
    const Endian endian = GetParam();
    perfdata::Event event = SomeEvent(perfdata::kSampleRaw);
    event.attr.type = perfdata::kTypeTracepoint;
    event.attr.config = config;
    Recording in({event}, {.endian = endian});
    in.Map(kPid, kText, 0x4000, 0, "/bin/prog");
    in.Map(kPid, 0x400000, 0x1000, 0, "/bin/low");
    in.MapKernel(kKernel, 0x1000000, kKernel, "[kernel.kallsyms]_text");
    const Bytes raw = RawBytes(endian, number, low);
    perfdata::Sample sample;
    sample.pid = kPid;
    sample.raw = raw;
    in.AddSample(sample);
    Options options;
    options.keep_raw = keep;
    return fake::Anonymized(in.Finish({{static_cast<uint32_t>(perfdata::Feature::kTracingData),
                                        TracingDataBytes(endian)}}),
                            options);
  }
  // Number at `offset` of the raw data.
  template <typename T>
  static T At(const Read& out, size_t offset) {
    return LoadUnaligned<T>(out.samples[0].raw.data() + offset, GetParam());
  }
};

TEST_P(RawFieldsTest, FormatsStayAndWhatTheKernelSaysOfItselfGoes) {
  const Read out = Anonymized(0, 0, KeepRaw::kNothing);
  const Bytes bytes =
      out.reader->features().raw.at(static_cast<uint32_t>(perfdata::Feature::kTracingData));
  EXPECT_THAT(std::string(AsText(bytes)), Not(HasSubstr("secret")));
  const auto parts = perfdata::ParseTracingData(bytes);
  ASSERT_TRUE(parts);
  ASSERT_EQ(parts->systems.size(), 1U);
  EXPECT_EQ(parts->systems[0].formats.at(0), kFormat);
  EXPECT_EQ(parts->kallsyms, "");
  EXPECT_EQ(parts->printk_formats, "");
  EXPECT_EQ(parts->saved_cmdlines, "");
  EXPECT_FALSE(out.samples[0].Has(perfdata::kSampleRaw));
}

TEST_P(RawFieldsTest, NumbersStayPointersTextsAndArraysGo) {
  const Read out = Anonymized(4'000'000'000, 77, KeepRaw::kSafe);
  ASSERT_EQ(out.samples[0].raw.size(), 68U);
  EXPECT_EQ(At<uint16_t>(out, 0), kConfig);
  EXPECT_EQ(At<uint16_t>(out, 2), 0);
  EXPECT_EQ(At<uint32_t>(out, 4), 1234U);
  EXPECT_EQ(At<uint64_t>(out, 8), 0U);
  EXPECT_EQ(At<uint64_t>(out, 16), 0U);
  EXPECT_EQ(At<uint64_t>(out, 24), 0U);
  EXPECT_EQ(At<uint64_t>(out, 32), 0U);
  EXPECT_EQ(At<uint64_t>(out, 40), 4'000'000'000U);
  EXPECT_EQ(At<uint32_t>(out, 48), 0U);
  EXPECT_EQ(At<uint32_t>(out, 52), 77U);
  EXPECT_EQ(At<uint64_t>(out, 56), 0U);
}

TEST_P(RawFieldsTest, WhatMayBeAnAddressGoes) {
  EXPECT_EQ(At<uint64_t>(Anonymized(0x100000000, 0, KeepRaw::kSafe), 40), 0U);
  EXPECT_EQ(At<uint64_t>(Anonymized(kKernel + 8, 0, KeepRaw::kSafe), 40), 0U);
  EXPECT_EQ(At<uint64_t>(Anonymized(0x400010, 0, KeepRaw::kSafe), 40), 0U);
  EXPECT_EQ(At<uint32_t>(Anonymized(0, 0x400010, KeepRaw::kSafe), 52), 0U);
  constexpr auto kNoEntry = static_cast<uint64_t>(-2);
  EXPECT_EQ(At<uint64_t>(Anonymized(kNoEntry, 0, KeepRaw::kSafe), 40), kNoEntry);
}

TEST_P(RawFieldsTest, WithoutAFormatAllGoes) {
  const Read out = Anonymized(1, 1, KeepRaw::kSafe, kConfig + 1);
  EXPECT_FALSE(out.samples[0].Has(perfdata::kSampleRaw));
  EXPECT_EQ(out.reader->events().events()[0].attr.sample_type & perfdata::kSampleRaw, 0U);
}

INSTANTIATE_TEST_SUITE_P(Endians, RawFieldsTest, testing::Values(Endian::kLittle, Endian::kBig));

TEST(ScrubTracingData, AddressesInFormatsMove) {
  Recording in({SomeEvent(0)});
  in.MapKernel(kKernel, 0x1000000, kKernel, "[kernel.kallsyms]_text");
  const Read out = fake::Anonymized(
      in.Finish({{static_cast<uint32_t>(perfdata::Feature::kTracingData),
                  TracingDataBytes(Endian::kLittle, "name: p_0xffffffff9a000010\nID: 1\n")}}));
  const auto parts = perfdata::ParseTracingData(
      out.reader->features().raw.at(static_cast<uint32_t>(perfdata::Feature::kTracingData)));
  ASSERT_TRUE(parts);
  EXPECT_THAT(std::string(parts->systems[0].formats.at(0)), Not(HasSubstr("9a000010")));
}

// They name events, as of probes in programs.
TEST(ScrubTracingData, FormatsGoWhereNamesOfEventsDo) {
  Recording in({SomeEvent(0)});
  Options options;
  options.level = Level::kIdentity;
  const Read out =
      fake::Anonymized(in.Finish({{static_cast<uint32_t>(perfdata::Feature::kTracingData),
                                   TracingDataBytes(Endian::kLittle)}}),
                       options);
  EXPECT_FALSE(
      out.reader->features().raw.contains(static_cast<uint32_t>(perfdata::Feature::kTracingData)));
}

TEST(KeepRaw, IsNotForLevelsThatHideWhoIsWho) {
  Recording in({SomeEvent(0)});
  const Bytes bytes = in.Finish();
  MemorySource source(bytes);
  MemorySink sink;
  Options options;
  options.keep_raw = KeepRaw::kSafe;
  options.level = Level::kIdentity;
  const auto outcome = Anonymize(RereadableRecording(source), sink, fake::SomeKey(), options);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind, ErrorKind::kUsage);
}

}  // namespace
}  // namespace stackreel::anonymize
