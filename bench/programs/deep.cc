// Deep, mixed C++ call stacks: virtual calls, std::function, templates, libstdc++
// (map/string/sort/regex), libc qsort callbacks.
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>
struct Node {
  virtual ~Node() = default;
  virtual double eval(int depth, std::vector<double>& v) = 0;
};
template <int K>
struct Op : Node {
  std::unique_ptr<Node> next;
  explicit Op(std::unique_ptr<Node> n) : next(std::move(n)) {}
  __attribute__((noinline)) double eval(int depth, std::vector<double>& v) override {
    volatile double pad[8 + K * 3];
    for (int i = 0; i < 8 + K * 3; ++i) pad[i] = depth * i;
    std::function<double(int)> f = [&](int x) { return next->eval(x, v) + pad[K]; };
    double r = f(depth + 1);
    v.push_back(r);
    if (v.size() > 4096) v.clear();
    return r * 0.5;
  }
};
static int cmp(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}
struct Leaf : Node {
  std::mt19937 rng{42};
  std::map<std::string, int> m;
  std::unordered_map<std::string, double> um;
  __attribute__((noinline)) double eval(int depth, std::vector<double>& v) override {
    double s = 0;
    for (int k = 0; k < 3; ++k) {
      std::vector<double> w(600);
      for (auto& x : w) x = std::generate_canonical<double, 32>(rng);
      switch (k) {
        case 0:
          qsort(w.data(), w.size(), sizeof(double), cmp);
          break;
        case 1:
          std::sort(w.begin(), w.end(),
                    [](double a, double b) { return std::sin(a) < std::sin(b); });
          break;
        default:
          for (int i = 0; i < 100; ++i) {
            std::string key = "key" + std::to_string((int)(w[i] * 500));
            m[key]++;
            um[key] += w[i];
          }
          if (m.size() > 400) m.clear();
      }
      s += std::accumulate(w.begin(), w.end(), 0.0);
    }
    std::ostringstream o;
    o << s << ' ' << depth;
    s += o.str().size();
    static const std::regex re("([0-9]+)\\.([0-9]+) ([0-9]+)");
    std::smatch mm;
    std::string str = o.str();
    if (std::regex_search(str, mm, re)) s += mm.size();
    return s;
  }
};
template <int K>
std::unique_ptr<Node> wrap(std::unique_ptr<Node> n) {
  if constexpr (K == 0)
    return n;
  else
    return wrap<K - 1>(std::make_unique<Op<K>>(std::move(n)));
}
int main(int argc, char** argv) {
  int secs = argc > 1 ? atoi(argv[1]) : 10, layers = argc > 2 ? atoi(argv[2]) : 3,
      nthr = argc > 3 ? atoi(argv[3]) : 1;
  auto body = [&] {
    std::unique_ptr<Node> n = std::make_unique<Leaf>();
    for (int i = 0; i < layers; ++i) n = wrap<12>(std::move(n));
    std::vector<double> v;
    double s = 0;
    auto t0 = std::chrono::steady_clock::now();
    long it = 0;
    while (std::chrono::steady_clock::now() - t0 < std::chrono::seconds(secs)) {
      s += n->eval(0, v);
      ++it;
    }
    timespec ct;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ct);
    std::cout << "iters " << it << " cpu " << ct.tv_sec + ct.tv_nsec * 1e-9 << " ipcs "
              << it / (ct.tv_sec + ct.tv_nsec * 1e-9) << " s " << s << "\n";
  };
  std::vector<std::thread> ts;
  for (int i = 0; i < nthr; ++i) ts.emplace_back(body);
  for (auto& t : ts) t.join();
}
