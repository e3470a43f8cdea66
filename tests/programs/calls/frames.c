#include <alloca.h>
#include <string.h>
int on_stack(int n) {
  char* p = alloca(n);
  memset(p, n, n);
  return p[n / 2];
}
int sized(int n) {
  int a[n];
  a[n - 1] = n;
  return a[n - 1];
}
int large(void) {
  volatile char a[100000];
  a[50000] = 1;
  return a[50000];
}
long many(long a, long b, long c, long d, long e, long f, long g, long h) {
  return a + h - b - g + c + d + e + f;
}
int main(void) { return on_stack(64) + sized(9) + large() + many(1, 2, 3, 4, 5, 6, 7, 8) == 0; }
