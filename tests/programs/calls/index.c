// Records found by bsearch() in an index that qsort() has put in order: the C library calls back.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
  char word[12];
  int count;
};

static struct entry entries[64];
static size_t used;

static int by_word(const void* a, const void* b) {
  return strcmp(((const struct entry*)a)->word, ((const struct entry*)b)->word);
}

static int by_count(const void* a, const void* b) {
  const struct entry *x = a, *y = b;
  return x->count != y->count ? y->count - x->count : by_word(a, b);
}

static struct entry* find(const char* word) {
  struct entry key = {.count = 0};
  strncpy(key.word, word, sizeof key.word - 1);
  return bsearch(&key, entries, used, sizeof key, by_word);
}

static void add(const char* word) {
  struct entry* found = find(word);
  if (!found) {
    found = &entries[used++];
    strncpy(found->word, word, sizeof found->word - 1);
    found->count = 1;
    qsort(entries, used, sizeof *entries, by_word);
  } else {
    found->count++;
  }
}

int main(void) {
  char text[] = "the cat and the dog and the bird saw a cat that saw the dog that saw a bird";
  for (char* word = strtok(text, " "); word; word = strtok(0, " ")) add(word);
  qsort(entries, used, sizeof *entries, by_count);
  printf("%zu words, most often %s: %d\n", used, entries[0].word, entries[0].count);
  return strcmp(entries[0].word, "the") != 0 || entries[0].count != 4;
}
