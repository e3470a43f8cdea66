enum color { RED, GREEN = 5, NONE = -1 };
struct pair {
  int a;
  double b;
};
enum color paint(enum color c, unsigned long n, short s) { return c; }
float half(float a, int b, double c) { return a / 2; }
const char* pick(const char* a, char* b, void* c) { return a; }
int call(int (*f)(int), int n) { return f(n); }
int twice(int n) { return n * 2; }
int first(struct pair p, int n) { return p.a + n; }
int main(void) {
  struct pair p = {1, 2.5};
  return paint(NONE, 123456789012345, -3) + paint(GREEN, 1, 2) + half(3, 4, 5.5) +
             (pick(0, "x", &p) == 0) +
             (pick("a rather long text, longer than what uftrace keeps of a text, which is about "
                   "a hundred bytes or so",
                   "", 0) == 0) +
             call(twice, 3) + first(p, 4) ==
         1;
}
