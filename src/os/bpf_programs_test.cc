#include "os/bpf_programs.h"

#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "os/file.h"

namespace stackreel::os {
namespace {

// r0 = 0; exit: a filter that lets nothing pass, attached nowhere. -1 where this is not allowed.
int LoadProgram(const char* name) {
  const std::array<struct bpf_insn, 2> code = {{
      {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0},
      {.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0},
  }};
  union bpf_attr attr = {};
  attr.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
  attr.insns = reinterpret_cast<uintptr_t>(code.data());
  attr.insn_cnt = code.size();
  attr.license = reinterpret_cast<uintptr_t>("Dual MIT/GPL");
  std::strncpy(attr.prog_name, name, sizeof(attr.prog_name) - 1);
  return static_cast<int>(syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr)));
}

TEST(ReadBpfPrograms, FindsOneWhileItIsLoaded) {
  const auto find = [](const std::vector<BpfProgram>& programs) {
    return std::ranges::find(programs, "stackreel_t", &BpfProgram::name);
  };
  Fd loaded(LoadProgram("stackreel_t"));
  if (loaded.get() < 0) GTEST_SKIP() << "no right to load a BPF program: " << std::strerror(errno);
  const auto programs = ReadBpfPrograms();
  ASSERT_TRUE(programs.has_value()) << programs.error().ToString();
  const auto found = find(*programs);
  ASSERT_NE(found, programs->end());
  EXPECT_NE(found->id, 0u);
  EXPECT_NE(found->tag, (std::array<uint8_t, 8>{}));
  for (const BpfProgram::Code& code : found->code) EXPECT_GT(code.size, 0u);
}

TEST(ReadBpfPrograms, SaysWhenThisUserMayNot) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    if (geteuid() == 0 && setresuid(kNobody, kNobody, kNobody) != 0) _exit(2);
    const auto programs = ReadBpfPrograms();
    _exit(!programs && !programs.error().message.empty() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace stackreel::os
