static int apply(int (*f)(int), int n) { return f(n); }
int outer(int n) {
  int bias = n;
  int inner(int x) { return x + bias; }
  return apply(inner, 1) + inner(2);
}
int main(void) { return outer(3) + outer(4) == 0; }
