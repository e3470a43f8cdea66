#include <cstdio>

int main() {
  std::fprintf(stderr, "stackreel " STACKREEL_VERSION "\n");
  return 2;
}
