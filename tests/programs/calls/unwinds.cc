// An exception that is caught some frames up, each time from another depth, with destructors
// between.
#include <cstdio>
#include <stdexcept>
#include <string>

namespace {

int closed = 0;

struct Open {
  ~Open() { ++closed; }
};

[[gnu::noinline]] int Look(int depth, int limit) {
  const Open open;
  if (depth == limit) throw std::out_of_range("depth");
  return Look(depth + 1, limit) + 1;
}

[[gnu::noinline]] int Try(int limit) {
  try {
    return Look(0, limit);
  } catch (const std::out_of_range& error) {
    return -limit;
  }
}

[[gnu::noinline]] int After(int n) { return n * 2; }

}  // namespace

int main() {
  int sum = 0;
  for (int limit = 0; limit < 6; ++limit) sum += After(Try(limit));
  std::printf("%d, %d closed\n", sum, closed);
  return sum == -30 && closed == 21 ? 0 : 1;
}
