#include "profile/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profile/folded_profile.h"

namespace stackreel::profile {
namespace {

using ::testing::ElementsAre;

TEST(Profile, EqualFramesAndStacksHaveOneId) {
  Profile profile;
  Frame frame;
  frame.function = profile.Intern("main");
  const FrameId main = profile.AddFrame(frame);
  EXPECT_EQ(profile.AddFrame(frame), main);
  frame.inlined = true;
  const FrameId inlined = profile.AddFrame(frame);
  EXPECT_NE(inlined, main);
  const StackId outer = profile.Push(kEmptyStack, main);
  EXPECT_EQ(profile.Push(kEmptyStack, main), outer);
  const StackId inner = profile.Push(outer, inlined);
  EXPECT_NE(inner, outer);
  EXPECT_THAT(profile.FramesOf(inner), ElementsAre(inlined, main));
  EXPECT_THAT(profile.FramesOf(kEmptyStack), ElementsAre());
}

TEST(Profile, MergedSamplesDifferInMoreThanWeight) {
  Profile profile;
  ProfileSample sample;
  sample.weight = 3;
  sample.tid = 7;
  profile.AddMerged(sample);
  profile.AddMerged(sample);
  sample.tid = 8;
  profile.AddMerged(sample);
  ASSERT_EQ(profile.samples().size(), 2u);
  EXPECT_EQ(profile.samples()[0].weight, 6u);
  EXPECT_EQ(profile.samples()[0].count, 2u);
  EXPECT_EQ(profile.samples()[1].count, 1u);
}

TEST(Profile, ManyStacksAreFoundAgain) {
  Profile profile;
  Frame frame;
  std::vector<FrameId> frames;
  for (uint32_t line = 0; line < 500; ++line) {
    frame.line = line;
    frames.push_back(profile.AddFrame(frame));
  }
  for (int round = 0; round < 2; ++round) {
    for (FrameId outer : frames) {
      const StackId caller = profile.Push(kEmptyStack, outer);
      for (FrameId inner : frames) {
        const StackId stack = profile.Push(caller, inner);
        EXPECT_EQ(profile.stacks()[stack], (StackNode{caller, inner}));
      }
    }
    EXPECT_EQ(profile.stacks().size(), 500u * 501u);
  }
}

TEST(Profile, MovingKeepsTexts) {
  Profile profile;
  AddFolded(profile, "app;main;work 5\n");
  const Profile moved = std::move(profile);
  ASSERT_EQ(moved.samples().size(), 1u);
  const std::vector<FrameId> frames = moved.FramesOf(moved.samples()[0].stack);
  EXPECT_EQ(moved.Text(moved.frames()[frames[0]].function), "work");
  EXPECT_EQ(moved.Text(moved.samples()[0].comm), "app");
}

}  // namespace
}  // namespace stackreel::profile
