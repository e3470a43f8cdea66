// A request to a recorder that goes on on another thread: to work off now what was sampled.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "base/error.h"
#include "os/file.h"

namespace stackreel::record {

class LookRequest {
 public:
  LookRequest();

  // Waits until what was sampled before is unwound and written, or for so long.
  void Ask(std::chrono::milliseconds patience);

  // The recorder's: can be read from when somebody asks; who that is is answered.
  [[nodiscard]] int fd() const { return asked_.get(); }
  // How many have asked by now.
  [[nodiscard]] uint64_t Take();
  void Answer(uint64_t asked);

 private:
  os::Fd asked_;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t wanted_ = 0, answered_ = 0;
};

}  // namespace stackreel::record
