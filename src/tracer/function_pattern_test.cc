#include "tracer/function_pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stackreel::tracer {
namespace {

FunctionPattern Pattern(std::string_view text) {
  auto pattern = FunctionPattern::Parse(text);
  EXPECT_TRUE(pattern.has_value()) << text;
  return std::move(*pattern);
}

TEST(FunctionPattern, GlobCoversTheWholeName) {
  EXPECT_TRUE(Pattern("leaf").MatchesName("leaf"));
  EXPECT_FALSE(Pattern("leaf").MatchesName("leaf_node"));
  EXPECT_TRUE(Pattern("leaf*").MatchesName("leaf_node"));
  EXPECT_FALSE(Pattern("leaf*").MatchesName("a_leaf"));
  EXPECT_TRUE(Pattern("l?af").MatchesName("loaf"));
  EXPECT_TRUE(Pattern("level_[0-3]").MatchesName("level_2"));
  EXPECT_FALSE(Pattern("level_[0-3]").MatchesName("level_4"));
}

TEST(FunctionPattern, RegularExpressionMatchesAnywhere) {
  EXPECT_TRUE(Pattern("^read").MatchesName("read_block"));
  EXPECT_FALSE(Pattern("^read").MatchesName("pread"));
  EXPECT_TRUE(Pattern("read|write").MatchesName("pwrite64"));
  EXPECT_TRUE(Pattern("foo.*").MatchesName("a_foobar"));
  EXPECT_TRUE(Pattern(".").MatchesName("x"));
}

TEST(FunctionPattern, SignsOfARegularExpressionAreTheNameItselfToo) {
  EXPECT_TRUE(Pattern("ns::f(int)").MatchesName("_ZN2ns1fEi"));
  EXPECT_TRUE(Pattern("operator+(A, A)").MatchesName("_Zpl1AS_"));
}

TEST(FunctionPattern, ComparesMangledAndReadableNames) {
  constexpr std::string_view kName =
      "_ZN3log5WriteEPKcm";  // log::Write(char const*, unsigned long)
  EXPECT_TRUE(Pattern("_ZN3log*").MatchesName(kName));
  EXPECT_TRUE(Pattern("log::Write").MatchesName(kName));
  EXPECT_TRUE(Pattern("log::*").MatchesName(kName));
  EXPECT_TRUE(Pattern("log::Write(char const\\*, *)").MatchesName(kName));
  EXPECT_FALSE(Pattern("Write").MatchesName(kName));
}

TEST(FunctionPattern, MangledNamesAreComparedOnlyIfAskedFor) {
  constexpr std::string_view kName = "_ZN3log5WriteEPKcm";
  EXPECT_FALSE(Pattern("_*").MatchesName(kName));
  EXPECT_FALSE(Pattern("*5Write*").MatchesName(kName));
  EXPECT_FALSE(Pattern("^_").MatchesName(kName));
  EXPECT_TRUE(Pattern("^_ZN3log").MatchesName(kName));
  EXPECT_TRUE(Pattern("_*").MatchesName("_exit"));
}

TEST(FunctionPattern, SymbolVersionsDoNotCount) {
  EXPECT_TRUE(Pattern("pthread_mutex_unlock").MatchesName("pthread_mutex_unlock@@GLIBC_2.2.5"));
  EXPECT_TRUE(Pattern("log::Write").MatchesName("_ZN3log5WriteEPKcm@LOG_1"));
}

TEST(FunctionPattern, WithoutAModuleItIsForTheProgram) {
  const FunctionPattern pattern = Pattern("f");
  EXPECT_TRUE(pattern.MatchesModule("/usr/bin/server", true));
  EXPECT_FALSE(pattern.MatchesModule("/usr/lib/libc.so.6", false));
}

TEST(FunctionPattern, ModuleIsTheFilesNameWithOrWithoutItsVersion) {
  constexpr std::string_view kLibc = "/usr/lib/x86_64-linux-gnu/libc.so.6";
  for (const char* const text :
       {"f@libc.so.6", "f@libc.so", "f@libc", "f@libc*", "f@*", "f@/usr/lib/*"}) {
    EXPECT_TRUE(Pattern(text).MatchesModule(kLibc, false)) << text;
  }
  for (const char* const text : {"f@lib", "f@c", "f@libcrypt", "f@/lib/*"}) {
    EXPECT_FALSE(Pattern(text).MatchesModule(kLibc, false)) << text;
  }
  EXPECT_TRUE(Pattern("f@server").MatchesModule("/usr/bin/server", true));
}

TEST(FunctionPattern, TheLastAtSeparates) {
  const FunctionPattern pattern = Pattern("memcpy@@GLIBC_2.14@libc");
  EXPECT_TRUE(pattern.MatchesName("memcpy@@GLIBC_2.14"));
  EXPECT_TRUE(pattern.MatchesModule("/lib/libc.so.6", false));
}

TEST(FunctionPattern, RefusesWhatMeansNothing) {
  for (const char* const text : {"", "@libc", "f@", "a|("}) {
    const auto pattern = FunctionPattern::Parse(text);
    ASSERT_FALSE(pattern.has_value()) << text;
    EXPECT_EQ(pattern.error().kind, ErrorKind::kUsage);
    EXPECT_THAT(pattern.error().message, testing::HasSubstr(text));
    EXPECT_NE(pattern.error().cure, "");
  }
}

// regcomp() would run out of stack at the first, out of memory at the others.
TEST(FunctionPattern, RefusesRegularExpressionsThatAreTooLarge) {
  std::string nested = "a";
  for (int i = 0; i < 20; ++i) nested = "(" + nested + "+)+";
  for (const std::string& text :
       {"^" + std::string(100'000, '('), "^" + nested, std::string("^((a{255}){255}){255}"),
        std::string("^((a{,255}){2,255}){255,}"), std::string("^a{99999999999999999999}"),
        std::string("^((([)]aaaa){1000}){1000}){1000}"), std::string("^([]()]a){30000}"),
        std::string("^([[:alpha:])]aaaa){9000}"), std::string("^(\\)aaaa){9000}")}) {
    const auto pattern = FunctionPattern::Parse(text);
    ASSERT_FALSE(pattern.has_value()) << text;
    EXPECT_EQ(pattern.error().kind, ErrorKind::kUsage);
    EXPECT_THAT(pattern.error().message, testing::HasSubstr("is too large a regular expression"));
  }
  EXPECT_TRUE(Pattern("^(a{255}){30}").MatchesName(std::string(255 * 30, 'a')));
  EXPECT_TRUE(Pattern("^([)]aaaa){2}[[:alpha:])]").MatchesName(")aaaa)aaaab"));
  std::string plain;  // repetitions beside each other are no more than their sum
  for (int i = 0; i < 100; ++i) plain += "a+";
  EXPECT_TRUE(Pattern(plain).MatchesName(std::string(100, 'a')));
}

}  // namespace
}  // namespace stackreel::tracer
