// Expressions by recursive descent: a chain of functions a level, which call each other again.
#include <ctype.h>
#include <stdio.h>

static const char* at;
static int bad;

static long sum(void);

static void skip(void) {
  while (isspace((unsigned char)*at)) at++;
}

static int accept(char c) {
  skip();
  if (*at != c) return 0;
  at++;
  return 1;
}

static long number(void) {
  long value = 0;
  skip();
  if (!isdigit((unsigned char)*at)) bad = 1;
  while (isdigit((unsigned char)*at)) value = value * 10 + (*at++ - '0');
  return value;
}

static long atom(void) {
  if (accept('-')) return -atom();
  if (!accept('(')) return number();
  long value = sum();
  if (!accept(')')) bad = 1;
  return value;
}

static long power(void) {
  long base = atom();
  if (!accept('^')) return base;
  long exponent = power(), value = 1;
  while (exponent-- > 0) value *= base;
  return value;
}

static long product(void) {
  long value = power();
  for (;;) {
    if (accept('*')) {
      value *= power();
    } else if (accept('/')) {
      long divisor = power();
      value = divisor ? value / divisor : 0;
    } else {
      return value;
    }
  }
}

static long sum(void) {
  long value = product();
  for (;;) {
    if (accept('+')) {
      value += product();
    } else if (accept('-')) {
      value -= product();
    } else {
      return value;
    }
  }
}

static long evaluate(const char* text) {
  at = text;
  bad = 0;
  long value = sum();
  skip();
  if (*at) bad = 1;
  return bad ? -1 : value;
}

int main(void) {
  const struct {
    const char* text;
    long value;
  } cases[] = {{"1 + 2 * 3", 7},
               {"(1 + 2) * (3 - -4)", 21},
               {"2 ^ 3 ^ 2", 512},
               {"((((((17))))))", 17},
               {"100 / 7 / 2 - 3", 4},
               {"1 + ", -1},
               {"(2", -1}};
  int right = 0, count = sizeof cases / sizeof *cases;
  for (int i = 0; i < count; i++) right += evaluate(cases[i].text) == cases[i].value;
  printf("%d of %d\n", right, count);
  return right != count;
}
