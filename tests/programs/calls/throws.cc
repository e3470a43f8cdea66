// Exceptions through many frames with destructors, caught by type, thrown again, and kept for
// later.
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

namespace {

int alive = 0;

struct Held {
  Held() { ++alive; }
  Held(const Held&) = delete;
  ~Held() { --alive; }
};

struct Coded : std::runtime_error {
  int code;
  Coded(int code, const std::string& text) : std::runtime_error(text), code(code) {}
};

[[gnu::noinline]] int Descend(int depth, int kind) {
  const Held held;
  if (depth > 0) return Descend(depth - 1, kind) + 1;
  switch (kind) {
    case 0:
      throw Coded(7, "coded");
    case 1:
      throw std::out_of_range("range");
    case 2:
      throw 42;
    default:
      return 1;
  }
}

[[gnu::noinline]] int Twice(int kind) {
  const Held held;
  try {
    return Descend(5, kind);
  } catch (const Coded& error) {
    if (error.code != 7) return -1;
    throw std::logic_error(std::string("from ") + error.what());
  } catch (const std::exception&) {
    throw;
  }
}

[[gnu::noinline]] std::exception_ptr Kept(int kind) {
  try {
    Twice(kind);
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

[[gnu::noinline]] int NameOf(const std::exception_ptr& error) {
  try {
    if (error) std::rethrow_exception(error);
    return 0;
  } catch (const std::logic_error& logic) {
    return static_cast<int>(std::string(logic.what()).size());
  } catch (int number) {
    return number;
  }
}

// Nothing is caught inside of what may not throw; what it calls catches all.
[[gnu::noinline]] int Safe(int kind) noexcept { return NameOf(Kept(kind)); }

}  // namespace

int main() {
  int sum = 0;
  for (int kind = 0; kind < 4; ++kind) sum += Safe(kind);
  std::printf("%d, %d alive\n", sum, alive);
  return sum == 10 + 5 + 42 && alive == 0 ? 0 : 1;
}
