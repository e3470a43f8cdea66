// A scanner whose states are functions that call the next one last, and return which comes then.
#include <stdio.h>
#include <string.h>

struct scan {
  const char* at;
  int words, numbers, others;
};

struct state {
  struct state (*run)(struct scan*);
};

static struct state between(struct scan* s);
static struct state in_word(struct scan* s);
static struct state in_number(struct scan* s);

static int is_letter(char c) { return (c | 32) >= 'a' && (c | 32) <= 'z'; }
static int is_digit(char c) { return c >= '0' && c <= '9'; }

static struct state in_word(struct scan* s) {
  while (is_letter(*s->at)) s->at++;
  s->words++;
  return (struct state){between};
}

static struct state in_number(struct scan* s) {
  while (is_digit(*s->at)) s->at++;
  s->numbers++;
  return is_letter(*s->at) ? in_word(s) : between(s);
}

static struct state between(struct scan* s) {
  if (!*s->at) return (struct state){0};
  if (is_letter(*s->at)) return (struct state){in_word};
  if (is_digit(*s->at)) return in_number(s);
  s->at++;
  s->others++;
  return between(s);
}

int main(void) {
  struct scan s = {"12 apples, 7pears and 100 plums -- 3 of 4 are ripe; 9lives", 0, 0, 0};
  for (struct state now = {between}; now.run;) now = now.run(&s);
  printf("%d words, %d numbers, %d others\n", s.words, s.numbers, s.others);
  return s.words != 8 || s.numbers != 6;
}
