#include "os/entry_stop.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "os/stopped_process.h"

#if defined(__x86_64__)

namespace stackreel::os {
namespace {

constexpr auto kEntryPatience = std::chrono::milliseconds(5000);

std::unique_ptr<ChildProcess> Prepare(const std::vector<std::string>& command) {
  auto child = ChildProcess::Prepare(command);
  EXPECT_TRUE(child) << child.error().message;
  return child ? std::move(*child) : nullptr;
}

TEST(EntryStop, HoldsAProgramWhereItBegins) {
  const auto child = Prepare({"/bin/sh", "-c", "exit 7"});
  ASSERT_NE(child, nullptr);
  const auto held = StartToEntry(*child);
  ASSERT_TRUE(held) << held.error().message;
  EXPECT_FALSE(child->Wait(/*block=*/false));
  {
    const auto stopped = StoppedProcess::Stop(child->pid(), kEntryPatience);
    ASSERT_TRUE(stopped) << stopped.error().message;
    ASSERT_EQ((*stopped)->threads().size(), 1U);
    EXPECT_EQ((*stopped)->threads()[0].instruction_pointer, held->at);
    EXPECT_NE((*stopped)->threads()[0].thread_pointer, Avma(0));
    ASSERT_TRUE((*stopped)->WriteMemory(held->at, held->original));
  }
  EXPECT_EQ(child->Wait(/*block=*/true), 7);
}

TEST(EntryStop, TellsWhatCannotBeExecuted) {
  const auto child = Prepare({"/bin/sh", "-c", "exit 0"});
  ASSERT_NE(child, nullptr);
  child->Signal(SIGKILL);
  EXPECT_FALSE(StartToEntry(*child));
}

TEST(ExecFollower, WhoIsGivenUpGoesOn) {
  const auto child = Prepare({"/bin/sh", "-c", "sleep 0.3; exit 7"});
  ASSERT_NE(child, nullptr);
  ASSERT_TRUE(child->Start());
  const auto follower = ExecFollower::Begin(child->pid(), child->pid());
  ASSERT_TRUE(follower) << follower.error().message;
  auto executed = std::async(std::launch::async, [&] { return (*follower)->Await(); });
  (*follower)->GiveUp();
  const auto result = executed.get();
  // It may have executed the shell by then.
  if (!result) {
    EXPECT_EQ(result.error().kind, ErrorKind::kInterrupted);
  } else {
    EXPECT_TRUE(*result);
    const auto held = (*follower)->Hold();
    ASSERT_TRUE(held);
    const auto stopped = StoppedProcess::Stop(child->pid(), kEntryPatience);
    ASSERT_TRUE(stopped);
    ASSERT_TRUE((*stopped)->WriteMemory(held->at, held->original));
  }
  EXPECT_EQ(child->Wait(/*block=*/true), 7);
}

TEST(ExecFollower, EndsWithTheProcess) {
  const auto child = Prepare({"/bin/sh", "-c", "sleep 5"});
  ASSERT_NE(child, nullptr);
  ASSERT_TRUE(child->Start());
  const auto follower = ExecFollower::Begin(child->pid(), child->pid());
  ASSERT_TRUE(follower) << follower.error().message;
  auto executed = std::async(std::launch::async, [&] { return (*follower)->Await(); });
  child->Signal(SIGKILL);
  (void)executed.get();  // it comes back
  EXPECT_EQ(child->Wait(/*block=*/true), 137);
}

}  // namespace
}  // namespace stackreel::os

#endif
