// Coroutines that yield, one of them of another, and one that is left before its end.
#include <coroutine>
#include <cstdio>
#include <exception>
#include <utility>

namespace {

class Numbers {
 public:
  struct promise_type {
    int value = 0;
    Numbers get_return_object() {
      return Numbers(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_always initial_suspend() { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    std::suspend_always yield_value(int given) {
      value = given;
      return {};
    }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };

  explicit Numbers(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  Numbers(Numbers&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  ~Numbers() {
    if (handle_) handle_.destroy();
  }
  bool Next() {
    handle_.resume();
    return !handle_.done();
  }
  int value() const { return handle_.promise().value; }

 private:
  std::coroutine_handle<promise_type> handle_;
};

Numbers From(int first) {
  for (;; ++first) co_yield first;
}

bool IsOdd(int n) { return n % 2 != 0; }

Numbers Odd(int limit) {
  Numbers all = From(1);
  while (all.Next() && all.value() < limit) {
    if (IsOdd(all.value())) co_yield all.value();
  }
}

}  // namespace

int main() {
  int sum = 0;
  Numbers odd = Odd(20);
  while (odd.Next()) sum += odd.value();
  Numbers left = From(5);
  left.Next();
  left.Next();
  std::printf("%d %d\n", sum, left.value());
  return sum == 100 && left.value() == 6 ? 0 : 1;
}
