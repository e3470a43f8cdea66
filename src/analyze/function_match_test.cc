#include "analyze/function_match.h"

#include <gtest/gtest.h>

#include "tracedata/fake_trace.h"

namespace stackreel::analyze {
namespace {

TEST(MatchesFunction, NamesAreWithoutVersionsAndMayNameTheirModule) {
  tracedata::FakeTrace trace;
  auto writer = tracedata::TraceWriter::Begin(trace.calls, trace.facts, 1);
  ASSERT_TRUE(writer->Add(tracedata::TraceModule{.id = 3, .path = "/usr/lib/libc.so.6"}));
  ASSERT_TRUE(writer->Add(
      tracedata::TraceFunction{.id = 0, .module = 3, .name = "pthread_mutex_unlock@@GLIBC_2.2.5"}));
  ASSERT_TRUE(
      writer->Add(tracedata::TraceFunction{.id = 1, .module = 3, .name = "_ZN3log5WriteEPKcm"}));
  ASSERT_TRUE(writer->Flush());
  const auto source = trace.Open();
  ASSERT_TRUE(source);
  const auto& functions = (*source)->tables().functions;
  ASSERT_EQ(functions.size(), 2u);
  for (const char* const pattern :
       {"pthread_mutex_unlock", "pthread_*", "pthread_mutex_unlock@libc", "*@libc.so",
        "pthread_mutex_unlock@libc.so.6", "pthread_mutex_unlock@@GLIBC_2.2.5"}) {
    EXPECT_TRUE(MatchesFunction(**source, functions[0], pattern)) << pattern;
  }
  for (const char* const pattern : {"pthread", "pthread_mutex_unlock@libm", "*@lib", "*@GLIBC*"}) {
    EXPECT_FALSE(MatchesFunction(**source, functions[0], pattern)) << pattern;
  }
  for (const char* const pattern : {"log::Write", "log::Write(char const*, unsigned long)",
                                    "log::*@libc", "_ZN3log5WriteEPKcm"}) {
    EXPECT_TRUE(MatchesFunction(**source, functions[1], pattern)) << pattern;
  }
  EXPECT_FALSE(MatchesFunction(**source, functions[1], "_Z*"));
}

}  // namespace
}  // namespace stackreel::analyze
