// Verification kind (e): names and numbers, of which OUT must have others, one for one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "anonymize/fake_leaks.h"
#include "anonymize/verify.h"

namespace stackreel::anonymize {
namespace {

using namespace fake;  // NOLINT(google-build-using-namespace): what tests of verification are made
                       // of

using More = std::function<void(Recording&)>;
using testing::HasSubstr;
using testing::Not;

More Comms(std::initializer_list<uint32_t> pids) {
  return [pids = std::vector<uint32_t>(pids)](Recording& r) {
    for (const uint32_t pid : pids) r.Add(RecordType::kComm, perfdata::Comm{pid, pid, "worker"});
  };
}
More Named(const std::string& comm) {
  return [=](Recording& r) { r.Add(RecordType::kComm, perfdata::Comm{kPid, kPid, comm}); };
}

class VerifyHiddenEach : public VerifyEach {
 protected:
  [[nodiscard]] std::string Found(const Leak& in, const Leak& out,
                                  Level level = Level::kIdentity) const {
    VerifyOptions options;
    options.level = level;
    options.findings_kept = 1000;
    return TextOf(Of(out, in, options));
  }
  // Whether the text is found where OUT has it as the name of a thread, which IN has not.
  [[nodiscard]] bool IsFoundInComm(Leak in, Leak out, const std::string& text,
                                   Level level = Level::kIdentity) const {
    for (const auto& [leak, comm] : {std::pair(&in, std::string("worker")), {&out, text}}) {
      leak->more = [before = leak->more, comm](Recording& r) {
        before(r);
        Named(comm)(r);
      };
    }
    VerifyOptions options;
    options.level = level;
    options.findings_kept = 1000;
    const Verdict verdict = Of(out, in, options);
    return std::ranges::any_of(verdict.findings, [&](const Finding& f) {
      return f.kind == FindingKind::kText && f.record == "COMM" && f.value == '"' + text + '"';
    });
  }
  [[nodiscard]] Leak WithBuildId(const BuildId& id, const std::string& path) const {
    const std::vector<perfdata::HeaderBuildId> ids = {{-1, id, path}};
    Leak leak;
    leak.features[static_cast<uint32_t>(Feature::kBuildId)] =
        *perfdata::EncodeBuildIds(ids, {0}, endian());
    return leak;
  }
};
INSTANTIATE_TEST_SUITE_P(All, VerifyHiddenEach, kEach);

TEST_P(VerifyHiddenEach, OneNumberStandsForOneNumber) {
  const auto found = [&](const More& in, const More& out) {
    return Found({.more = in}, {.more = out});
  };
  EXPECT_THAT(found(Comms({11, 12}), Comms({500, 501})), Not(HasSubstr("stands for")));
  EXPECT_THAT(found(Comms({11, 11}), Comms({500, 501})),
              HasSubstr("501 stands for 11, as 500 does"));
  EXPECT_THAT(found(Comms({11, 12}), Comms({500, 500})),
              HasSubstr("500 stands for 12, and for another"));
}

TEST_P(VerifyHiddenEach, OneNumberStandsForOneInSamples) {
  const auto tids = [](uint32_t first, uint32_t step) {
    return Leak{.sample = [=, next = first](perfdata::Sample& sample) mutable {
      sample.tid = next;
      next += step;
    }};
  };
  EXPECT_THAT(Found(tids(20, 1), tids(500, 1)), Not(HasSubstr("do not stand")));
  EXPECT_THAT(Found(tids(20, 0), tids(500, 1)),
              HasSubstr("numbers do not stand for IN's one for one"));
}

TEST_P(VerifyHiddenEach, WhatIsNoneStaysNone) {
  const auto fork = [](uint64_t time) {
    return Leak{.more = [=](Recording& r) {
      r.Add(RecordType::kFork, perfdata::Task{11, kPid, 11, kPid, time});
    }};
  };
  EXPECT_THAT(Found(fork(0), fork(77)), HasSubstr("77, in IN no time"));
  EXPECT_THAT(Found(fork(0), fork(0)), Not(HasSubstr("no time")));
  EXPECT_THAT(Found({.more = Comms({0})}, {.more = Comms({7})}),
              HasSubstr("7, in IN 0, which is none"));
  EXPECT_THAT(Found({.more = Comms({0})}, {.more = Comms({0})}), Not(HasSubstr("which is none")));
}

TEST_P(VerifyHiddenEach, FunctionsOfModulesThatAreNotPublicHavePseudonyms) {
  const auto with = [&](const std::string& path, const std::string& function) {
    Leak leak;
    leak.features[static_cast<uint32_t>(Feature::kStackreelFunctions)] = perfdata::EncodeFeature(
        perfdata::FunctionNames{1, {{path, {{0x10, 4, function}}}}, {}}, endian());
    return Found({}, leak, Level::kSymbols);
  };
  const std::string what = "a function of a module that is not public";
  EXPECT_THAT(with("/opt/x/m_hkvmzqtwrp", "a_secret"), HasSubstr(what));
  EXPECT_THAT(with("/opt/x/m_hkvmzqtwrp", "f_hkvmzqtwrp"), Not(HasSubstr(what)));
  EXPECT_THAT(with("/usr/lib/libc.so.6", "malloc"), Not(HasSubstr(what)));
}

TEST_P(VerifyHiddenEach, BuildIdsAreFoundInHex) {
  const std::string hex = "0123456789abcdeffedcba987654321000112233";
  const BuildId other = *BuildId::FromHex("1111111111222222222233333333334444444444");
  for (const auto& [path, is_found] :
       {std::pair("/opt/x/acmeserver", true), {"/usr/lib/libc.so.6", false}}) {
    EXPECT_EQ(IsFoundInComm(WithBuildId(*BuildId::FromHex(hex), path), WithBuildId(other, "/opt/y"),
                            hex, Level::kSymbols),
              is_found);
  }
}

TEST_P(VerifyHiddenEach, UsersAreFoundInOtherFields) {
  const auto mapped = [](uint64_t addr, const std::string& path) {
    return Leak{.more = [=](Recording& r) { r.Map(kPid, addr, 0x4000, 0, path); }};
  };
  EXPECT_TRUE(IsFoundInComm(mapped(0x7e0000000000, "/home/ilse/prog"),
                            mapped(0x345600000000, "/home/d_hkvmzqtwrp/prog"), "ilse"));
  const BuildId id = *BuildId::FromHex("0123456789abcdeffedcba987654321000112233");
  EXPECT_TRUE(IsFoundInComm(WithBuildId(id, "/home/otto/prog"),
                            WithBuildId(id, "/home/d_hkvmzqtwrp/prog"), "otto"));
  EXPECT_FALSE(IsFoundInComm({}, {}, "otto"));
}

TEST_P(VerifyHiddenEach, CgroupsAndTheHostAreFoundInOtherFields) {
  const auto grouped = [](const std::string& path) {
    return Leak{
        .more = [=](Recording& r) { r.Add(RecordType::kCgroup, perfdata::Cgroup{5, path}); }};
  };
  EXPECT_TRUE(
      IsFoundInComm(grouped("/acme.slice/web"), grouped("/g_hkvmzqtwrp.slice"), "/acme.slice/web"));
  EXPECT_FALSE(IsFoundInComm(grouped("/system.slice"), grouped("/system.slice"), "/system.slice"));
  Leak renamed;
  renamed.features[static_cast<uint32_t>(Feature::kHostname)] =
      perfdata::EncodeString("h_hkvmzqtwrp", endian());
  EXPECT_TRUE(IsFoundInComm({}, renamed, "sekrithost"));
}

}  // namespace
}  // namespace stackreel::anonymize
