// All ways to hand over arguments and results, and callers that know which registers stay.
#include <stdarg.h>

#include "hostile.h"

struct Big {
  long v[6];
};
struct Pair {
  double x;
  long n;
};

NOINLINE long many(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j) {
  __asm__ volatile("");
  return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j;
}
NOINLINE double floats(double a, float b, double c, double d, double e, double f, double g,
                       double h, double i, double j) {
  __asm__ volatile("");
  return a + b + c + d + e + f + g + h + i * 100 + j * 1000;
}
NOINLINE double variadic(int count, ...) {
  va_list list;
  va_start(list, count);
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += i % 2 == 0 ? va_arg(list, double) : va_arg(list, int);
  va_end(list);
  return sum;
}
NOINLINE struct Big big(long start) {
  struct Big result;
  for (int i = 0; i < 6; ++i) result.v[i] = start + i;
  return result;
}
NOINLINE struct Pair pair(double x, long n) {
  const struct Pair result = {x * 2, n + 1};
  return result;
}
NOINLINE __int128 wide(long high, unsigned long low) {
  __asm__ volatile("");
  return (__int128)high << 64 | low;
}
NOINLINE long double extended(long double x) {
  __asm__ volatile("");
  return x * 3;
}
// Only this file calls it, so the compiler sees which registers it leaves alone (-fipa-ra).
static NOINLINE long keeps_registers(long x) {
  __asm__ volatile("");
  return x + 1;
}

#ifndef __clang__
// A nested function gets its frame in r10.
static NOINLINE long apply(long (*f)(long), long x) {
  __asm__ volatile("");
  return f(x);
}
static NOINLINE long with_nested(long base) {
  NOINLINE long nested(long x) {
    __asm__ volatile("");
    return base + x;
  }
  return apply(nested, 3) + nested(4);
}
#else
static long with_nested(long base) { return 2 * base + 7; }
#endif

static void* Work(void* unused) {
  unsigned long long count = 0;
  while (!Over()) {
    for (long i = 0; i < 100; ++i) {
      CHECK(many(i, 2, 3, 4, 5, 6, 7, 8, 9, i) == i + 284 + 10 * i);
      CHECK(floats(1, 2, 3, 4, 5, 6, 7, 8, 9, (double)i) == 936 + 1000.0 * (double)i);
      CHECK(variadic(6, 1.5, 2, 2.5, 3, 3.5, 4) == 16.5);
      const struct Big b = big(i);
      for (int k = 0; k < 6; ++k) CHECK(b.v[k] == i + k);
      const struct Pair p = pair(1.25, i);
      CHECK(p.x == 2.5 && p.n == i + 1);
      CHECK(wide(i, 77) == ((__int128)i << 64 | 77));
      CHECK(extended((long double)i) == 3 * (long double)i);
      long a = i, c = i * 3, d = i * 5, e = i * 7, f = i * 11, g = i * 13;
      for (int k = 0; k < 5; ++k) {
        a = keeps_registers(a);
        c += a;
        d ^= c;
        e += d;
        f ^= e;
        g += f;
      }
      long a2 = i, c2 = i * 3, d2 = i * 5, e2 = i * 7, f2 = i * 11, g2 = i * 13;
      for (int k = 0; k < 5; ++k) {
        a2 = a2 + 1;
        c2 += a2;
        d2 ^= c2;
        e2 += d2;
        f2 ^= e2;
        g2 += f2;
      }
      CHECK(a == a2 && c == c2 && d == d2 && e == e2 && f == f2 && g == g2);
      CHECK(with_nested(i) == 2 * i + 7);
    }
    count += 100;
  }
  atomic_fetch_add(&calls, count);
  return unused;
}

int main(int argc, char** argv) {
  Begin(argc, argv);
  RunThreads(Work);
  Report("many");
  return 0;
}
