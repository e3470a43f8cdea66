#include <string>
struct Named {
  std::string name;
  explicit Named(const char* text) : name(text) {}
  ~Named() { name.clear(); }
};
static Named first("first"), second("second");
Named& lazy() {
  static Named third("third");
  return third;
}
int main() { return lazy().name.size() + lazy().name.size() + first.name.size() == 0; }
