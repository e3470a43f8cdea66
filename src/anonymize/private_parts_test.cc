// What verification looks for of a name, and that the transform hides just that: two programs for
// the same rules.
#include "anonymize/private_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "anonymize/fake_recording.h"
#include "anonymize/pseudonyms.h"

namespace stackreel::anonymize {
namespace {

using perfdata::Sensitivity;
using testing::IsEmpty;

using Parts = std::vector<std::string>;
struct Case {
  std::string path;
  Parts at_identity, at_symbols;
};

Parts PartsOf(Level level, const std::string& path) {
  PrivacyRules rules;
  rules.level = level;
  Parts parts;
  for (const std::string_view part : PrivateParts(Sensitivity::kPath, path, rules)) {
    parts.emplace_back(part);
  }
  return parts;
}

TEST(PrivateParts, OfPathsAreWhatTheTransformHides) {
  const std::vector<Case> cases = {
      {"/home/ann/proj/server", {"ann", "proj"}, {"ann", "proj", "server"}},
      {"/Users/ann/x99/libacme.so", {"ann", "x99"}, {"ann", "x99", "libacme.so"}},
      {"/opt/acme/lib/libc.so.6", {"acme"}, {"acme"}},
      {"/usr/lib/acme/tool", {}, {"acme", "tool"}},
      {"/usr/lib/acme/tool (deleted)", {}, {"acme", "tool"}},
      {"/usr/lib/modules/6.1.0-13-acme/kernel/fs/ext4.ko", {"6.1.0-13-acme"}, {"6.1.0-13-acme"}},
      {"/usr/lib/modules/6.1/updates/acme.ko", {}, {"updates", "acme.ko"}},
      {"/boot/vmlinux-6.1.0-13-acme", {"vmlinux-6.1.0-13-acme"}, {"vmlinux-6.1.0-13-acme"}},
      {"/boot/vmlinux-6.1", {}, {}},
      {"/tmp/perf-1234.map", {}, {}},
      {"/tmp/jit-1234.dump", {}, {}},
      {"/tmp/jitted-1234-17.so", {}, {}},
      {"/tmp/perf-acme.map", {}, {"perf-acme.map"}},
      {"/tmp/jit-acme.dump", {}, {"jit-acme.dump"}},
      {"/tmp/jitted-12-acme.so", {}, {"jitted-12-acme.so"}},
      {"[anon:acme heap]", {"acme heap"}, {"acme heap"}},
      {"/memfd:acme (deleted)", {"acme"}, {"acme"}},
      {"[acme_module]", {}, {"acme_module"}},
      {"[kernel.kallsyms]_text", {}, {}},
      {"[stack:1234]", {}, {}},
      {"//anon", {}, {}},
      {"", {}, {}},
  };
  for (const Case& c : cases) {
    for (const Level level : {Level::kIdentity, Level::kSymbols}) {
      const Parts& want = level == Level::kIdentity ? c.at_identity : c.at_symbols;
      EXPECT_EQ(PartsOf(level, c.path), want) << c.path << " --" << LevelName(level);
      Collected collected;
      const std::string hidden = Pseudonyms(fake::SomeKey(), level, {}, collected).Path(c.path);
      for (const std::string& part : want) {
        EXPECT_FALSE(hidden.contains(part)) << hidden << " --" << LevelName(level);
      }
    }
    EXPECT_THAT(PartsOf(Level::kAddresses, c.path), IsEmpty());
  }
}

}  // namespace
}  // namespace stackreel::anonymize
