// The checker bites: an executor that leaves out a step, or takes it too early, is found wrong.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "patch/exploration.h"
#include "patch/simulated_programs.h"

namespace stackreel::patch {
namespace {

using Steps = std::vector<Step>;
constexpr SimThreads kTwo = {2, 0};

std::string Violation(const char* name, Direction direction,
                      const std::function<void(Steps&)>& change,
                      SwitchMode mode = SwitchMode::kTrap) {
  const SimProgram program = MakeSimProgram(name, kTwo);
  ExplorationOptions options;
  options.mode = mode;
  options.change = [&](Plan& plan) {
    if (plan.direction == direction) change(plan.steps);
  };
  return Explore(program, options).violation;
}

Steps::iterator Find(Steps& steps, StepKind kind, int nth = 0) {
  return std::find_if(steps.begin(), steps.end(),
                      [&](const Step& step) { return step.kind == kind && nth-- == 0; });
}
std::function<void(Steps&)> Without(StepKind kind, int nth = 0) {
  return [=](Steps& steps) {
    const auto step = Find(steps, kind, nth);
    ASSERT_NE(step, steps.end());
    steps.erase(step);
  };
}
Steps::iterator FindWrite(Steps& steps, Part part, Form form) {
  return std::find_if(steps.begin(), steps.end(), [&](const Step& step) {
    return step.kind == StepKind::kWrite && step.part == part && step.form == form &&
           step.only == StepFor::kCleared;
  });
}
std::function<void(Steps&)> WithoutWrite(Part part, Form form) {
  return [=](Steps& steps) {
    const auto step = FindWrite(steps, part, form);
    ASSERT_NE(step, steps.end());
    steps.erase(step);
  };
}
// Puts the first write of the one before the first of the other, each followed by its sync.
std::function<void(Steps&)> Swapped(Part a, Form form_of_a, Part b, Form form_of_b) {
  return [=](Steps& steps) {
    const auto first = FindWrite(steps, a, form_of_a);
    const auto second = FindWrite(steps, b, form_of_b);
    ASSERT_TRUE(first != steps.end() && second != steps.end());
    std::iter_swap(first, second);
  };
}
constexpr Direction kPatch = Direction::kPatch;
constexpr Direction kUnpatch = Direction::kUnpatch;

TEST(MutationTest, NothingChangedIsRight) {
  EXPECT_EQ(Violation("prologue", kPatch, [](Steps&) {}), "");
}

TEST(MutationTest, SyncAfterTheTrapIsNeeded) {
  EXPECT_NE(Violation("nop", kPatch, Without(StepKind::kSync, 0)), "");
  EXPECT_NE(Violation("nop", kUnpatch, Without(StepKind::kSync, 0)), "");
  EXPECT_NE(Violation("prologue", kPatch, Without(StepKind::kSync, 0)), "");
  EXPECT_NE(Violation("padding", kPatch, Without(StepKind::kSync, 0)), "");
}

TEST(MutationTest, SyncAfterTheTailIsNeeded) {
  EXPECT_NE(Violation("nop", kPatch, Without(StepKind::kSync, 1)), "");
  EXPECT_NE(Violation("nop", kUnpatch, Without(StepKind::kSync, 1)), "");
  EXPECT_NE(Violation("prologue", kPatch, Without(StepKind::kSync, 1)), "");
}

// Else a core meets the trap when its entry is gone already, and goes where the next batch says.
TEST(MutationTest, SyncAfterTheHeadIsNeeded) {
  EXPECT_NE(Violation("xray", kPatch, Without(StepKind::kSync, 1)), "");
  EXPECT_NE(Violation("xray", kUnpatch, Without(StepKind::kSync, 0)), "");
  EXPECT_NE(Violation("trap", kPatch, Without(StepKind::kSync, 0)), "");
  EXPECT_NE(Violation("nop", kPatch, Without(StepKind::kSync, 2)), "");
}

TEST(MutationTest, SyncBeforeWhatIsAsideIsReachedIsNeeded) {
  EXPECT_NE(Violation("xray", kPatch, Without(StepKind::kSync, 0)), "");
}

TEST(MutationTest, SyncOfAllCoresIsNeeded) {
  for (const char* name : {"nop", "prologue", "padding", "xray"}) {
    const SimProgram program = MakeSimProgram(name, kTwo);
    EXPECT_NE(Explore(program, {.cores_synced = 1}).violation, "") << name;
  }
}

TEST(MutationTest, SyncIsNeededWithTheThreadsStopped) {
  EXPECT_NE(Violation("nop", kPatch, Without(StepKind::kSync), SwitchMode::kStopped), "");
  EXPECT_NE(Violation("nop", kUnpatch, Without(StepKind::kSync), SwitchMode::kStopped), "");
}

TEST(MutationTest, TrapIsNeeded) {
  EXPECT_NE(Violation("nop", kPatch, WithoutWrite(Part::kHead, Form::kTrap)), "");
  EXPECT_NE(Violation("nop", kUnpatch, WithoutWrite(Part::kHead, Form::kTrap)), "");
}

TEST(MutationTest, TailComesAfterTheTrap) {
  const auto change = Swapped(Part::kHead, Form::kTrap, Part::kTail, Form::kPatched);
  EXPECT_NE(Violation("nop", kPatch, change), "");
  EXPECT_NE(
      Violation("nop", kUnpatch, Swapped(Part::kHead, Form::kTrap, Part::kTail, Form::kOriginal)),
      "");
}

TEST(MutationTest, HeadComesAfterTheTail) {
  EXPECT_NE(
      Violation("nop", kPatch, Swapped(Part::kTail, Form::kPatched, Part::kHead, Form::kPatched)),
      "");
  EXPECT_NE(Violation("nop", kUnpatch,
                      Swapped(Part::kTail, Form::kOriginal, Part::kHead, Form::kOriginal)),
            "");
}

TEST(MutationTest, WhatIsAsideComesBeforeTheHeadThatLeadsThere) {
  EXPECT_NE(
      Violation("xray", kPatch, Swapped(Part::kAside, Form::kPatched, Part::kHead, Form::kPatched)),
      "");
  EXPECT_NE(Violation("padding", kPatch,
                      Swapped(Part::kAside, Form::kPatched, Part::kHead, Form::kPatched)),
            "");
}

TEST(MutationTest, ThreadsMustBeClearedOut) {
  for (const char* name : {"nops", "prologue", "relocated", "syscall", "padding-2"}) {
    EXPECT_NE(Violation(name, kPatch, Without(StepKind::kClearOut)), "") << name;
    EXPECT_NE(Violation(name, kPatch, Without(StepKind::kClearOut), SwitchMode::kStopped), "")
        << name;
  }
  for (const char* name : {"padding", "xray"}) {
    EXPECT_NE(Violation(name, kUnpatch, Without(StepKind::kClearOut)), "") << name;
    EXPECT_NE(Violation(name, kUnpatch, Without(StepKind::kClearOut), SwitchMode::kStopped), "")
        << name;
  }
}

// A thread could come in behind the one that clears.
TEST(MutationTest, ThreadsAreClearedOutBehindTheTrap) {
  const auto early = [](Steps& steps) {
    const auto clear = Find(steps, StepKind::kClearOut);
    const Step step = *clear;
    steps.erase(clear);
    steps.insert(Find(steps, StepKind::kPublish), step);
  };
  EXPECT_NE(Violation("prologue", kPatch, early), "");
}

TEST(MutationTest, WhereAThreadCannotBeMovedTheSiteIsLeft) {
  const auto forced = [](Steps& steps) {
    std::erase_if(steps, [](const Step& step) { return step.only == StepFor::kDeferred; });
  };
  EXPECT_NE(Violation("prologue", kPatch, forced), "") << "the trap stays, its entry does not";
}

TEST(MutationTest, EntriesComeBeforeTheTraps) {
  EXPECT_NE(Violation("nop", kPatch, Without(StepKind::kPublish, 0)), "");
  EXPECT_NE(Violation("nop", kUnpatch, Without(StepKind::kPublish, 0)), "");
  EXPECT_NE(Violation("trap", kPatch, Without(StepKind::kPublish, 0)), "");
}

TEST(MutationTest, EntriesStayUntilTheTrapsAreGone) {
  for (const char* name : {"nop", "prologue", "padding", "trap"}) {
    const SimProgram program = MakeSimProgram(name, kTwo);
    EXPECT_NE(Explore(program, {.forgets_entries = true}).violation, "") << name;
  }
}

// What stands is what the sites are known to hold: a plan that says so too early unpublishes
// nothing.
TEST(MutationTest, EntriesOfTrapsThatStandAreNotUnpublished) {
  const auto early = [](Steps& steps) {
    const Step publish = steps.back();
    ASSERT_EQ(publish.kind, StepKind::kPublish);
    steps.pop_back();
    steps.insert(FindWrite(steps, Part::kHead, Form::kPatched), publish);
  };
  EXPECT_EQ(Violation("nop", kPatch, early), "");
}

TEST(MutationTest, OutOfLineCodeStaysWhileAThreadMayMeetIt) {
  for (const char* name : {"nop", "nop-call", "prologue", "padding", "xray", "trap"}) {
    const SimProgram program = MakeSimProgram(name, kTwo);
    EXPECT_NE(Explore(program, {.frees_early = true}).violation, "") << name;
  }
}

}  // namespace
}  // namespace stackreel::patch
