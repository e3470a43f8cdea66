// A tree of expressions that is visited: once by a variant, once by double dispatch.
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <variant>

namespace {

struct Binary;
using Node = std::variant<int, std::string, std::unique_ptr<Binary>>;

struct Binary {
  char op;
  Node left, right;
};

Node Make(char op, Node left, Node right) {
  return std::make_unique<Binary>(Binary{op, std::move(left), std::move(right)});
}

struct Value {
  int operator()(int n) const { return n; }
  int operator()(const std::string& name) const { return name == "x" ? 10 : 0; }
  int operator()(const std::unique_ptr<Binary>& b) const {
    const int left = std::visit(*this, b->left), right = std::visit(*this, b->right);
    return b->op == '+' ? left + right : left * right;
  }
};

class Circle;
class Box;

class Visitor {
 public:
  virtual ~Visitor() = default;
  virtual void Visit(const Circle& circle) = 0;
  virtual void Visit(const Box& box) = 0;
};

class Shape {
 public:
  virtual ~Shape() = default;
  virtual void Accept(Visitor& visitor) const = 0;
};

class Circle : public Shape {
 public:
  int radius = 2;
  void Accept(Visitor& visitor) const override { visitor.Visit(*this); }
};

class Box : public Shape {
 public:
  std::unique_ptr<Shape> inside;
  void Accept(Visitor& visitor) const override { visitor.Visit(*this); }
};

class Depth : public Visitor {
 public:
  int depth = 0, found = 0;
  void Visit(const Circle& circle) override { found = depth * 10 + circle.radius; }
  void Visit(const Box& box) override {
    ++depth;
    if (box.inside) box.inside->Accept(*this);
  }
};

std::unique_ptr<Shape> Packed(int times) {
  if (times == 0) return std::make_unique<Circle>();
  auto box = std::make_unique<Box>();
  box->inside = Packed(times - 1);
  return box;
}

}  // namespace

int main() {
  const Node node = Make('+', Make('*', 3, std::string("x")), Make('+', 4, Make('*', 5, 6)));
  const int value = std::visit(Value(), node);
  Depth depth;
  Packed(4)->Accept(depth);
  std::printf("%d %d\n", value, depth.found);
  return value == 64 && depth.found == 42 ? 0 : 1;
}
