// Functions whose beginnings differ, to be compiled in many ways: see tests/check_patching.py.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define KEEP __attribute__((noinline, used))

extern int outside(int);
extern void *outside_pointer;
int shared_number = 7;
static int table[64];
static double scale = 1.5;

KEEP int returns_constant(void) { return 42; }
KEEP void returns_nothing(void) {}
KEEP int returns_argument(int a) { return a; }
KEEP int reads_global(void) { return shared_number; }
KEEP void writes_global(int a) { shared_number = a; }
KEEP void writes_constant(void) { shared_number = 0x12345678; }
KEEP int compares_global(void) { return shared_number == 3 ? outside(1) : 2; }
KEEP const char *returns_text(void) { return "text"; }
KEEP void *takes_own_address(void) { return (void *)takes_own_address; }
KEEP int tail_call(int a) { return outside(a + 1); }
KEEP int tail_call_at_once(int a) { return outside(a); }
KEEP int tail_call_pointer(int (*f)(int)) { return f(3); }
KEEP int calls_first(void) { return outside(1) + 1; }
KEEP int calls_pointer(int (*f)(void)) { return f() + 1; }
KEEP int null_check(const int *p) { return p ? *p : -1; }
KEEP int null_check_tail(int *p) { return p ? outside(*p) : 0; }
KEEP int early_loop(int n) {
  int sum = 0;
  do sum += n; while (--n);
  return sum;
}
KEEP long long_loop(const char *p) {
  long n = 0;
  while (*p++) ++n;
  return n;
}
KEEP int factorial(int n) { return n < 2 ? 1 : n * factorial(n - 1); }
KEEP int recursion_first(int n) { return n ? recursion_first(n - 1) + outside(n) : 0; }
KEEP double multiplies(double a) { return a * scale; }
KEEP float converts(int a) { return (float)a / 3.0f; }
KEEP long double extended(long double a) { return a + 1; }
KEEP int large_frame(int a) {
  volatile char buffer[100000];
  buffer[a] = 1;
  return buffer[0];
}
KEEP int variable_frame(int a) {
  volatile char buffer[a + 1];
  buffer[a] = 1;
  return buffer[0];
}
KEEP int aligned_frame(int a) {
  volatile _Alignas(64) char buffer[64];
  buffer[a & 63] = 1;
  return buffer[0];
}
KEEP int many_arguments(int a, int b, int c, int d, int e, int f, int g, int h) {
  return a - b + c - d + e - f + g - h;
}
KEEP int variadic(int n, ...) {
  va_list list;
  va_start(list, n);
  int sum = 0;
  while (n-- > 0) sum += va_arg(list, int);
  va_end(list);
  return sum;
}
KEEP double variadic_double(int n, ...) {
  va_list list;
  va_start(list, n);
  const double first = va_arg(list, double);
  va_end(list);
  return first;
}
struct large { long words[9]; };
KEEP struct large returns_large(long a) {
  struct large value = {{a, a + 1}};
  return value;
}
KEEP long takes_large(struct large value) { return value.words[3]; }
KEEP int dense_switch(int a) {
  switch (a) {
    case 0: return outside(9);
    case 1: return table[3];
    case 2: return outside(a);
    case 3: return a * 5;
    case 4: return table[a];
    case 5: return outside(17) + 1;
    case 6: return -a;
    default: return 0;
  }
}
KEEP int switch_in_loop(const unsigned char *p) {
  int sum = 0;
  for (;; ++p) {
    switch (*p) {
      case 0: return sum;
      case 1: sum += outside(1); break;
      case 2: sum ^= 0x55; break;
      case 3: sum *= 3; break;
      case 4: sum -= table[sum & 63]; break;
      case 5: sum = outside(sum); break;
      default: break;
    }
  }
}
KEEP int labels(const unsigned char *p) {
  static const void *const places[] = {&&stop, &&add, &&twice};
  int sum = 0;
  goto *places[*p % 3];
add:
  sum += 1;
  goto *places[*++p % 3];
twice:
  sum *= 2;
  goto *places[*++p % 3];
stop:
  return sum;
}
KEEP void *copies(void *to, const void *from) { return memcpy(to, from, 64); }
KEEP void clears(char *p) { memset(p, 0, 200); }
KEEP uint64_t wide_constant(void) { return 0x1122334455667788; }
KEEP uint64_t rotates(uint64_t a) { return a << 13 | a >> 51; }
KEEP unsigned divides(unsigned a, unsigned b) { return a / b; }
KEEP _Bool compares(long a, long b) { return a < b; }
KEEP int saves_all(int a, int b, int c) {
  int x = outside(a), y = outside(b), z = outside(c), w = outside(a + b), v = outside(b + c);
  return x ^ y ^ z ^ w ^ v;
}
KEEP __thread int thread_number = 3;
KEEP int reads_thread(void) { return thread_number; }
KEEP void stops(void) { __builtin_trap(); }
KEEP int never(int a) {
  if (a) return outside(a);
  __builtin_unreachable();
}
KEEP void atomic_add(void) { __atomic_fetch_add(&shared_number, 1, __ATOMIC_SEQ_CST); }
KEEP int atomic_swap(int *p, int a, int b) { return __sync_bool_compare_and_swap(p, a, b); }
KEEP void *frame(void) { return __builtin_frame_address(0); }
KEEP void *caller(void) { return __builtin_return_address(0); }
typedef float four __attribute__((vector_size(16)));
KEEP four vector(four a, four b) { return a * b + a; }
KEEP int bits(unsigned a) { return __builtin_popcount(a) + __builtin_ctz(a | 1); }
#ifndef __clang__
KEEP int nested(int a) {
  int inner(int b) { return a + b; }
  int (*volatile pointer)(int) = inner;
  return pointer(a);
}
#endif
#ifdef DEFINE_PROFILING
__attribute__((no_instrument_function)) KEEP void __fentry__(void) {}
__attribute__((no_instrument_function)) KEEP void mcount(void) {}
#endif
