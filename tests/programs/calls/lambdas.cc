#include <algorithm>
#include <functional>
#include <map>
#include <vector>
static int call(const std::function<int(int)>& f, int n) { return f(n); }
int main() {
  std::map<int, int> counts;
  std::vector<int> numbers{5, 3, 9, 1, 7};
  std::sort(numbers.begin(), numbers.end(), [](int a, int b) { return a > b; });
  for (int n : numbers) counts[n] += call([&](int x) { return x + numbers[0]; }, n);
  return counts.size() == 0;
}
