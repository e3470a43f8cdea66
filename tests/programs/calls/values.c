#include <string.h>
long add(long a, int b) { return a + b; }
const char* name(const char* s, double d) { return d > 1 ? s : "none"; }
char letter(char c) { return c; }
int main(void) { return add(-5, 7) + strlen(name("hello", 2.5)) + letter('x') == 1; }
