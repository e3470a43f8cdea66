#include <setjmp.h>
jmp_buf place;
void deep(int n) {
  if (n == 0) longjmp(place, 1);
  deep(n - 1);
}
int after(void) { return 1; }
int main(void) {
  if (setjmp(place) == 0) deep(5);
  return after() == 0;
}
