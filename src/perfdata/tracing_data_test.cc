#include "perfdata/tracing_data.h"

#include <gtest/gtest.h>

namespace stackreel::perfdata {
namespace {

TracingDataParts SomeParts(std::string_view version, Endian endian) {
  TracingDataParts parts;
  parts.version = version;
  parts.endian = endian;
  parts.page_size = 4096;
  parts.header_page = "page";
  parts.header_event = "event";
  parts.ftrace_formats = {"name: function\nID: 1\n"};
  parts.systems = {{"sched", {"name: sched_switch\nID: 317\n", "name: sched_wakeup\nID: 318\n"}},
                   {"empty", {}}};
  parts.kallsyms = "ffffffff81000000 T _text\n";
  parts.printk_formats = "0xffffffff82000000 : \"text\"\n";
  return parts;
}

TEST(TracingData, IsReadAsItWasWritten) {
  for (const Endian endian : {Endian::kLittle, Endian::kBig}) {
    for (const std::string_view version : {"0.5", "0.6"}) {
      TracingDataParts parts = SomeParts(version, endian);
      if (version == "0.6") parts.saved_cmdlines = "1 init\n";
      const std::vector<uint8_t> bytes = EncodeTracingData(parts);
      const auto read = ParseTracingData(bytes);
      ASSERT_TRUE(read);
      EXPECT_EQ(read->version, version);
      EXPECT_EQ(read->endian, endian);
      EXPECT_EQ(read->page_size, 4096U);
      EXPECT_EQ(read->header_page, "page");
      EXPECT_EQ(read->header_event, "event");
      EXPECT_EQ(read->ftrace_formats, parts.ftrace_formats);
      ASSERT_EQ(read->systems.size(), 2U);
      EXPECT_EQ(read->systems[0].name, "sched");
      EXPECT_EQ(read->systems[0].formats, parts.systems[0].formats);
      EXPECT_EQ(read->kallsyms, parts.kallsyms);
      EXPECT_EQ(read->printk_formats, parts.printk_formats);
      EXPECT_EQ(read->saved_cmdlines, parts.saved_cmdlines);
      EXPECT_EQ(EncodeTracingData(*read), bytes);
    }
  }
}

TEST(TracingData, MayEndBehindTheTracepointsButNotBefore) {
  TracingDataParts parts = SomeParts("0.5", Endian::kLittle);
  parts.kallsyms = parts.printk_formats = {};
  std::vector<uint8_t> bytes = EncodeTracingData(parts);
  bytes.resize(bytes.size() - 8);  // both sizes
  EXPECT_TRUE(ParseTracingData(bytes));
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(ParseTracingData(ByteView(bytes).first(size))) << size;
  }
}

// Of a version that is no number nobody knows what follows.
TEST(TracingData, TheVersionIsANumber) {
  EXPECT_FALSE(ParseTracingData(EncodeTracingData(SomeParts("0.6 secret", Endian::kLittle))));
}

}  // namespace
}  // namespace stackreel::perfdata
