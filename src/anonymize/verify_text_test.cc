// Verification kind (e): texts that a level hides.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "anonymize/fake_leaks.h"
#include "anonymize/verify.h"

namespace stackreel::anonymize {
namespace {

using namespace fake;  // NOLINT(google-build-using-namespace): what tests of verification are made
                       // of

class VerifyTextEach : public VerifyEach {};
INSTANTIATE_TEST_SUITE_P(All, VerifyTextEach, kEach);

TEST_P(VerifyTextEach, TextsOfTheLevelAreFound) {
  const std::vector<std::string> words = {"perf",       "record",          "-g", "-F",
                                          "4000",       "/home/ilse/prog", "-e", "cycles:u",
                                          "--secret-x", "[kernel.kal"};
  Leak leak;
  leak.features[static_cast<uint32_t>(Feature::kCmdline)] =
      perfdata::EncodeStringList(words, endian());
  VerifyOptions options;
  options.level = Level::kIdentity;
  std::set<std::string> found;
  for (const Finding& f : Of(leak, leak, options).findings) {
    if (f.kind == FindingKind::kText && f.value.starts_with('"')) found.insert(f.value);
  }
  EXPECT_THAT(found,
              testing::UnorderedElementsAre("\"sekrithost\"", "\"ilse\"", "\"/home/ilse/prog\""));
  options.level = Level::kAddresses;
  options.denied = {"secret"};
  const Verdict denied = Of(leak, leak, options);
  ASSERT_EQ(denied.found, 1);
  EXPECT_EQ(denied.findings[0].kind, FindingKind::kText);
  options.denied = {"secre"};  // a part of a word
  EXPECT_TRUE(Of(leak, leak, options).clean());
}

// The name of a module that is not public is found wherever it stands, also where IN had another.
TEST_P(VerifyTextEach, NamesOfModulesAreFoundInOtherFields) {
  const auto with = [](uint64_t addr, const std::string& module, const std::string& comm) {
    return Leak{.more = [=](Recording& r) {
      r.Map(kPid, addr, 0x4000, 0, module);
      r.Add(RecordType::kComm, perfdata::Comm{kPid, kPid, comm});
    }};
  };
  const Leak in = with(0x7e0000000000, "/opt/x/acmeserver", "worker");
  VerifyOptions options;
  options.level = Level::kSymbols;
  const auto is_found = [&](const std::string& comm) {
    const Verdict verdict = Of(with(0x345600000000, "/opt/x/m_hkvmzqtwrp", comm), in, options);
    return TextOf(verdict).contains("COMM  ") && TextOf(verdict).contains("\"acmeserver\"");
  };
  EXPECT_TRUE(is_found("acmeserver"));
  EXPECT_TRUE(is_found("a/acmeserver"));
  EXPECT_FALSE(is_found("c_hkvmzqtwrp"));
}

}  // namespace
}  // namespace stackreel::anonymize
