#include "record/look_request.h"

#include <sys/eventfd.h>
#include <unistd.h>

namespace stackreel::record {

LookRequest::LookRequest() : asked_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void LookRequest::Ask(std::chrono::milliseconds patience) {
  if (!asked_.valid()) return;
  std::unique_lock lock(mutex_);
  const uint64_t mine = ++wanted_;
  const uint64_t one = 1;
  (void)!write(asked_.get(), &one, sizeof(one));
  changed_.wait_for(lock, patience, [&] { return answered_ >= mine; });
}

uint64_t LookRequest::Take() {
  uint64_t count = 0;
  (void)!read(asked_.get(), &count, sizeof(count));
  const std::lock_guard lock(mutex_);
  return wanted_;
}

void LookRequest::Answer(uint64_t asked) {
  const std::lock_guard lock(mutex_);
  answered_ = asked;
  changed_.notify_all();
}

}  // namespace stackreel::record
