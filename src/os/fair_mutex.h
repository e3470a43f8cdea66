// A mutex that its waiters get in the order in which they came.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace stackreel::os {

// Of a std::mutex, who unlocks and locks it again in a loop can keep others from it for as long as
// it likes: who has waited has to be given a CPU first. Here that one comes behind them. Not
// recursive; to be used by std::scoped_lock.
class FairMutex {
 public:
  void lock() {
    std::unique_lock lock(mutex_);
    const uint64_t ticket = next_++;
    changed_.wait(lock, [&] { return served_ == ticket; });
  }
  void unlock() {
    {
      const std::scoped_lock lock(mutex_);
      ++served_;
    }
    changed_.notify_all();
  }
  // Who holds it, and who waits for it.
  [[nodiscard]] uint64_t users() const {
    const std::scoped_lock lock(mutex_);
    return next_ - served_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t next_ = 0, served_ = 0;
};

}  // namespace stackreel::os
