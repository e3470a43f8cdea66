#include <stdlib.h>
#include <unistd.h>
int before(int n) { return n; }
int after(void) { return 2; }
int main(int argc, char** argv) {
  if (argc > 1) return after() == 1;
  before(1);
  execl(argv[0], argv[0], "again", (char*)0);
  return 1;
}
