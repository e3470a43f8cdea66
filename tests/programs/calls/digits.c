// Long arithmetic: 30! and Fibonacci number 200 by digits, on the heap that grows.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct number {
  unsigned char* digits;
  size_t used, room;
};

static void append(struct number* n, unsigned digit) {
  if (n->used == n->room) {
    n->room = n->room ? n->room * 2 : 4;
    n->digits = realloc(n->digits, n->room);
  }
  n->digits[n->used++] = digit;
}

static struct number from_int(unsigned value) {
  struct number n = {0, 0, 0};
  do append(&n, value % 10);
  while (value /= 10);
  return n;
}

static void multiply(struct number* n, unsigned by) {
  unsigned carry = 0;
  for (size_t i = 0; i < n->used; i++) {
    carry += n->digits[i] * by;
    n->digits[i] = carry % 10;
    carry /= 10;
  }
  for (; carry; carry /= 10) append(n, carry % 10);
}

static void add(struct number* to, const struct number* n) {
  unsigned carry = 0;
  for (size_t i = 0; i < n->used || carry; i++) {
    if (i == to->used) append(to, 0);
    carry += to->digits[i] + (i < n->used ? n->digits[i] : 0);
    to->digits[i] = carry % 10;
    carry /= 10;
  }
}

static char* text(const struct number* n, char* out) {
  for (size_t i = 0; i < n->used; i++) out[i] = '0' + n->digits[n->used - 1 - i];
  out[n->used] = 0;
  return out;
}

int main(void) {
  char out[64];
  struct number f = from_int(1), a = from_int(0), b = from_int(1);
  for (unsigned i = 2; i <= 30; i++) multiply(&f, i);
  for (int i = 0; i < 100; i++) {
    add(&a, &b);
    add(&b, &a);
  }
  int wrong = strcmp(text(&f, out), "265252859812191058636308480000000") != 0;
  puts(out);
  wrong += strcmp(text(&a, out), "280571172992510140037611932413038677189525") != 0;
  puts(out);
  free(f.digits);
  free(a.digits);
  free(b.digits);
  return wrong;
}
