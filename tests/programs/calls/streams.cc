// Streams: operators of our own, a manipulator, and a buffer that counts what passes.
#include <iomanip>
#include <iostream>
#include <sstream>
#include <string>
#include <utility>

namespace {

struct Point {
  int x, y;
};

std::ostream& operator<<(std::ostream& out, const Point& p) {
  return out << '(' << p.x << ", " << p.y << ')';
}

std::istream& operator>>(std::istream& in, Point& p) {
  char open = 0, comma = 0, close = 0;
  in >> open >> p.x >> comma >> p.y >> close;
  if (open != '(' || comma != ',' || close != ')') in.setstate(std::ios::failbit);
  return in;
}

std::ostream& Line(std::ostream& out) { return out << '\n'; }

class CountingBuffer : public std::streambuf {
 public:
  std::string text;

 protected:
  int_type overflow(int_type c) override {
    text.push_back(traits_type::to_char_type(c));
    return c;
  }
};

}  // namespace

int main() {
  CountingBuffer buffer;
  std::ostream counted(&buffer);
  counted << Point{1, 2} << Line << std::setw(5) << 3.5 << std::hex << 255 << Line;
  std::istringstream in("(3, 4) (5, 6) oops");
  int sum = 0;
  for (Point p{}; in >> p;) sum += p.x * p.y;
  std::ostringstream out;
  out << std::setfill('0') << std::setw(4) << sum << ' ' << buffer.text.size();
  std::cout << out.str() << Line;
  return out.str() == "0042 15" ? 0 : 1;
}
