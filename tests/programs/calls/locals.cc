// Threads with objects of their own, made when they are first used and destroyed at their end.
#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>

namespace {

std::atomic<int> made{0}, destroyed{0};
std::atomic<long> total{0};

struct Tally {
  long sum = 0;
  Tally() { ++made; }
  ~Tally() {
    total += sum;
    ++destroyed;
  }
  void Add(long n) { sum += n; }
};

thread_local Tally tally;
thread_local int depth = 0;

void Work(int n) {
  ++depth;
  tally.Add(n * depth);
  if (n > 1) Work(n - 1);
  --depth;
}

struct Worker {
  int size;
  void operator()() const { Work(size); }
};

}  // namespace

int main() {
  std::vector<std::thread> threads;
  for (int i = 1; i <= 3; ++i) threads.emplace_back(Worker{i * 4});
  for (std::thread& thread : threads) thread.join();
  std::thread([] {}).join();  // has none
  std::printf("%d made, %d destroyed, %ld\n", made.load(), destroyed.load(), total.load());
  return made == 3 && destroyed == 3 && total == 20 + 120 + 364 ? 0 : 1;
}
