// That the simulated machine runs what it should, and notices what it should not.
#include <gtest/gtest.h>

#include <string>

#include "patch/simulated_machine.h"

namespace stackreel::patch {
namespace {

// f: push; mov; ret, called in a loop.
SimProgram Loop() {
  SimProgram program;
  program.Code(0x4000, {"e8 3b 00 00 00", "eb f9"});
  program.Code(0x4040, {"55", "b8 01 00 00 00", "5d", "c3"});
  return program;
}

TEST(SimulatedMachineTest, RunsAProgramForever) {
  SimProgram program = Loop();
  program.AddThread(0x4000);
  program.Finish();
  EXPECT_EQ(program.threads()[0].does.size(), 5U) << "call, push, mov, pop, ret";
  SimMachine machine(program);
  SimState state = machine.Start();
  for (int i = 0; i < 100; ++i) {
    SimState after;
    int ways = 0;
    machine.StepThread(state, 0, [&](const SimState& next, bool) {
      after = next;
      ++ways;
    });
    ASSERT_EQ(ways, 1);
    state = after;
  }
  EXPECT_EQ(machine.violation(), "");
}

// A store of several bytes may be seen in any mixture, until a sync.
TEST(SimulatedMachineTest, CoresSeeMixturesUntilTheySync) {
  SimProgram program = Loop();
  // Each value that the mixtures of mov's operand can have is a right one here.
  for (const char* operand : {"03 00 00 00", "01 02 00 00", "03 02 00 00"}) {
    program.Code(0x4041, {std::string("b8 ") + operand});
  }
  program.Code(0x4041, {"b8 01 00 00 00"});
  program.AddThread(0x4000);
  program.Finish();
  SimMachine machine(program);
  SimState state = machine.Start();
  state.threads[0].now.ip = 0x4041;
  state.threads[0].now.position = 2;
  const auto ways = [&] {
    int count = 0;
    SimMachine fresh(program);
    fresh.StepThread(state, 0, [&](const SimState&, bool) { ++count; });
    return count;
  };
  EXPECT_EQ(ways(), 1);
  machine.Write(state, 0x4042, Hex("03 02"));
  EXPECT_EQ(ways(), 4);
  machine.Sync(state, 0);
  EXPECT_EQ(ways(), 4) << "another core's sync is of no use";
  machine.Sync(state);
  EXPECT_EQ(ways(), 1);
}

TEST(SimulatedMachineTest, NoticesWhatTheProgramDoesNot) {
  SimProgram program = Loop();
  program.AddThread(0x4000);
  program.Finish();
  const auto violation = [&](uint16_t ip, uint8_t position) {
    SimMachine machine(program);
    SimState state = machine.Start();
    state.threads[0].now.ip = ip;
    state.threads[0].now.position = position;
    machine.StepThread(state, 0, [](const SimState&, bool) {});
    return machine.violation();
  };
  EXPECT_EQ(violation(0x4040, 1), "");
  EXPECT_NE(violation(0x4041, 1), "") << "skips the push";
  EXPECT_NE(violation(0x4042, 2), "") << "in the middle of an instruction";
  EXPECT_NE(violation(0x4047, 4), "") << "returns without a call";
}

}  // namespace
}  // namespace stackreel::patch
