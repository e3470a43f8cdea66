// Templates: recursion at compile time, folds, the curiously recurring one, and specialisations.
#include <array>
#include <cstdio>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace {

template <int N>
[[gnu::noinline]] long Fibonacci() {
  if constexpr (N < 2) {
    return N;
  } else {
    return Fibonacci<N - 1>() + Fibonacci<N - 2>();
  }
}

template <typename... Terms>
[[gnu::noinline]] auto Sum(Terms... terms) {
  return (terms + ...);
}

template <typename Derived>
class Counted {
 public:
  int Next() { return static_cast<Derived*>(this)->Step(count_++); }

 private:
  int count_ = 0;
};

class Doubling : public Counted<Doubling> {
 public:
  [[gnu::noinline]] int Step(int n) { return 2 * n; }
};

class Squaring : public Counted<Squaring> {
 public:
  [[gnu::noinline]] int Step(int n) { return n * n; }
};

template <typename T>
struct Size {
  [[gnu::noinline]] static int Of(const T&) { return static_cast<int>(sizeof(T)); }
};

template <>
struct Size<std::string> {
  [[gnu::noinline]] static int Of(const std::string& text) { return static_cast<int>(text.size()); }
};

template <typename Tuple, size_t... I>
int SizeOf(const Tuple& tuple, std::index_sequence<I...>) {
  return (Size<std::tuple_element_t<I, Tuple>>::Of(std::get<I>(tuple)) + ...);
}

template <typename T, size_t N, typename F>
[[gnu::noinline]] auto Mapped(const std::array<T, N>& from, F function) {
  std::array<std::invoke_result_t<F, T>, N> to{};
  for (size_t i = 0; i < N; ++i) to[i] = function(from[i]);
  return to;
}

[[gnu::noinline]] double Half(int n) { return n / 2.0; }

}  // namespace

int main() {
  Doubling doubling;
  Squaring squaring;
  long sum = Fibonacci<10>() + Sum(1, 2L, short{3}) + static_cast<long>(Sum(0.5, 0.5f));
  for (int i = 0; i < 4; ++i) sum += doubling.Next() + squaring.Next();
  const std::tuple<std::string, int, char> tuple("four", 1, 'x');
  sum += SizeOf(tuple, std::make_index_sequence<3>());
  for (const double half : Mapped(std::array<int, 3>{1, 2, 3}, Half)) {
    sum += static_cast<long>(2 * half);
  }
  std::printf("%ld\n", sum);
  return sum == 55 + 6 + 1 + 12 + 14 + 9 + 6 ? 0 : 1;
}
