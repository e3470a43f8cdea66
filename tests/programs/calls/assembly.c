// Inline assembly beside calls, and functions that are all assembly but for their frame.
#include <stdint.h>
#include <stdio.h>

static uint64_t add_carry(uint64_t a, uint64_t b, unsigned char* carry) {
  uint64_t sum = a;
  __asm__("addq %2, %0\n\tsetc %1" : "+r"(sum), "=q"(*carry) : "r"(b) : "cc");
  return sum;
}

static int lowest(uint64_t n) {
  uint64_t at;
  __asm__("bsfq %1, %0" : "=r"(at) : "r"(n) : "cc");
  return (int)at;
}

static uint64_t reverse(uint64_t n) {
  __asm__("bswapq %0" : "+r"(n));
  return n;
}

static unsigned vendor(char* name) {
  unsigned a = 0, b, c = 0, d;
  __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  const unsigned parts[] = {b, d, c};
  for (int i = 0; i < 12; i++) name[i] = (char)(parts[i / 4] >> (i % 4 * 8));
  name[12] = 0;
  return a;
}

static void copy(void* to, const void* from, uint64_t size) {
  __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
}

static uint64_t multiply(uint64_t a, uint64_t b, uint64_t* high) {
  uint64_t low;
  __asm__("mulq %3" : "=a"(low), "=d"(*high) : "a"(a), "r"(b) : "cc");
  return low;
}

// All of 64 bits at once: long multiplication by the pieces above.
static uint64_t checksum(const uint64_t* n, int count) {
  uint64_t sum = 0, high;
  for (int i = 0; i < count; i++) {
    unsigned char carry = 0;
    uint64_t low = multiply(n[i], 0x9e3779b97f4a7c15, &high);
    sum = add_carry(sum, low ^ high, &carry);
    sum = reverse(sum) + carry + lowest(n[i] | 1ul << 63);
  }
  return sum;
}

int main(void) {
  uint64_t n[20], kept[20];
  char name[13];
  for (int i = 0; i < 20; i++) n[i] = (uint64_t)i << (i * 3);
  copy(kept, n, sizeof n);
  printf("%s, %llx\n", vendor(name) > 0 ? "a CPU" : "none", (unsigned long long)checksum(n, 20));
  return checksum(n, 20) != checksum(kept, 20) || reverse(reverse(n[7])) != n[7];
}
