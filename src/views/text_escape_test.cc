#include "views/text_escape.h"

#include <gtest/gtest.h>

namespace stackreel::views {
namespace {

TEST(DecodeUtf8, TakesWhatUnicodeAllowsAndNothingElse) {
  EXPECT_EQ(DecodeUtf8("a").value, 0x61u);
  EXPECT_EQ(DecodeUtf8("\xC3\xA9").value, 0xE9u);
  EXPECT_EQ(DecodeUtf8("\xE2\x82\xAC").value, 0x20ACu);
  EXPECT_EQ(DecodeUtf8("\xF0\x9F\x94\xA5").value, 0x1F525u);
  EXPECT_EQ(DecodeUtf8("\xF0\x9F\x94\xA5").size, 4u);
  for (const char* bad :
       {"\x80", "\xC0\xAF", "\xC1\x81", "\xE0\x80\xAF", "\xED\xA0\x80", "\xF0\x80\x80\xAF",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xE2\x82", "\xE2\x28\xA1", "\xFF"}) {
    EXPECT_EQ(DecodeUtf8(bad).value, kBadCodePoint) << bad;
    EXPECT_EQ(DecodeUtf8(bad).size, 1u) << bad;
  }
  EXPECT_EQ(DecodeUtf8("").size, 0u);
}

TEST(Printable, NoNameDrivesTheTerminal) {
  EXPECT_EQ(Printable("a\x1b[31mb\n\x7f"), "a\\x1b[31mb\\x0a\\x7f");
  EXPECT_EQ(Printable("\xC2\x9B"
                      "31m"),
            "\\x9b31m");                                  // C1: CSI
  EXPECT_EQ(Printable("x\xE2\x80\xAEy"), "x\\u{202e}y");  // right-to-left override
  EXPECT_EQ(Printable("\xFF\xC3\xA9"), "\\xff\xC3\xA9");
}

std::string Xml(std::string_view text) {
  std::string out;
  AppendXml(out, text);
  return out;
}

TEST(AppendXml, EscapesMarkupAndReplacesWhatXmlCannotHold) {
  EXPECT_EQ(Xml("<a b=\"c\">'&'"), "&lt;a b=&quot;c&quot;&gt;&#39;&amp;&#39;");
  EXPECT_EQ(Xml("]]>"), "]]&gt;");
  EXPECT_EQ(Xml(std::string_view("\0\x01\x1f", 3)), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(Xml("\xEF\xBF\xBF"), "\xEF\xBF\xBD");  // U+FFFF is no XML character
  EXPECT_EQ(Xml("\xE2\x82"), "\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(Xml("\xF0\x9F\x94\xA5"), "\xF0\x9F\x94\xA5");
}

TEST(CutTo, CountsCodePoints) {
  EXPECT_EQ(CutTo("abc", 3), "abc");
  EXPECT_EQ(CutTo("abcd", 3), "ab…");
  EXPECT_EQ(CutTo("éèê", 3), "éèê");
  EXPECT_EQ(CutTo("éèêë", 2), "é…");
  EXPECT_EQ(CutTo("abc", 0), "");
}

TEST(Grouped, Thousands) {
  EXPECT_EQ(Grouped(0), "0");
  EXPECT_EQ(Grouped(999), "999");
  EXPECT_EQ(Grouped(1000), "1,000");
  EXPECT_EQ(Grouped(UINT64_MAX), "18,446,744,073,709,551,615");
}

}  // namespace
}  // namespace stackreel::views
