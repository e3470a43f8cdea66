// Algorithms of the library with comparisons and operations of ours, by function, object, lambda.
#include <algorithm>
#include <cstdio>
#include <iterator>
#include <list>
#include <numeric>
#include <queue>
#include <set>
#include <string>
#include <vector>

namespace {

bool ByLast(int a, int b) { return a % 10 != b % 10 ? a % 10 < b % 10 : a < b; }

struct Longer {
  bool operator()(const std::string& a, const std::string& b) const { return a.size() > b.size(); }
};

int Gather(const std::vector<int>& numbers) {
  std::set<int, bool (*)(int, int)> ordered(ByLast);
  std::copy_if(numbers.begin(), numbers.end(), std::inserter(ordered, ordered.end()),
               [](int n) { return n > 3; });
  return std::accumulate(ordered.begin(), ordered.end(), 0,
                         [](int sum, int n) { return sum * 2 + n; });
}

std::string Longest(std::list<std::string> words) {
  std::priority_queue<std::string, std::vector<std::string>, Longer> queue;
  for (const std::string& word : words) queue.push(word);
  while (queue.size() > 1) queue.pop();
  words.sort(Longer());
  return queue.top() == words.front() ? queue.top() : "?";
}

}  // namespace

int main() {
  std::vector<int> numbers{31, 4, 15, 9, 26, 5, 35};
  std::sort(numbers.begin(), numbers.end(), ByLast);
  const int first = Gather(numbers);
  std::vector<std::vector<int>> all;
  std::vector<int> few{1, 2, 3};
  do all.push_back(few);
  while (std::next_permutation(few.begin(), few.end(), [](int a, int b) { return a < b; }));
  const std::string longest = Longest({"a", "banana", "fig", "cherries", "plum"});
  std::printf("%d %zu %s\n", first, all.size(), longest.c_str());
  return all.size() == 6 && longest == "cherries" && first == 2513 ? 0 : 1;
}
