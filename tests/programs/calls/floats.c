// Floating-point numbers of three sizes through calls and pointers to functions.
#include <complex.h>
#include <math.h>
#include <stdio.h>

typedef double (*function)(double);

static double parabola(double x) { return x * x - 2; }
static double wave(double x) { return sin(x) - x / 2; }
static double slope(function f, double x) { return (f(x + 1e-6) - f(x - 1e-6)) / 2e-6; }

static double root(function f, double x, int steps) {
  return steps == 0 ? x : root(f, x - f(x) / slope(f, x), steps - 1);
}

static float area(function f, float from, float to, int depth) {
  float middle = (from + to) / 2;
  if (depth == 0) return (float)f(middle) * (to - from);
  return area(f, from, middle, depth - 1) + area(f, middle, to, depth - 1);
}

static long double series(long double x, int terms) {
  return terms == 0 ? 0 : 1 / (x + terms) + series(x, terms - 1);
}

static long double wide(long double a, long double b) { return a * b + 0.5L; }
static double complex turn(double complex z) { return z * I; }

int main(void) {
  double first = root(parabola, 1, 6), second = root(wave, 2, 6);
  float below = area(parabola, 0, 3, 6);
  long double long_one = wide(series(0.5L, 10), 3);
  double complex turned = turn(turn(1 + 2 * I));
  printf("%.6f %.6f %.2f %.2Lf %.0f %.0f\n", first, second, below, long_one, creal(turned),
         cimag(turned));
  return fabs(first - sqrt(2)) > 1e-9 || fabs(second - 1.895494267) > 1e-6 ||
         fabsf(below - 3) > 0.01f || creal(turned) != -1;
}
