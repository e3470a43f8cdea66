#include <memory>
#include <string>
#include <vector>
namespace shapes {
struct Shape {
  virtual ~Shape() = default;
  virtual double area() const = 0;
};
struct Square : Shape {
  double a;
  explicit Square(double a) : a(a) {}
  double area() const override { return a * a; }
};
struct Circle : Shape {
  double r;
  explicit Circle(double r) : r(r) {}
  double area() const override { return 3 * r * r; }
};
}  // namespace shapes
template <typename T>
T twice(T value) {
  return value + value;
}
bool operator<(const shapes::Square& a, const shapes::Square& b) { return a.a < b.a; }
int main() {
  std::vector<std::unique_ptr<shapes::Shape>> all;
  for (int i = 0; i < 5; i++) {
    all.push_back(std::make_unique<shapes::Square>(i));
    all.push_back(std::make_unique<shapes::Circle>(i));
  }
  double sum = 0;
  for (const auto& shape : all) sum += shape->area();
  return twice(std::string("ab")).size() + twice(2) + sum == 0 &&
         shapes::Square(1) < shapes::Square(2);
}
