#include <elfutils/libdwfl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <string>

#include "support/other_unwinders.h"
#include "unwind/x86_64/registers.h"

namespace stackreel {
namespace {

using unwind::x86_64::Cpu32;
using unwind::x86_64::Cpu64;

// What the callbacks of one Dwfl work on.
struct Current {
  const RecordedStack* stack = nullptr;
  std::vector<uint64_t> frames;
};

pid_t NextThread(Dwfl*, void* arg, void** thread_arg) {
  if (*thread_arg != nullptr) return 0;
  *thread_arg = arg;
  return static_cast<pid_t>(static_cast<Current*>(arg)->stack->tid);
}
bool GetThread(Dwfl*, pid_t, void* arg, void** thread_arg) {
  *thread_arg = arg;
  return true;
}
bool ReadMemory(Dwfl*, Dwarf_Addr address, Dwarf_Word* result, void* arg) {
  const RecordedStack& stack = *static_cast<Current*>(arg)->stack;
  *result = 0;
  const size_t size = stack.input.arch == unwind::Arch::kX86 ? 4 : 8;
  return ReadRecordedMemory(stack, address, result, size);
}
template <class Cpu>
bool SetRegistersOf(Dwfl_Thread* thread, const unwind::Registers& registers) {
  Dwarf_Word values[Cpu::kRegisters];
  for (unsigned i = 0; i < Cpu::kRegisters; ++i) {
    values[i] = registers.values[Cpu::kPerfOfDwarf[i]];
  }
  return dwfl_thread_state_registers(thread, 0, Cpu::kRegisters, values);
}
bool SetRegisters(Dwfl_Thread* thread, void* arg) {
  const RecordedStack& stack = *static_cast<Current*>(arg)->stack;
  if (stack.input.arch == unwind::Arch::kX86) {
    dwfl_thread_state_register_pc(thread, stack.input.registers.values[unwind::x86_64::kPerfIp]);
    return SetRegistersOf<Cpu32>(thread, stack.input.registers);
  }
  return SetRegistersOf<Cpu64>(thread, stack.input.registers);
}
int OnFrame(Dwfl_Frame* frame, void* arg) {
  auto* current = static_cast<Current*>(arg);
  Dwarf_Addr pc = 0;
  bool is_activation = false;
  if (!dwfl_frame_pc(frame, &pc, &is_activation)) return DWARF_CB_ABORT;
  if (current->frames.size() >= kMaxOtherFrames) return DWARF_CB_ABORT;
  current->frames.push_back(pc);
  return DWARF_CB_OK;
}

const Dwfl_Callbacks kModuleCallbacks = {
    .find_elf = dwfl_build_id_find_elf,
    .find_debuginfo = dwfl_standard_find_debuginfo,
    .section_address = dwfl_offline_section_address,
    .debuginfo_path = nullptr,
};
const Dwfl_Thread_Callbacks kThreadCallbacks = {
    .next_thread = NextThread,
    .get_thread = GetThread,
    .memory_read = ReadMemory,
    .set_initial_registers = SetRegisters,
    .detach = nullptr,
    .thread_detach = nullptr,
};

// A Dwfl with the modules of one version of maps.
struct Process {
  Current current;
  Dwfl* dwfl = nullptr;
  ~Process() {
    if (dwfl != nullptr) dwfl_end(dwfl);
  }
};

class LibdwUnwinder : public OtherUnwinder {
 public:
  ~LibdwUnwinder() override {
    if (!vdso_path_.empty()) unlink(vdso_path_.c_str());
  }

  std::vector<uint64_t> Unwind(const RecordedStack& stack) override {
    Process& process = ProcessOf(stack);
    if (process.dwfl == nullptr) return {};
    process.current.stack = &stack;
    process.current.frames.clear();
    dwfl_getthread_frames(process.dwfl, static_cast<pid_t>(stack.tid), OnFrame, &process.current);
    return process.current.frames;
  }

 private:
  Process& ProcessOf(const RecordedStack& stack) {
    auto& process = processes_[stack.maps->maps.version];
    if (process) return *process;
    if (processes_.size() > 16) {  // Dwfls are big
      processes_.clear();
      return ProcessOf(stack);
    }
    process = std::make_unique<Process>();
    process->current.stack = &stack;
    process->dwfl = dwfl_begin(&kModuleCallbacks);
    dwfl_report_begin(process->dwfl);
    std::set<std::pair<const RecordedFile*, uint64_t>> reported;
    const auto& mappings = stack.maps->mappings;
    for (size_t i = 0; i < mappings.size(); ++i) {
      const RecordedFile* file = mappings[i].file;
      const uint64_t bias = stack.maps->maps.mappings[i].bias;
      if (file == nullptr || !mappings[i].executable) continue;
      if (!reported.emplace(file, bias).second) continue;
      const std::string path = file->path == "[vdso]" ? VdsoPath(*file) : file->path;
      // Modules of one name are one module, and node maps its own file twice.
      const std::string name = file->path + "@" + std::to_string(bias);
      dwfl_report_elf(process->dwfl, name.c_str(), path.c_str(), -1, bias, false);
    }
    dwfl_report_end(process->dwfl, nullptr, nullptr);
    dwfl_attach_state(process->dwfl, nullptr, static_cast<pid_t>(stack.pid), &kThreadCallbacks,
                      &process->current);
    return *process;
  }

  // libdwfl opens modules by name only.
  const std::string& VdsoPath(const RecordedFile& file) {
    if (!vdso_path_.empty()) return vdso_path_;
    char path[] = "/tmp/compare_unwind_vdso.XXXXXX";
    const int fd = mkstemp(path);
    if (fd >= 0) {
      const ByteView bytes = file.bytes->bytes();
      if (write(fd, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
        std::perror("write of the vDSO");
      }
      close(fd);
      vdso_path_ = path;
    }
    return vdso_path_;
  }

  std::map<uint64_t, std::unique_ptr<Process>> processes_;
  std::string vdso_path_;
};

}  // namespace

std::unique_ptr<OtherUnwinder> MakeLibdwUnwinder() { return std::make_unique<LibdwUnwinder>(); }

}  // namespace stackreel
