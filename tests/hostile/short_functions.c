// Functions that only a trap can be put at: of 1 to 4 bytes with nothing between them, and with a
// loop that goes back into the first 5 bytes. None is called while its signal is blocked.
#include "hostile.h"

__asm__(
    ".text\n"
    ".macro short name\n.globl \\name\n.type \\name, @function\n\\name:\n.endm\n"
    ".macro end name\n.size \\name, . - \\name\n.endm\n"
    ".p2align 4\n"
    "short one\n ret\nend one\n"
    "short two\n rep ret\nend two\n"
    "short three\n mov %edi, %eax\n ret\nend three\n"
    "short four\n mov %rdi, %rax\n ret\nend four\n"
    // The loop goes back to the second instruction, and there is no padding before it.
    "short sums\n xor %eax, %eax\n"
    "1: add %rdi, %rax\n dec %rdi\n jnz 1b\n ret\nend sums\n"
    // A function that lies in the way of a longer site.
    "short after\n lea 5(%rdi), %rax\n ret\nend after\n");

void one(void), two(void);
int three(int);
long four(long), sums(long), after(long);

static atomic_ullong of_four, of_sums;

static void* Work(void* unused) {
  unsigned long long count = 0;
  while (!Over()) {
    for (int i = 1; i < 50; ++i) {
      one();
      two();
      CHECK(three(i) == i && four(-i) == -i);
      CHECK(sums(i) == (long)i * (i + 1) / 2);
      CHECK(after(i) == i + 5);
    }
    count += 49;
  }
  atomic_fetch_add(&calls, count);
  atomic_fetch_add(&of_four, count);
  atomic_fetch_add(&of_sums, count);
  return unused;
}

int main(int argc, char** argv) {
  Begin(argc, argv);
  RunThreads(Work);
  Report("one");
  printf("calls four %llu\ncalls sums %llu\n", (unsigned long long)of_four,
         (unsigned long long)of_sums);
  return 0;
}
