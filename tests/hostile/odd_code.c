// Functions that are hard to patch: tiny ones, jumps and jump tables that lead into the first
// bytes, tail calls, results in flags. Patched or refused, all must go on giving the same.
#include "hostile.h"

__asm__(
    ".text\n"
    ".macro function name\n.globl \\name\n.type \\name, @function\n.p2align 4\n\\name:\n.endm\n"
    ".macro end name\n.size \\name, . - \\name\n.endm\n"
    // 1 … 5 bytes
    "function tiny1\n ret\nend tiny1\n"
    "function tiny2\n rep ret\nend tiny2\n"
    "function tiny3\n xor %eax, %eax\n ret\nend tiny3\n"
    "function tiny4\n mov %rdi, %rax\n ret\nend tiny4\n"
    "function tiny5\n lea 1(%rdi), %rax\n ret\nend tiny5\n"
    // no padding between two tiny ones
    ".globl pair_a\n.type pair_a, @function\n.p2align 4\npair_a:\n mov %edi, %eax\n ret\n"
    ".size pair_a, . - pair_a\n"
    ".globl pair_b\n.type pair_b, @function\npair_b:\n xor %eax, %eax\n ret\n"
    ".size pair_b, . - pair_b\n"
    // the loop goes back to the second instruction, 3 bytes behind the start
    "function loop_inside\n xor %eax, %eax\n nop\n"
    "1: add %rdi, %rax\n dec %rdi\n jnz 1b\n ret\nend loop_inside\n"
    // the loop goes back to the first byte, with something in the red zone
    "function loop_to_start\n add %rdi, %rsi\n mov %rsi, -8(%rsp)\n dec %rdi\n jnz loop_to_start\n"
    " mov -8(%rsp), %rax\n ret\nend loop_to_start\n"
    // an entry of the jump table is 2 bytes behind the start
    "function table_inside\n mov %edi, %eax\n"
    "2: cmp $3, %eax\n ja 5f\n lea 9f(%rip), %rdx\n movslq (%rdx,%rax,4), %rcx\n"
    " add %rdx, %rcx\n jmp *%rcx\n"
    "3: mov $9, %eax\n jmp 2b\n4: mov $30, %eax\n ret\n5: mov $50, %eax\n ret\n"
    "end table_inside\n.section .rodata\n.p2align 2\n"
    "9: .long 3b - 9b, 4b - 9b, 5b - 9b, 2b - 9b\n.text\n"
    // another function jumps into the first bytes
    "function entered_from_outside\n mov $1, %eax\n.globl entered_at\nentered_at:\n"
    " add %edi, %eax\n ret\nend entered_from_outside\n"
    "function enters_inside\n mov $100, %eax\n jmp entered_at\nend enters_inside\n"
    // tail calls: a → b → c, each having changed its argument
    "function tail_c\n lea 1000(%rdi), %rax\n ret\nend tail_c\n"
    "function tail_b\n add $10, %rdi\n jmp tail_c\nend tail_b\n"
    "function tail_a\n add $1, %rdi\n jmp tail_b\nend tail_a\n"
    // the result is in the carry flag
    "function is_below\n cmp %rsi, %rdi\n mov %rdi, %rdi\n ret\nend is_below\n"
    // flags are an argument; r10 and r11 are one each
    "function adds_with_carry\n adc %r11, %r10\n mov %r10, %rax\n nopl 0(%rax)\n ret\n"
    "end adds_with_carry\n"
    // a call within the first bytes, and one that reads its own return address
    "function calls_first\n call tiny4\n inc %rax\n ret\nend calls_first\n"
    "function gets_ip\n call 6f\n6: pop %rax\n lea gets_ip(%rip), %rcx\n sub %rcx, %rax\n ret\n"
    "end gets_ip\n"
    // loop and jrcxz at the start
    "function short_branches\n mov %rdi, %rcx\n jrcxz 7f\n6: inc %rax\n loop 6b\n7: ret\n"
    "end short_branches\n");

long tiny1(void), tiny2(void), tiny3(long), tiny4(long), tiny5(long);
int pair_a(int), pair_b(int);
long loop_inside(long), loop_to_start(long, long);
int table_inside(int), entered_from_outside(int), enters_inside(int);
long tail_a(long), tail_b(long), tail_c(long), calls_first(long), gets_ip(void);

static int IsBelow(long a, long b) {
  unsigned char carry;
  __asm__ volatile("call is_below; setc %0" : "=r"(carry), "+D"(a), "+S"(b)::"cc", "memory");
  return carry;
}
static long AddsWithCarry(long a, long b, int carry) {
  register long r10 __asm__("r10") = a;
  register long r11 __asm__("r11") = b;
  long result;
  // bt puts bit 0 into the carry flag
  __asm__ volatile("bt $0, %3; call adds_with_carry"
                   : "=&a"(result), "+r"(r10), "+r"(r11)
                   : "r"(carry)
                   : "cc", "memory");
  return result;
}
static long ShortBranches(long n) {
  long result = 5;
  __asm__ volatile("call short_branches" : "+a"(result), "+D"(n)::"rcx", "cc", "memory");
  return result;
}

static void* Work(void* unused) {
  unsigned long long count = 0;
  while (!Over()) {
    for (int i = 1; i < 200; ++i) {
      tiny1();
      tiny2();
      CHECK(tiny3(i) == 0 && tiny4(i) == i && tiny5(i) == i + 1);
      CHECK(pair_a(i) == i && pair_b(i) == 0);
      CHECK(loop_inside(i) == (long)i * (i + 1) / 2);
      CHECK(loop_to_start(i, 3) == 3 + (long)i * (i + 1) / 2);
      CHECK(table_inside(0) == 50 && table_inside(1) == 30 && table_inside(2) == 50);
      CHECK(table_inside(7) == 50);
      CHECK(entered_from_outside(i) == i + 1 && enters_inside(i) == i + 100);
      CHECK(tail_a(i) == i + 1011 && tail_b(i) == i + 1010 && tail_c(i) == i + 1000);
      CHECK(IsBelow(i, i + 1) == 1 && IsBelow(i, i) == 0);
      CHECK(AddsWithCarry(i, 2, 1) == i + 3 && AddsWithCarry(i, 2, 0) == i + 2);
      CHECK(calls_first(i) == i + 1 && gets_ip() == 5);
      CHECK(ShortBranches(0) == 5 && ShortBranches(i) == 5 + i);
    }
    count += 199 * 3;
  }
  atomic_fetch_add(&calls, count);
  return unused;
}

int main(int argc, char** argv) {
  Begin(argc, argv);
  RunThreads(Work);
  Report("tail_c");
  return 0;
}
