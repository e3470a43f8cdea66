// Shared and weak owners, deleters, moves, and a task whose result is waited for.
#include <cstdio>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace {

int released = 0;

struct Part {
  std::string name;
  std::weak_ptr<Part> owner;
  std::vector<std::shared_ptr<Part>> parts;
  explicit Part(std::string name) : name(std::move(name)) {}
  ~Part() { ++released; }
};

std::shared_ptr<Part> Build(int levels, const std::shared_ptr<Part>& owner) {
  auto part = std::make_shared<Part>("part" + std::to_string(levels));
  part->owner = owner;
  for (int i = 0; i < 2 && levels > 0; ++i) part->parts.push_back(Build(levels - 1, part));
  return part;
}

int Depth(const Part& part) {
  const auto owner = part.owner.lock();
  return owner ? 1 + Depth(*owner) : 0;
}

void Close(std::FILE* file) {
  ++released;
  std::fclose(file);
}

int Slow(int n) { return n < 2 ? n : Slow(n - 1) + Slow(n - 2); }

}  // namespace

int main() {
  auto root = Build(3, nullptr);
  const Part* leaf = root.get();
  while (!leaf->parts.empty()) leaf = leaf->parts.back().get();
  const int depth = Depth(*leaf);
  root.reset();
  {
    const std::unique_ptr<std::FILE, void (*)(std::FILE*)> file(std::fopen("/dev/null", "r"),
                                                                Close);
  }
  std::future<int> result = std::async(std::launch::async, Slow, 8);
  const auto added = std::bind(std::plus<int>(), std::placeholders::_1, 1);
  const int sum = added(result.get());
  std::printf("%d deep, %d released, %d\n", depth, released, sum);
  return depth == 3 && released == 16 && sum == 22 ? 0 : 1;
}
