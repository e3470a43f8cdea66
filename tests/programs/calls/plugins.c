// A library that is loaded, called through what dlsym() finds, unloaded, and loaded again.
#ifdef LIBRARY
static int calls;

static int inner(int n) { return n + ++calls; }
int plugin_first(int (*back)(int), int n) { return back(inner(n)) + inner(1); }
int plugin_calls(void) { return calls; }
#else
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static int twice(int n) { return n * 2; }

static int use(const char* path, int n) {
  void* library = dlopen(path, RTLD_NOW);
  if (!library) {
    puts(dlerror());
    return -1;
  }
  int (*first)(int (*)(int), int) = (int (*)(int (*)(int), int))dlsym(library, "plugin_first");
  int (*calls)(void) = (int (*)(void))dlsym(library, "plugin_calls");
  int result = 0;
  for (int i = 0; i < n; i++) result += first(twice, i);
  result += 1000 * calls();
  dlclose(library);
  return result;
}

int main(int argc, char** argv) {
  char path[4096];
  (void)argc;
  snprintf(path, sizeof path, "%s.so", argv[0]);
  int first = use(path, 5), second = use(path, 5);
  printf("%d %d\n", first, second);
  return first < 0 || first != second;
}
#endif
