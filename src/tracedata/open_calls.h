// The open calls of a thread, for whoever writes events that must match.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace stackreel::tracedata {

class OpenCalls {
 public:
  void Enter(uint32_t function) { open_.push_back(function); }
  [[nodiscard]] size_t depth() const { return open_.size(); }
  // Ends the innermost call of `function`; first leave(f) is called for each call inside it, the
  // innermost first. depth() counts down before that. False: there is no such call.
  template <typename Leave>
  bool End(uint32_t function, Leave leave) {
    const size_t stop = open_.size() > kMaxSearched ? open_.size() - kMaxSearched : 0;
    size_t found = open_.size();
    while (found > stop && open_[found - 1] != function) --found;
    if (found == stop) return false;
    while (open_.size() > found) {
      const uint32_t inner = open_.back();
      open_.pop_back();
      leave(inner);
    }
    open_.pop_back();
    return true;
  }
  // Ends all of them, as those inside of End's.
  template <typename Leave>
  void EndAll(Leave leave) {
    while (!open_.empty()) {
      const uint32_t inner = open_.back();
      open_.pop_back();
      leave(inner);
    }
  }

 private:
  static constexpr size_t kMaxSearched = 4096;  // more than any agent has open
  std::vector<uint32_t> open_;
};

}  // namespace stackreel::tracedata
