#include "os/seccomp_filter.h"

#include <gtest/gtest.h>
#include <linux/audit.h>
#include <sys/syscall.h>

#include <cstddef>

namespace stackreel::os {
namespace {

constexpr uint32_t kNumber = offsetof(seccomp_data, nr);
constexpr uint32_t kThirdArgument = offsetof(seccomp_data, args[2]);

seccomp_data Call(int number, uint64_t third = 0) {
  seccomp_data call = {};
  call.nr = number;
  call.arch = AUDIT_ARCH_X86_64;
  call.args[2] = third;
  return call;
}

// As a sandbox is written: kills at `number`, and allows the rest.
SeccompFilter KillsAt(uint32_t number) {
  return {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kNumber),
          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
}

TEST(SeccompFilter, FindsWhatItWouldDoToACall) {
  const SeccompFilter filter = KillsAt(SYS_memfd_create);
  EXPECT_EQ(RunSeccompFilter(filter, Call(SYS_memfd_create)), SECCOMP_RET_KILL_PROCESS);
  EXPECT_EQ(RunSeccompFilter(filter, Call(SYS_mmap)), SECCOMP_RET_ALLOW);
}

TEST(SeccompFilter, LooksAtArguments) {
  // Memory that is written and executed: by a mask, in scratch memory and registers.
  const SeccompFilter filter = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kThirdArgument),
      BPF_STMT(BPF_ST, 3),
      BPF_STMT(BPF_LDX | BPF_W | BPF_MEM, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_IMM, 6),
      BPF_STMT(BPF_ALU | BPF_AND | BPF_X, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 6, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP | 5),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1),
  };
  EXPECT_EQ(RunSeccompFilter(filter, Call(SYS_mmap, 7)), SECCOMP_RET_TRAP) << "without its data";
  EXPECT_EQ(RunSeccompFilter(filter, Call(SYS_mmap, 5)), SECCOMP_RET_ERRNO);
}

TEST(SeccompFilter, OfSeveralTheStrictestDecides) {
  const std::vector<SeccompFilter> filters = {KillsAt(SYS_close), KillsAt(SYS_mmap)};
  EXPECT_TRUE(IsHarmful(StrictestAction(filters, Call(SYS_close))));
  EXPECT_TRUE(IsHarmful(StrictestAction(filters, Call(SYS_mmap))));
  EXPECT_EQ(StrictestAction(filters, Call(SYS_munmap)), SECCOMP_RET_ALLOW);
  EXPECT_FALSE(IsHarmful(SECCOMP_RET_ERRNO));
}

TEST(SeccompFilter, WhatTheKernelWouldNotLetInKills) {
  EXPECT_EQ(RunSeccompFilter({}, Call(SYS_mmap)), SECCOMP_RET_KILL_PROCESS);
  const SeccompFilter beyond = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, sizeof(seccomp_data)),
                                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  EXPECT_EQ(RunSeccompFilter(beyond, Call(SYS_mmap)), SECCOMP_RET_KILL_PROCESS);
  const SeccompFilter endless = {BPF_STMT(BPF_JMP | BPF_JA, UINT32_MAX - 1),
                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  EXPECT_EQ(RunSeccompFilter(endless, Call(SYS_mmap)), SECCOMP_RET_KILL_PROCESS);
}

}  // namespace
}  // namespace stackreel::os
