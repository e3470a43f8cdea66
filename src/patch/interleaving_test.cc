// Every interleaving of a few threads with patching, unpatching and patching again.
#include <gtest/gtest.h>

#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "patch/exploration.h"
#include "patch/simulated_programs.h"

namespace stackreel::patch {
namespace {

struct Case {
  const char* program;
  SimThreads threads;
};
void PrintTo(const Case& of, std::ostream* out) { *out << of.program; }
std::string Name(const testing::TestParamInfo<Case>& info) {
  std::string name = info.param.program;
  for (char& c : name) c = c == '-' ? '_' : c;
  return name + "_" + std::to_string(info.param.threads.plain) + "_" +
         std::to_string(info.param.threads.interrupted);
}
void ExpectRight(const Exploration& exploration) {
  EXPECT_EQ(exploration.violation, "") << exploration.path;
  EXPECT_GT(exploration.patched, 0U);
  EXPECT_GT(exploration.unpatched, 0U);
  EXPECT_GT(exploration.events.recorded, 0U);
}
class InterleavingTest : public testing::TestWithParam<Case> {
 protected:
  [[nodiscard]] SimProgram program() const {
    return MakeSimProgram(GetParam().program, GetParam().threads);
  }
  // With deaths or failures at each step there are ten times as many ways.
  [[nodiscard]] static bool TakesLong() {
    const auto& [name, threads] = GetParam();
    return threads.plain + threads.interrupted > (std::string_view(name) == "two" ? 1 : 2) ||
           threads.interrupted > 0;
  }
};
// What takes too long to be run with each build; --gtest_also_run_disabled_tests.
class LongInterleavingTest : public InterleavingTest {};

constexpr const char* kPrograms[] = {"nop",       "nop-call", "nops",    "call",      "prologue",
                                     "relocated", "syscall",  "padding", "padding-2", "xray",
                                     "trap",      "own-trap", "two"};
std::vector<Case> Cases(SimThreads threads, std::span<const char* const> programs = kPrograms) {
  std::vector<Case> cases;
  for (const char* program : programs) cases.push_back({program, threads});
  return cases;
}
constexpr const char* kOfThree[] = {"nop", "prologue", "xray", "trap"};
constexpr const char* kOfOne[] = {"two"};
constexpr const char* kOfInterrupted[] = {"prologue"};

// By trap: the process runs on.
TEST_P(InterleavingTest, WhileTheProcessRuns) {
  const SimProgram sim = program();
  const Exploration e = Explore(sim, {});
  ExpectRight(e);
}
TEST_P(LongInterleavingTest, DISABLED_WhileTheProcessRuns) {
  const SimProgram sim = program();
  ExpectRight(Explore(sim, {}));
}

TEST_P(InterleavingTest, WithTheThreadsStopped) {
  const SimProgram sim = program();
  if (RefusedBy(sim.sites()[0], SwitchMode::kStopped)) return;
  const Exploration e = Explore(sim, {.mode = SwitchMode::kStopped});
  ExpectRight(e);
  EXPECT_EQ(e.events.traps_gone_on, 0U);
}

INSTANTIATE_TEST_SUITE_P(OneThread, InterleavingTest, testing::ValuesIn(Cases({1, 0}, kOfOne)),
                         Name);
INSTANTIATE_TEST_SUITE_P(TwoThreads, InterleavingTest, testing::ValuesIn(Cases({2, 0})), Name);
INSTANTIATE_TEST_SUITE_P(Interrupted, InterleavingTest, testing::ValuesIn(Cases({0, 1})), Name);
INSTANTIATE_TEST_SUITE_P(ThreeThreads, InterleavingTest, testing::ValuesIn(Cases({3, 0}, kOfThree)),
                         Name);
INSTANTIATE_TEST_SUITE_P(OneInterrupted, InterleavingTest,
                         testing::ValuesIn(Cases({1, 1}, kOfInterrupted)), Name);
INSTANTIATE_TEST_SUITE_P(ThreeThreads, LongInterleavingTest, testing::ValuesIn(Cases({3, 0})),
                         Name);
INSTANTIATE_TEST_SUITE_P(OneInterrupted, LongInterleavingTest, testing::ValuesIn(Cases({1, 1})),
                         Name);

// The tracer dies between any two steps; the next one unpatches with what it finds in memory.
TEST_P(InterleavingTest, TheTracerMayDie) {
  if (TakesLong()) return;
  const SimProgram sim = program();
  const Exploration e = Explore(sim, {.kills = true});
  ExpectRight(e);
  EXPECT_GT(e.killed, 0U);
  if (RefusedBy(sim.sites()[0], SwitchMode::kStopped)) return;
  const Exploration stopped = Explore(sim, {.mode = SwitchMode::kStopped, .kills = true});
  ExpectRight(stopped);
}

// Any step fails, it alone or with all that follow, having done nothing, half or all of its work.
TEST_P(InterleavingTest, AnyStepMayFail) {
  if (TakesLong()) return;
  const SimProgram sim = program();
  const Exploration e = Explore(sim, {.failures = true});
  ExpectRight(e);
  EXPECT_GT(e.failed, 0U);
  EXPECT_GT(e.stuck, 0U);
  if (RefusedBy(sim.sites()[0], SwitchMode::kStopped)) return;
  const Exploration stopped = Explore(sim, {.mode = SwitchMode::kStopped, .failures = true});
  ExpectRight(stopped);
}

// Out-of-line code is freed, and what is written there for the next patch is new.
TEST_P(InterleavingTest, OutOfLineCodeMayBeFreedWhenNobodyCanMeetIt) {
  if (GetParam().threads.plain == 3) return;
  const SimProgram sim = program();
  const Exploration e = Explore(sim, {.frees = true});
  ExpectRight(e);
  EXPECT_GT(e.freed, 0U);
}

}  // namespace
}  // namespace stackreel::patch
