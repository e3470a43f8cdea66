// What bpf(2) tells of the programs that are loaded into the kernel.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace stackreel::os {

struct BpfProgram {
  // Machine code of the program or of one of its functions.
  struct Code {
    uint64_t address = 0;
    uint32_t size = 0;
    friend bool operator==(const Code&, const Code&) = default;
  };
  uint32_t id = 0;
  std::array<uint8_t, 8> tag = {};
  std::string name;        // up to 15 letters; may be empty
  std::vector<Code> code;  // empty where it is interpreted, or this user may not see addresses
};

// Those loaded now, by id (linux/bpf.h: BPF_PROG_GET_NEXT_ID, BPF_OBJ_GET_INFO_BY_FD). One that is
// unloaded meanwhile is left out. kPermission without CAP_SYS_ADMIN; kUnsupported where the kernel
// has no bpf(2).
Result<std::vector<BpfProgram>> ReadBpfPrograms();

}  // namespace stackreel::os
