#include "os/entry_stop.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
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

}  // namespace
}  // namespace stackreel::os

#endif
