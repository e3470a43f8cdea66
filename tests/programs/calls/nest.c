int leaf(int n) { return n * 2; }
int mid(int n) {
  int s = 0;
  for (int i = 0; i < n; i++) s += leaf(i);
  return s;
}
int fact(int n) { return n < 2 ? 1 : n * fact(n - 1); }
int main(void) { return mid(50) + fact(20) == 3; }
