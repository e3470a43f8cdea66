// Test code: functions that others call by way of a pointer, which a test makes a stub.
#pragma once

#include <vector>

namespace stackreel::agent {

#define OUT_OF_LINE __attribute__((noinline, noclone))

// A function as the others call it; ResetAll() undoes what tests have made of it.
template <typename F>
class Called {
 public:
  explicit Called(F* function) : function_(function), called_(function) { All().push_back(this); }
  Called(const Called&) = delete;
  Called& operator=(const Called&) = delete;
  ~Called() = default;
  Called& operator=(F* stub) {
    called_ = stub;
    return *this;
  }
  template <typename... Arguments>
  auto operator()(Arguments... arguments) const {
    return called_(arguments...);
  }
  static void ResetAll() {
    for (Called* called : All()) called->called_ = called->function_;
  }

 private:
  static std::vector<Called*>& All() {
    static std::vector<Called*> all;
    return all;
  }
  F* function_;
  F* volatile called_;
};

// Calls no other.
OUT_OF_LINE inline int Leaf(int x) {
  __asm__ volatile("");
  return x * 3 + 1;
}
inline Called<int(int)> leaf(Leaf);

}  // namespace stackreel::agent
