// Calls functions of all kinds of types with values that are known, and says of each call how a
// trace must show it: "NAME(ARGUMENTS) = RESULT".
#include <complex.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#if defined(__clang__)
#define TRACED extern "C" __attribute__((noinline))
#define METHOD __attribute__((noinline))
#else
#define TRACED extern "C" __attribute__((noipa))
#define METHOD __attribute__((noipa))
#endif
// Values that compilers cannot see through.
template <typename T>
METHOD T Hide(T value) {
  __asm__ volatile("" : : "r"(&value) : "memory");
  return value;
}

namespace {

enum Color { kRed, kGreen = 5, kNone = -1 };
enum class Mode : uint8_t { kRead = 1, kWrite = 2, kRun = 4 };
struct Pair {
  int a;
  double b;
};
struct Floats {
  float a, b, c;
};
struct Big {
  long a[5];
};
struct Empty {};
struct alignas(16) Wide {
  long a, b;
};
#pragma pack(push, 1)
struct Packed {
  char a;
  long b;
};
#pragma pack(pop)
struct WithText {  // not to be copied by its bytes
  std::string text;
  int number;
};
union Number {
  float f;
  int i;
};
struct Bits {
  unsigned a : 3, b : 30, c : 7;
};
struct Long {
  long double a;
};
typedef int Four __attribute__((vector_size(16)));

void Expect(const char* line) { std::printf("%s\n", line); }

}  // namespace

#define KEEP(x) __asm__ volatile("" : : "r,m"(x) : "memory")

TRACED int8_t narrow(int8_t a, uint8_t b, int16_t c, uint16_t d) {
  KEEP(a + b + c + d);
  return a;
}
TRACED int64_t integers(int a, unsigned b, long c, unsigned long d, long long e, short f, int g,
                        unsigned char h, long i) {
  KEEP(a + b + c + d + e + f + g + h + i);
  return i;
}
TRACED bool truth(bool a, bool b) {
  KEEP(b);
  return a;
}
TRACED char letter(char a, signed char b) {
  KEEP(b);
  return a;
}
TRACED float floats(float a, double b, int c, float d) {
  KEEP(b + c + d);
  return a;
}
TRACED double many_floats(double a, double b, double c, double d, double e, double f, double g,
                          double h, double i, float j) {
  KEEP(a + b + c + d + e + f + g + h + j);
  return i;
}
TRACED long double extended(int a, long double b, int c) {
  KEEP(a + c);
  return b * 2;
}
TRACED Color colors(Color a, Mode b, Mode c) {
  KEEP(static_cast<int>(b) + static_cast<int>(c));
  return a;
}
TRACED const char* texts(const char* a, char* b, const unsigned char* c) {
  KEEP(b + (c != nullptr));
  return a;
}
TRACED Pair pair_between(int a, Pair b, int c, double d) {
  KEEP(a + c + d);
  return b;
}
TRACED int structs(Big a, int b, Pair c, Floats d, Empty e, int f, Packed g, int h) {
  KEEP(a.a[0] + b + c.a + d.a + g.b + h);
  (void)e;
  return f;
}
TRACED int spilled(int a, int b, int c, int d, int e, Pair f, Wide g, int h, int i) {
  KEEP(a + b + c + d + e + f.a + g.a + i);
  return h;
}
TRACED Big big_result(int a, const char* b) {
  KEEP(b);
  return {{a, 2, 3, 4, 5}};
}
TRACED int by_reference(WithText a, int b, const WithText& c) {
  KEEP(a.number + c.number);
  return b;
}
TRACED int odd(Number a, Bits b, Long c, Four d, int e, float f) {
  KEEP(a.i + b.a + static_cast<int>(c.a) + d[0] + static_cast<int>(f));
  return e;
}
TRACED unsigned __int128 wide(__int128 a, int b, unsigned __int128 c) {
  KEEP(a + b);
  return c;
}
TRACED _Complex double complex_double(_Complex double a, double b) {
  KEEP(b);
  return a;
}
TRACED void only_structs(Pair a, Big b) {
  KEEP(&a);
  KEEP(&b);
}
TRACED int members(int Pair::* a, double (Pair::*b)(), int d) {
  KEEP(&a);
  KEEP(&b);
  return d;
}
TRACED int callback(int8_t (*a)(int8_t, uint8_t, int16_t, uint16_t), const void* b) {
  KEEP(b);
  return a != nullptr;
}
TRACED int variadic(const char* a, ...) {
  KEEP(a);
  return 1;
}

METHOD std::string strings(const std::string& a, std::string b, std::string_view c,
                           const std::string_view& d) {
  KEEP(&c);
  KEEP(&d);
  return a + b;
}
METHOD std::string_view view(int a, std::string_view b) {
  KEEP(a);
  return b;
}

struct Object {
  int number = 7;
  METHOD int method(int a, const std::string& b) {
    KEEP(&b);
    return a + number;
  }
  METHOD static int without(int a) {
    KEEP(a);
    return a * 3 - 8;
  }
};

struct Owner {
  explicit Owner(int a);
  ~Owner();
};
METHOD Owner::Owner(int a) {
  KEEP(this);
  KEEP(a);
}
METHOD Owner::~Owner() { KEEP(this); }

namespace {

void Numbers() {
  narrow(Hide<int8_t>(-128), Hide<uint8_t>(255), Hide<int16_t>(-32768), Hide<uint16_t>(65535));
  Expect("narrow(-128, 255, -32768, 65535) = -128");
  integers(Hide(-1), Hide(4000000000U), Hide(-5000000000L), Hide(~0UL), Hide(-5LL), Hide<short>(-6),
           Hide(-7), Hide<unsigned char>(200), Hide(INT64_MIN));
  Expect(
      "integers(-1, 4000000000, -5000000000, 18446744073709551615, -5, -6, -7, 200, "
      "-9223372036854775808) = -9223372036854775808");
  truth(Hide(true), Hide(false));
  Expect("truth(true, false) = true");
  letter(Hide('x'), Hide<signed char>(-3));
  Expect("letter('x', -3) = 'x'");
  letter(Hide('\n'), Hide<signed char>(65));
  Expect("letter('\\n', 65) = '\\n'");
  floats(Hide(1.5F), Hide(-2.25), Hide(3), Hide(4.0F));
  Expect("floats(1.5, -2.25, 3, 4) = 1.5");
  many_floats(1, 2, 3, 4, 5, 6, 7, 8, Hide(9.5), Hide(10.25F));
  Expect("many_floats(1, 2, 3, 4, 5, 6, 7, 8, 9.5, 10.25) = 9.5");
  const long double doubled = extended(Hide(1), Hide(2.5L), Hide(3));
  if (doubled != 5) std::abort();
  Expect("extended(1, 2.5, 3) = 5");
  wide(-1, Hide(2), static_cast<unsigned __int128>(0xabcdULL) << 64 | 1);
  Expect(
      "wide(0xffffffffffffffffffffffffffffffff, 2, 0xabcd0000000000000001) = "
      "0xabcd0000000000000001");
}

void Others() {
  colors(Hide(kGreen), Hide(Mode::kWrite), static_cast<Mode>(5));
  Expect("colors(kGreen, kWrite, kRead|kRun) = kGreen");
  colors(Hide(kNone), Hide(Mode::kRun), static_cast<Mode>(9));
  Expect("colors(kNone, kRun, 9) = kNone");
  char buffer[] = "buf\"fer";
  texts(Hide<const char*>("hello"), Hide<char*>(buffer), nullptr);
  Expect("texts(\"hello\", \"buf\\\"fer\", 0x0) = \"hello\"");
  texts(nullptr, reinterpret_cast<char*>(Hide(16UL)), nullptr);
  Expect("texts(NULL, <0x10>, 0x0) = NULL");
  callback(narrow, reinterpret_cast<void*>(Hide(0x1234UL)));
  Expect("callback(&narrow, 0x1234) = 1");
  variadic("%d %f", 1, 2.5);
  Expect("variadic(\"%d %f\") = 1");
  members(&Pair::a, nullptr, Hide(9));
  Expect("members(0, {...}, 9) = 9");
}

void Structs() {
  pair_between(Hide(1), Pair{2, 3.5}, Hide(4), Hide(5.5));
  Expect("pair_between(1, {...}, 4, 5.5) = {...}");
  structs(Big{{1, 2, 3, 4, 5}}, Hide(6), Pair{7, 8}, Floats{9, 10, 11}, Empty(), Hide(12),
          Packed{1, 2}, Hide(13));
  Expect("structs({...}, 6, {...}, {...}, {...}, 12, {...}, 13) = 12");
  spilled(1, 2, 3, 4, 5, Pair{6, 7}, Wide{8, 9}, Hide(10), Hide(11));
  Expect("spilled(1, 2, 3, 4, 5, {...}, {...}, 10, 11) = 10");
  big_result(Hide(1), "text");
  Expect("big_result(1, \"text\") = {...}");
  by_reference(WithText{"a", 1}, Hide(2), WithText{"b", 3});
  Expect("by_reference({...}, 2, STACK) = 2");
  odd(Number{1.5F}, Bits{1, 2, 3}, Long{4.0L}, Four{5, 6, 7, 8}, Hide(9), Hide(10.5F));
  Expect("odd({...}, {...}, {...}, {...}, 9, 10.5) = 9");
  complex_double(Hide(1.0), Hide(2.5));
  Expect("complex_double({...}, 2.5) = {...}");
  only_structs(Pair{1, 2}, Big{{1, 2, 3, 4, 5}});
  Expect("only_structs({...}, {...})");
}

void Strings() {
  const auto heap = std::make_unique<std::string>("on the heap");
  strings(*heap, "in place", "view", std::string_view("another"));
  Expect("strings(\"on the heap\", \"in place\", \"view\", \"another\") = \"on the heapin place\"");
  const std::string long_one(300, 'x');
  strings("", "longer than fits into the object itself", std::string_view(), long_one);
  const std::string cut(256, 'x');
  std::printf(
      "strings(\"\", \"longer than fits into the object itself\", \"\", \"%s\"...) = \"longer "
      "than fits into the object itself\"\n",
      cut.c_str());
  view(Hide(1), "letters");
  Expect("view(1, \"letters\") = \"letters\"");
  Object object;
  object.method(Hide(3), "argument");
  Expect("Object::method(STACK, 3, \"argument\") = 10");
  Object::without(Hide(4));
  Expect("Object::without(4) = 4");
}

// What compilers add to the parameters of destructors is not passed to these.
void Destructors() {
  {
    const Owner owner(Hide(5));
    Expect("Owner::Owner(STACK, 5)");
  }
  Expect("Owner::~Owner(STACK)");
}

}  // namespace

int main() {
  Numbers();
  Others();
  Structs();
  Strings();
  Destructors();
}
