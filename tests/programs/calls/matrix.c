// Matrices of doubles, handed over by value and by pointer.
#include <math.h>
#include <stdio.h>

enum { N = 4 };

struct matrix {
  double at[N][N];
};

static struct matrix unit(void) {
  struct matrix m = {{{0}}};
  for (int i = 0; i < N; i++) m.at[i][i] = 1;
  return m;
}

static double dot(const struct matrix* a, const struct matrix* b, int row, int column) {
  double sum = 0;
  for (int i = 0; i < N; i++) sum += a->at[row][i] * b->at[i][column];
  return sum;
}

static struct matrix multiply(struct matrix a, struct matrix b) {
  struct matrix m;
  for (int i = 0; i < N; i++) {
    for (int j = 0; j < N; j++) m.at[i][j] = dot(&a, &b, i, j);
  }
  return m;
}

static struct matrix power(struct matrix m, unsigned n) {
  if (n == 0) return unit();
  struct matrix half = power(m, n / 2), square = multiply(half, half);
  return n % 2 ? multiply(square, m) : square;
}

// By minors: recursion that branches N, N - 1, ... times.
static double determinant(const double* m, int n) {
  if (n == 1) return m[0];
  double sum = 0, minor[N * N];
  for (int c = 0; c < n; c++) {
    for (int i = 1, to = 0; i < n; i++) {
      for (int j = 0; j < n; j++) {
        if (j != c) minor[to++] = m[i * n + j];
      }
    }
    sum += (c % 2 ? -1 : 1) * m[c] * determinant(minor, n - 1);
  }
  return sum;
}

static float norm(const struct matrix* m) {
  float sum = 0;
  for (int i = 0; i < N; i++) sum += sqrtf((float)dot(m, m, i, i));
  return sum;
}

int main(void) {
  struct matrix m = {{{1, 2, 0, 1}, {0, 1, 3, 0}, {2, 0, 1, 1}, {1, 1, 0, 2}}};
  double once = determinant(&m.at[0][0], N);
  struct matrix cube = power(m, 3);
  double thrice = determinant(&cube.at[0][0], N);
  printf("%g %g %.2f\n", once, thrice, norm(&m));
  return fabs(once * once * once - thrice) > 1e-6;
}
