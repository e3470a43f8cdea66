#include "os/bpf_programs.h"

#include <fmt/format.h>
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "os/file.h"

namespace stackreel::os {

namespace {

// So many functions of one program are asked for at most (the kernel's BPF_MAX_SUBPROGS is 256).
constexpr uint32_t kMaxFunctions = 1024;

long Bpf(int command, union bpf_attr& attr) {
  return syscall(SYS_bpf, command, &attr, sizeof(attr));
}

// Of bpf_prog_info. False if the kernel does not tell.
bool ReadInfo(int fd, struct bpf_prog_info& info) {
  union bpf_attr attr = {};
  attr.info.bpf_fd = static_cast<uint32_t>(fd);
  attr.info.info_len = sizeof(info);
  attr.info.info = reinterpret_cast<uintptr_t>(&info);
  return Bpf(BPF_OBJ_GET_INFO_BY_FD, attr) == 0;
}

std::optional<BpfProgram> ReadProgram(uint32_t id) {
  union bpf_attr attr = {};
  attr.prog_id = id;
  const long opened = Bpf(BPF_PROG_GET_FD_BY_ID, attr);
  if (opened < 0) return std::nullopt;
  const Fd fd(static_cast<int>(opened));
  // First how many functions it has, then where they are.
  struct bpf_prog_info counts = {};
  if (!ReadInfo(fd.get(), counts)) return std::nullopt;
  const uint32_t functions =
      std::min({counts.nr_jited_ksyms, counts.nr_jited_func_lens, kMaxFunctions});
  std::vector<uint64_t> addresses(functions);
  std::vector<uint32_t> sizes(functions);
  struct bpf_prog_info info = {};
  info.nr_jited_ksyms = info.nr_jited_func_lens = functions;
  info.jited_ksyms = reinterpret_cast<uintptr_t>(addresses.data());
  info.jited_func_lens = reinterpret_cast<uintptr_t>(sizes.data());
  if (!ReadInfo(fd.get(), info)) return std::nullopt;
  BpfProgram program;
  program.id = id;
  std::copy_n(info.tag, program.tag.size(), program.tag.begin());
  program.name.assign(info.name, strnlen(info.name, sizeof(info.name)));
  for (uint32_t i = 0; i < functions; ++i) {
    if (addresses[i] != 0 && sizes[i] != 0) program.code.push_back({addresses[i], sizes[i]});
  }
  return program;
}

}  // namespace

Result<std::vector<BpfProgram>> ReadBpfPrograms() {
  std::vector<BpfProgram> programs;
  union bpf_attr attr = {};
  while (Bpf(BPF_PROG_GET_NEXT_ID, attr) == 0) {
    const uint32_t id = attr.next_id;
    if (auto program = ReadProgram(id)) programs.push_back(std::move(*program));
    attr = {};
    attr.start_id = id;
  }
  if (errno == ENOENT) return programs;  // there is no next one
  const std::string why = std::strerror(errno);
  if (errno == EPERM || errno == EACCES) {
    return Fail(ErrorKind::kPermission, fmt::format("bpf(2) refused: {}", why));
  }
  return Fail(ErrorKind::kUnsupported, fmt::format("bpf(2): {}", why));
}

}  // namespace stackreel::os
