#include "views/value_text.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <string>

#include "base/byte_writer.h"
#include "tracedata/fake_trace.h"

namespace stackreel::views {
namespace {

using tracedata::TraceFact;
using tracedata::TraceFunction;
using tracedata::ValueFormat;
using Kind = ValueFormat::Kind;

class ValueTextTest : public testing::Test {
 protected:
  ValueTextTest() {
    auto writer = tracedata::TraceWriter::Begin(trace_.calls, trace_.facts, 0);
    for (const TraceFact& fact :
         {TraceFact(tracedata::TraceModule{.id = 1, .path = "/bin/prog"}),
          TraceFact(tracedata::ModuleLoad{.pid = 1,
                                          .module = 1,
                                          .ticks = 0,
                                          .start = Avma(0x5000),
                                          .end = Avma(0x9000),
                                          .bias = 0x4000}),
          TraceFact(TraceFunction{.id = 1, .module = 1, .svma = Svma(0x1100), .name = "_Z3foov"}),
          TraceFact(TraceFunction{.id = 2,
                                  .module = 1,
                                  .svma = Svma(0x1200),
                                  .name = "structs",
                                  .arguments = {{.kind = Kind::kStruct}, {.kind = Kind::kStruct}},
                                  .returns = {{.kind = Kind::kStruct}}}),
          TraceFact(TraceFunction{.id = 3,
                                  .module = 1,
                                  .svma = Svma(0x1300),
                                  .name = "mixed",
                                  .arguments = {{.kind = Kind::kStruct}, {.kind = Kind::kSigned}}}),
          TraceFact(tracedata::TraceEnumeration{
              .id = 7, .name = "color", .names = {{1, "kRed"}, {2, "kBlue"}, {-1, "kNone"}}})}) {
      EXPECT_TRUE(writer->Add(fact));
    }
    EXPECT_TRUE(writer->Flush());
    source_ = *trace_.Open();
    calls_ = std::make_unique<analyze::TraceCalls>(*source_, selection_);
  }

  std::string Text(const ValueFormat& format, ByteView bytes) {
    std::string text;
    ValueText(*calls_).Append(text, {format}, bytes);
    return text;
  }
  template <typename T>
  std::string Text(Kind kind, T value, uint32_t enumeration = 0) {
    uint8_t bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    return Text({.kind = kind, .bytes = sizeof(T), .name = "", .enumeration = enumeration}, bytes);
  }
  std::string TextOf(uint16_t word, const std::string& behind) {
    ByteWriter out(Endian::kLittle);
    out.U16(word);
    out.Text(behind);
    return Text({.kind = Kind::kString}, out.view());
  }

  tracedata::FakeTrace trace_;
  std::unique_ptr<tracedata::TraceSource> source_;
  analyze::CallSelection selection_;
  std::unique_ptr<analyze::TraceCalls> calls_;
};

TEST_F(ValueTextTest, Numbers) {
  EXPECT_EQ(Text<int8_t>(Kind::kSigned, -128), "-128");
  EXPECT_EQ(Text<int64_t>(Kind::kSigned, INT64_MIN), "-9223372036854775808");
  EXPECT_EQ(Text<uint64_t>(Kind::kUnsigned, UINT64_MAX), "18446744073709551615");
  EXPECT_EQ(Text<uint16_t>(Kind::kHex, 0xbeef), "0xbeef");
  EXPECT_EQ(Text<unsigned __int128>(Kind::kHex, (static_cast<unsigned __int128>(0x12) << 64) | 3),
            "0x120000000000000003");
  EXPECT_EQ(Text<char>(Kind::kCharacter, '\n'), "'\\n'");
  EXPECT_EQ(Text<bool>(Kind::kBool, true), "true");
  EXPECT_EQ(Text<uint8_t>(Kind::kBool, 9), "9");
  EXPECT_EQ(Text<float>(Kind::kFloat, 1.5F), "1.5");
  EXPECT_EQ(Text<double>(Kind::kFloat, -0.1), "-0.1");
}

TEST_F(ValueTextTest, WhatARegisterHolds) {
  EXPECT_EQ(Text<uint64_t>(Kind::kNumber, 100'000), "100000");
  EXPECT_EQ(Text<int64_t>(Kind::kNumber, -3), "-3");
  EXPECT_EQ(Text<uint64_t>(Kind::kNumber, 0xfffffffd), "-3");
  EXPECT_EQ(Text<uint64_t>(Kind::kNumber, 0x7ffe12345678), "0x7ffe12345678");
  EXPECT_EQ(Text<int64_t>(Kind::kNumber, INT64_MIN), "0x8000000000000000");
}

TEST_F(ValueTextTest, Enumerations) {
  EXPECT_EQ(Text<int32_t>(Kind::kEnumeration, 2, 7), "kBlue");
  EXPECT_EQ(Text<int8_t>(Kind::kEnumeration, -1, 7), "kNone");
  EXPECT_EQ(Text<int32_t>(Kind::kEnumeration, 3, 7), "kRed|kBlue");
  EXPECT_EQ(Text<int32_t>(Kind::kEnumeration, 4, 7), "4");
  EXPECT_EQ(Text<int32_t>(Kind::kEnumeration, 2, 0), "2");
}

TEST_F(ValueTextTest, Texts) {
  EXPECT_EQ(TextOf(3, "a\"b"), "\"a\\\"b\"");
  EXPECT_EQ(TextOf(2 | ValueFormat::kTextGoesOn, "ab"), "\"ab\"...");
  EXPECT_EQ(TextOf(ValueFormat::kNullText, ""), "NULL");
  EXPECT_EQ(TextOf(ValueFormat::kUnreadableText, std::string("\x34\x12\0\0\0\0\0\0", 8)),
            "<0x1234>");
  EXPECT_EQ(Text({.kind = Kind::kString}, ByteView()), "?");
}

TEST_F(ValueTextTest, TextsDoNotDriveTheTerminal) {
  EXPECT_EQ(TextOf(4, "\r\n\t\x1b"), "\"\\r\\n\\t\\x1b\"");
  EXPECT_EQ(TextOf(2, std::string("a\0", 2)), "\"a\\0\"");
  EXPECT_EQ(TextOf(5, "\xc3\xa9\xc2\x9b\xff"), "\"\xc3\xa9\\x9b\\xff\"");  // é, CSI, a bad byte
  EXPECT_EQ(TextOf(3, "\xe2\x80\xae"), "\"\\u{202e}\"");
  EXPECT_EQ(Text<uint8_t>(Kind::kCharacter, 0x9b), "'\\x9b'");
}

// Of such a call nothing is recorded, and yet it is known what it was given.
TEST_F(ValueTextTest, ValuesThatTakeNoBytesAreShown) {
  const auto text = [this](tracedata::EventKind kind, uint32_t row) {
    ValueText values(*calls_);
    const analyze::CallStep step = {.kind = kind, .function = row};
    std::string out;
    if (!values.Has(step)) return std::string("none");
    values.Append(out, step);
    return out;
  };
  using tracedata::EventKind;
  EXPECT_EQ(text(EventKind::kEntry, 1), "{...}, {...}");
  EXPECT_EQ(text(EventKind::kExit, 1), "{...}");
  EXPECT_EQ(text(EventKind::kLeft, 1), "none");
  EXPECT_EQ(text(EventKind::kEntry, 0), "none");
  EXPECT_EQ(text(EventKind::kEntry, 2), "none");  // its values were not recorded
}

TEST_F(ValueTextTest, FunctionsHaveNames) {
  EXPECT_EQ(Text<uint64_t>(Kind::kFunction, 0x5100), "&foo");
  EXPECT_EQ(Text<uint64_t>(Kind::kFunction, 0x5101), "0x5101");
  EXPECT_EQ(Text<uint64_t>(Kind::kFunction, 0x1100), "0x1100");
  EXPECT_EQ(Text<uint64_t>(Kind::kPointer, 0x5100), "0x5100");
}

TEST_F(ValueTextTest, LongDoubles) {
  const auto text = [this](uint64_t fraction, uint64_t exponent) {
    const std::array<uint64_t, 2> words = {fraction, exponent};
    return Text<std::array<uint64_t, 2>>(Kind::kFloat, words);
  };
  EXPECT_EQ(text(uint64_t{1} << 63, 0x3fff), "1");
  EXPECT_EQ(text(uint64_t{5} << 61, 0xc000), "-2.5");
  // The least and the greatest that a double holds, and what is beyond them.
  EXPECT_EQ(text(uint64_t{1} << 63, 0x3fff - 1074), "5e-324");
  EXPECT_EQ(text(UINT64_MAX << 11, 0x3fff + 1023), "1.7976931348623157e+308");
  EXPECT_EQ(text(uint64_t{1} << 63, 0x3fff - 5000), "0");
  EXPECT_EQ(text(uint64_t{1} << 63, 0x3fff + 5000), "inf");
  EXPECT_EQ(text(uint64_t{1} << 63, 0xffff), "-inf");
  EXPECT_EQ(text(uint64_t{3} << 62, 0xffff), "nan");
  EXPECT_EQ(text(0, ValueFormat::kNoFloatExponent), "?");
}

TEST_F(ValueTextTest, WhatIsMissingIsAQuestionMark) {
  std::string text;
  const std::vector<uint8_t> bytes = {1};
  ValueText values(*calls_);
  values.Append(text,
                {{.kind = Kind::kSigned, .bytes = 1},
                 {.kind = Kind::kStruct},
                 {.kind = Kind::kSigned, .bytes = 4}},
                bytes);
  EXPECT_EQ(text, "1, {...}, ?");
  EXPECT_EQ(Text({.kind = Kind::kFloat, .bytes = 1}, bytes), "?");
}

}  // namespace
}  // namespace stackreel::views
