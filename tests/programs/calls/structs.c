struct small {
  int a, b;
};
struct large {
  long n[8];
};
struct small swap(struct small s) {
  struct small t = {s.b, s.a};
  return t;
}
struct large fill(long n) {
  struct large l;
  for (int i = 0; i < 8; i++) l.n[i] = n + i;
  return l;
}
long total(struct large l) {
  long s = 0;
  for (int i = 0; i < 8; i++) s += l.n[i];
  return s;
}
int main(void) {
  struct small s = {1, 2};
  return swap(swap(s)).a + total(fill(5)) == 0;
}
