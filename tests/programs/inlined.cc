// Functions inlined into functions, several deep, for tests of what debug information says of them.
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace shapes {

struct Shape {
  virtual ~Shape() = default;
  [[nodiscard]] virtual double Area() const = 0;
};

template <int N>
struct Polygon : Shape {
  explicit Polygon(double s) : side(s) {}
  [[nodiscard]] double Area() const override { return Scale(side * side) + Rest(N); }
  static double Scale(double x) { return x * N / 4; }
  static double Rest(int n) { return n > 4 ? Scale(n) : 0; }
  double side;
};

std::unique_ptr<Shape> Make(int n) {
  if (n % 3 == 0) return std::make_unique<Polygon<3>>(n);
  if (n % 3 == 1) return std::make_unique<Polygon<4>>(n);
  return std::make_unique<Polygon<5>>(n);
}

}  // namespace shapes

namespace {

int Count(const std::string& text, char c) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), [c](char x) { return x == c; }));
}

[[noreturn]] void Fail(const char* why) {
  std::fputs(why, stderr);
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::unique_ptr<shapes::Shape>> all;
  std::map<std::string, double> areas;
  for (int i = 0; i < 10 + argc; ++i) all.push_back(shapes::Make(i));
  std::sort(all.begin(), all.end(),
            [](const auto& a, const auto& b) { return a->Area() < b->Area(); });
  for (const auto& shape : all) areas[std::to_string(shape->Area())] += shape->Area();
  if (areas.empty()) Fail("no shapes\n");
  int letters = 0;
  for (int i = 0; i < argc; ++i) letters += Count(argv[i], 'a');
  std::printf("%zu %f %d\n", areas.size(), areas.begin()->second, letters);
  return 0;
}
