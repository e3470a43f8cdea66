// A tree of values written as JSON, by a table of writers.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { NUMBER, TEXT, LIST, OBJECT, NOTHING };

struct value {
  enum kind kind;
  const char *key, *text;
  double number;
  struct value *first, *next;
};

static char out[1024];
static size_t length;

static void put(const char* text) {
  size_t size = strlen(text);
  memcpy(out + length, text, size + 1);
  length += size;
}

static void write_value(const struct value* value);

static void write_number(const struct value* value) {
  char digits[32];
  snprintf(digits, sizeof digits, "%g", value->number);
  put(digits);
}

static void write_escaped(const char* text) {
  put("\"");
  for (; *text; text++) {
    char one[3] = {*text, 0, 0};
    if (*text == '"' || *text == '\\') {
      one[0] = '\\';
      one[1] = *text;
    }
    put(one);
  }
  put("\"");
}

static void write_text(const struct value* value) { write_escaped(value->text); }

static void write_list(const struct value* value) {
  put("[");
  for (const struct value* i = value->first; i; i = i->next) {
    write_value(i);
    if (i->next) put(",");
  }
  put("]");
}

static void write_object(const struct value* value) {
  put("{");
  for (const struct value* i = value->first; i; i = i->next) {
    write_escaped(i->key);
    put(":");
    write_value(i);
    if (i->next) put(",");
  }
  put("}");
}

static void write_nothing(const struct value* value) {
  (void)value;
  put("null");
}

static void write_value(const struct value* value) {
  static void (*const writers[])(const struct value*) = {write_number, write_text, write_list,
                                                         write_object, write_nothing};
  writers[value->kind](value);
}

static struct value* make(enum kind kind, const char* key) {
  struct value* value = calloc(1, sizeof *value);
  value->kind = kind;
  value->key = key;
  return value;
}

static struct value* add(struct value* to, struct value* value) {
  struct value** end = &to->first;
  while (*end) end = &(*end)->next;
  return *end = value;
}

static void release(struct value* value) {
  if (!value) return;
  release(value->first);
  release(value->next);
  free(value);
}

int main(void) {
  struct value* root = make(OBJECT, 0);
  add(root, make(TEXT, "name"))->text = "a \"quoted\" name";
  struct value* list = add(root, make(LIST, "list"));
  for (int i = 0; i < 5; i++) add(list, make(NUMBER, 0))->number = i * 1.5;
  add(add(list, make(LIST, 0)), make(LIST, 0));
  add(add(root, make(OBJECT, "inner")), make(NOTHING, "none"));
  write_value(root);
  release(root);
  puts(out);
  return strcmp(out,
                "{\"name\":\"a \\\"quoted\\\" name\",\"list\":[0,1.5,3,4.5,6,[[]]],"
                "\"inner\":{\"none\":null}}") != 0;
}
