#include "os/fair_mutex.h"

#include <gtest/gtest.h>

#include <mutex>
#include <thread>

namespace stackreel::os {
namespace {

TEST(FairMutexTest, WhoWaitsComesBeforeWhoUnlocksAndLocksAgain) {
  FairMutex mutex;
  for (int i = 0; i < 100; ++i) {
    bool waiter_had_it = false;
    mutex.lock();
    std::jthread waiter([&] {
      const std::scoped_lock lock(mutex);
      waiter_had_it = true;
    });
    while (mutex.users() != 2) std::this_thread::yield();
    mutex.unlock();
    mutex.lock();
    ASSERT_TRUE(waiter_had_it);
    mutex.unlock();
  }
  EXPECT_EQ(mutex.users(), 0);
}

TEST(FairMutexTest, OneHasItAtATime) {
  FairMutex mutex;
  int count = 0;
  const auto work = [&] {
    for (int i = 0; i < 1000; ++i) {
      const std::scoped_lock lock(mutex);
      ++count;
    }
  };
  {
    const std::jthread first(work), second(work), third(work);
  }
  EXPECT_EQ(count, 3000);
}

}  // namespace
}  // namespace stackreel::os
