// A hash table that grows, with the hash function and the comparison handed in.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct table {
  const char** keys;
  int* values;
  size_t size, used;
  unsigned (*hash)(const char*);
  int (*equal)(const char*, const char*);
};

static unsigned step(unsigned h, unsigned char c) { return (h ^ c) * 16777619u; }

static unsigned hash_text(const char* text) {
  unsigned h = 2166136261u;
  while (*text) h = step(h, *text++);
  return h;
}

static int equal_text(const char* a, const char* b) { return strcmp(a, b) == 0; }

static size_t place(const struct table* t, const char* key) {
  size_t at = t->hash(key) & (t->size - 1);
  while (t->keys[at] && !t->equal(t->keys[at], key)) at = (at + 1) & (t->size - 1);
  return at;
}

static void set(struct table* t, const char* key, int value);

static void grow(struct table* t) {
  struct table old = *t;
  t->size = old.size ? old.size * 2 : 4;
  t->used = 0;
  t->keys = calloc(t->size, sizeof *t->keys);
  t->values = calloc(t->size, sizeof *t->values);
  for (size_t i = 0; i < old.size; i++) {
    if (old.keys[i]) set(t, old.keys[i], old.values[i]);
  }
  free(old.keys);
  free(old.values);
}

static void set(struct table* t, const char* key, int value) {
  if (2 * t->used >= t->size) grow(t);
  size_t at = place(t, key);
  if (!t->keys[at]) t->used++;
  t->keys[at] = key;
  t->values[at] = value;
}

static int get(const struct table* t, const char* key) {
  size_t at = place(t, key);
  return t->keys[at] ? t->values[at] : -1;
}

int main(void) {
  static char names[40][8];
  struct table t = {.hash = hash_text, .equal = equal_text};
  for (int i = 0; i < 40; i++) {
    sprintf(names[i], "key%d", i * i);
    set(&t, names[i], i);
  }
  set(&t, "key25", 500);
  int wrong = get(&t, "key26") != -1 || get(&t, "key25") != 500;
  for (int i = 6; i < 40; i++) wrong += get(&t, names[i]) != i;
  printf("%zu keys in %zu places, %d wrong\n", t.used, t.size, wrong);
  free(t.keys);
  free(t.values);
  return wrong != 0 || t.used != 40;
}
