#include "perfdata/trace_format.h"

#include <gtest/gtest.h>

#include "base/byte_writer.h"
#include "perfdata/tracing_data.h"

namespace stackreel::perfdata {
namespace {

// The fields of a made-up tracepoint, and a record of it.
constexpr std::string_view kFields =
    "name: made_up\nID: 77\nformat:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\n"
    "\tfield:char comm[8];\toffset:8;\tsize:8;\tsigned:0;\n"
    "\tfield:int code;\toffset:16;\tsize:4;\tsigned:1;\n"
    "\tfield:unsigned int mask;\toffset:20;\tsize:4;\tsigned:0;\n"
    "\tfield:const char * where;\toffset:24;\tsize:8;\tsigned:0;\n"
    "\tfield:__data_loc char[] path;\toffset:32;\tsize:4;\tsigned:0;\n"
    "\tfield:unsigned short pair[2];\toffset:36;\tsize:4;\tsigned:0;\n"
    "\tfield:__rel_loc u8[] data;\toffset:40;\tsize:4;\tsigned:0;\n"
    "\nprint fmt: ";

std::vector<uint8_t> Raw(Endian endian = Endian::kLittle) {
  ByteWriter out(endian);
  out.U64(0);
  for (const char c : std::string_view("sleep\0xx", 8)) out.U8(static_cast<uint8_t>(c));
  out.U32(static_cast<uint32_t>(-2));
  out.U32(0x12);
  out.U64(0xffffffff81000123);
  out.U32(5U << 16 | 44);
  out.U16(7);
  out.U16(9);
  out.U32(2U << 16 | 5);  // from byte 44 on
  for (const char c : std::string_view("/bin\0", 5)) out.U8(static_cast<uint8_t>(c));
  out.U8(0xab);
  out.U8(0xcd);
  return std::move(out).Take();
}

std::string TextOf(const std::string& print, Endian endian = Endian::kLittle) {
  const auto literals =
      std::make_shared<const TraceLiterals>(TraceLiterals{{0xffffffff81000123, "somewhere"}});
  const TraceFormat format =
      TraceFormat::Parse(std::string(kFields) + print + "\n", endian, 8, literals);
  std::string out;
  format.AppendText(
      Raw(endian),
      [](uint64_t address, std::string& name, uint64_t& offset) {
        name = "schedule";
        offset = 0x23;
        return address == 0xffffffff81000123;
      },
      out);
  return out;
}

TEST(TraceFormat, NumbersAsPrintfShowsThem) {
  EXPECT_EQ(TextOf("\"%d %u %x %lx|%5d|%-5d|%05d|%#x\", REC->code, REC->code, REC->code, "
                   "REC->code, REC->mask, REC->mask, REC->mask, REC->mask"),
            "-2 4294967294 fffffffe fffffffe|   18|18   |00018|0x12");
  EXPECT_EQ(TextOf("\"%hhx %hu %o %c%% %.4d\", REC->code, REC->code, REC->mask, 0x41, REC->mask"),
            "fe 65534 22 A% 0018");
}

TEST(TraceFormat, BothByteOrders) {
  EXPECT_EQ(TextOf("\"%d %s %x\", REC->code, REC->comm, REC->pair[1]", Endian::kBig), "-2 sleep 9");
}

TEST(TraceFormat, Texts) {
  EXPECT_EQ(TextOf("\"%s|%8s|%-8s|%.3s|%s\", REC->comm, REC->comm, REC->comm, REC->comm, "
                   "__get_str(path)"),
            "sleep|   sleep|sleep   |sle|/bin");
  EXPECT_EQ(TextOf("\"%s\", REC->where"), "somewhere");
  EXPECT_EQ(TextOf("\"%*d|%.*s\", 4, REC->mask, 2, REC->comm"), "  18|sl");
}

TEST(TraceFormat, Functions) {
  EXPECT_EQ(TextOf("\"%pS %ps %p\", (void *)REC->where, REC->where, REC->where"),
            "schedule+0x23 schedule 0xffffffff81000123");
  EXPECT_EQ(TextOf("\"%pS %p\", 5, 0"), "0x5 (nil)");
}

TEST(TraceFormat, FlagsAndSymbols) {
  EXPECT_EQ(TextOf("\"%s\", __print_flags(REC->mask, \"|\", { 1, \"A\" }, {(2UL), \"B\" }, "
                   "{ 1 << 4, \"C\" \"D\" }, { 0, ((void *)0) })"),
            "B|CD");
  EXPECT_EQ(TextOf("\"%s\", __print_flags(REC->mask, \"|\", { 2, \"B\" })"), "B|0x10");
  EXPECT_EQ(TextOf("\"%s %s\", __print_symbolic(REC->mask, { 1, \"ONE\" }, { 18, \"MANY\" }), "
                   "__print_symbolic(REC->mask, { SOME_ENUM, \"ONE\" })"),
            "MANY 0x12");
  // An enum's constant without its value names nothing, not even 0.
  EXPECT_EQ(TextOf("\"<%s>\", __print_flags(REC->mask & 1, \"|\", { SOME_ENUM, \"FALSE\" })"),
            "<>");
}

TEST(TraceFormat, Expressions) {
  EXPECT_EQ(TextOf("\"%d %d %d\", 2 + 3 * 4, (2 + 3) * 4, 20 - 8 - 2"), "14 20 10");
  EXPECT_EQ(TextOf("\"%d %d %d %d\", 1 << 2 | 1, 7 & ~2, !REC->mask, 5 / 0"), "5 5 0 0");
  EXPECT_EQ(TextOf("\"%s\", REC->mask & 2 ? REC->mask > 99 ? \"a\" : \"b\" : \"c\""), "b");
  EXPECT_EQ(TextOf("\"%ld %lu %d\", (int)REC->code, (unsigned char)REC->code, sizeof(u16)"),
            "-2 254 2");
  EXPECT_EQ(TextOf("\"%d\", __builtin_expect(REC->mask == 18 && REC->code != 0, 1)"), "1");
}

TEST(TraceFormat, Arrays) {
  EXPECT_EQ(TextOf("\"%s %s %d\", __print_hex(__get_rel_dynamic_array(data), 2), "
                   "__print_hex_str(__get_rel_dynamic_array(data), 9), "
                   "__get_rel_dynamic_array_len(data)"),
            "ab cd abcd 2");
  EXPECT_EQ(TextOf("\"%s\", __print_array(REC->pair, 2, 2)"), "{0x7,0x9}");
  EXPECT_EQ(TextOf("\"%d %d\", REC->pair[0], REC->pair[2]"), "7 0");
}

TEST(TraceFormat, WhatIsNotUnderstoodIsShownByItsFields) {
  const std::string fields =
      "[FAILED TO PARSE] comm=sleep code=-2 mask=18 where=0xffffffff81000123 path=/bin "
      "pair=ARRAY[07, 00, 09, 00] data=ARRAY[ab, cd]";
  EXPECT_EQ(TextOf("\"%pISpc\", REC->where"), fields);
  EXPECT_EQ(TextOf("\"%d\", unknown_function(3)"), fields);
  EXPECT_EQ(TextOf("\"%d\", REC->nothing"), fields);
  EXPECT_EQ(TextOf("\"%d\", REC->code +"), fields);
  // Names stand for constants, not for what a record holds.
  for (const char* number : {"REC->code", "REC->pair[0]", "__get_dynamic_array_len(path)",
                             "__get_rel_dynamic_array(data)[1]", "1 + REC->code"}) {
    EXPECT_EQ(TextOf(std::string("\"%s\", __print_symbolic(REC->mask, { ") + number + ", \"A\" })"),
              fields)
        << number;
  }
  EXPECT_EQ(TextOf(""), fields);
}

TEST(TraceFormat, RecordsThatAreTooShort) {
  const TraceFormat format =
      TraceFormat::Parse(std::string(kFields) +
                             "\"%s %d %s %s\", REC->comm, REC->code, __get_str(path), "
                             "__print_array(REC->pair, 2, 2)\n",
                         Endian::kLittle, 8, nullptr);
  const std::vector<uint8_t> raw = Raw();
  for (size_t size = 0; size < raw.size(); ++size) {
    std::string out;
    format.AppendText(ByteView(raw).first(size), nullptr, out);
    EXPECT_FALSE(out.empty());
  }
}

TEST(TraceFormat, DeepAndLongExpressionsHaveBounds) {
  std::string deep = "\"%d\", " + std::string(100'000, '(') + "1";
  EXPECT_TRUE(TextOf(deep).starts_with("[FAILED"));
  std::string wide = "\"%d\", 1";
  for (int i = 0; i < 100'000; ++i) wide += "+1";
  EXPECT_TRUE(TextOf(wide).starts_with("[FAILED"));
  EXPECT_EQ(TextOf("\"%999999999d\", 1").size(), 1000U);
}

TEST(TracepointFormats, FindsFormatsAndLiterals) {
  ByteWriter out(Endian::kLittle);
  const auto text = [&out](std::string_view chars) {
    for (const char c : chars) out.U8(static_cast<uint8_t>(c));
  };
  text(std::string_view("\x17\x08\x44tracing0.6\0", 14));
  out.U8(0);
  out.U8(8);
  out.U32(4096);
  text(std::string_view("header_page\0", 12));
  out.U64(0);
  text(std::string_view("header_event\0", 13));
  out.U64(0);
  out.U32(0);
  out.U32(1);
  text(std::string_view("test\0", 5));
  out.U32(1);
  const std::string format = std::string(kFields) + "\"%s\", REC->where\n";
  out.U64(format.size());
  text(format);
  out.U32(0);
  const std::string literals = "0xffffffff81000123 : \"Start\"\n";
  out.U32(static_cast<uint32_t>(literals.size()));
  text(literals);
  TracepointFormats formats(std::move(out).Take());
  EXPECT_EQ(formats.Of(78), nullptr);
  const TraceFormat* found = formats.Of(77);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found, formats.Of(77));
  std::string shown;
  found->AppendText(Raw(), nullptr, shown);
  EXPECT_EQ(shown, "Start");
}

}  // namespace
}  // namespace stackreel::perfdata
