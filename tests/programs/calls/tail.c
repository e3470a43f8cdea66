int last(int n) { return n + 1; }
int second(int n) { return last(n * 2); }
int first(int n) { return n > 0 ? second(n - 1) : last(n); }
int main(void) {
  int s = 0;
  for (int i = 0; i < 30; i++) s += first(i);
  return s == 0;
}
