#include "record/synthesize.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <tuple>

#include "elf/image.h"
#include "os/file.h"
#include "os/proc.h"
#include "perfdata/pac_mask.h"
#include "record/records.h"

namespace stackreel::record {

namespace {

using perfdata::Record;
using perfdata::RecordType;

constexpr uint16_t kMiscUser = static_cast<uint16_t>(perfdata::CpuMode::kUser);

// Synthesised records have a trailer of zeros: no time, so they come before all others.
Status EmitThread(uint32_t pid, uint32_t tid, const os::ProcStatus& status,
                  const EmitRecord& emit) {
  const bool leader = pid == tid;
  perfdata::Task fork;
  fork.pid = pid;
  fork.tid = tid;
  fork.ppid = fork.ptid = leader ? status.ppid : pid;
  // FORK_EXEC: its parent's mappings are not its own.
  TRY(emit(MakeRecord(RecordType::kFork, leader ? uint16_t{perfdata::kMiscForkExec} : uint16_t{0},
                      fork)));
  return emit(MakeRecord(RecordType::kComm, 0,
                         perfdata::Comm{.pid = pid, .tid = tid, .comm = status.comm}));
}

Status EmitMapping(uint32_t pid, const os::ProcMapping& mapping, BuildIdReader& build_ids,
                   const EmitRecord& emit) {
  perfdata::Mmap2 mmap;
  mmap.pid = mmap.tid = pid;
  mmap.addr = mapping.start;
  mmap.len = mapping.end - mapping.start;
  mmap.pgoff = mapping.offset;
  mmap.prot = mapping.prot;
  mmap.flags = mapping.flags;
  mmap.filename = MappingName(mapping.path);
  uint16_t misc = kMiscUser;
  if ((mapping.prot & PROT_EXEC) == 0) misc |= perfdata::kMiscMmapData;
  const auto id = mapping.path.starts_with('/') && (mapping.prot & PROT_EXEC) != 0
                      ? build_ids.Read(pid, mapping.path)
                      : std::nullopt;
  if (id) {
    mmap.build_id = *id;
    misc |= perfdata::kMiscMmapBuildId;
  } else {
    mmap.maj = mapping.maj;
    mmap.min = mapping.min;
    mmap.ino = mapping.ino;
  }
  return emit(MakeRecord(RecordType::kMmap2, misc, std::move(mmap)));
}

}  // namespace

std::optional<BuildId> BuildIdReader::Read(uint32_t pid, const std::string& path) {
  const std::string real = pid == 0 ? path : fmt::format("/proc/{}/root{}", pid, path);
  struct stat info = {};
  if (stat(real.c_str(), &info) != 0) return std::nullopt;
  const uint64_t file = static_cast<uint64_t>(info.st_dev) * 0x1'0000'0001 ^ info.st_ino;
  const auto [it, is_new] = known_.try_emplace({path, file});
  if (is_new) {
    if (const auto bytes = os::MapFile(real)) {
      if (const auto image = elf::Image::Parse((*bytes)->bytes()))
        it->second = image->ReadBuildId();
    }
  }
  return it->second;
}

std::string MappingName(const std::string& proc_path) {
  return proc_path.empty() ? "//anon" : proc_path;
}

namespace {

// The masks of a process's threads, which come in order, the first one first.
class MaskSynthesis {
 public:
  MaskSynthesis(uint32_t pid, const ProcessFacts& wanted) : pid_(pid), wanted_(wanted) {}

  // After the thread's FORK, which makes it known, and before anything is found in its mappings.
  Status Emit(uint32_t tid, const EmitRecord& emit) {
    if (wanted_.ptr_auth) {
      const auto said = wanted_.ptr_auth(pid_, tid);
      if (said) return EmitSaid(tid, *said, emit);
      // A thread that ends meanwhile has nothing left to say.
      unread_ = unread_ || said.error().kind != ErrorKind::kNotFound;
    }
    if (tid != pid_ || !wanted_.pointer_authentication) return {};
    const auto mask =
        MaskOfProgram(pid_, fmt::format("/proc/{}/exe", pid_), *wanted_.pointer_authentication);
    // Kernel threads run no program, those of other users are not ours to read.
    return mask ? emit(*mask) : Status();
  }
  [[nodiscard]] bool unread() const { return unread_; }

 private:
  Status EmitSaid(uint32_t tid, const os::PointerAuthentication& said, const EmitRecord& emit) {
    perfdata::PacMask mask;
    mask.pid = pid_;
    mask.tid = tid;
    mask.enabled_keys = said.enabled_keys.value_or(0);
    mask.insn_mask = said.insn_mask;
    mask.data_mask = said.data_mask;
    mask.source = perfdata::PacMask::kProcFile;
    const auto values = [](const perfdata::PacMask& of) {
      return std::tuple(of.enabled_keys, of.insn_mask, of.data_mask);
    };
    if (tid != pid_ && leader_.pid == pid_ && values(leader_) == values(mask)) return {};
    if (tid == pid_) leader_ = mask;
    return emit(MakeMaskRecord(mask));
  }

  uint32_t pid_;
  const ProcessFacts& wanted_;
  perfdata::PacMask leader_;  // of the first thread, as the kernel said; of process 0: it did not
  bool unread_ = false;
};

}  // namespace

Result<Unread> SynthesizeProcess(uint32_t pid, const ProcessFacts& wanted, BuildIdReader& build_ids,
                                 const EmitRecord& emit) {
  Unread unread;
  MaskSynthesis masks(pid, wanted);
  for (const uint32_t tid : os::ListThreads(pid)) {
    const auto status = os::ReadProcStatus(pid, tid);
    if (!status) continue;  // it has ended
    TRY(EmitThread(pid, tid, *status, emit));
    TRY(masks.Emit(tid, emit));
    if (tid != pid) continue;
    const auto maps = os::ReadProcMaps(pid);
    if (!maps) {
      unread.mappings = maps.error().kind == ErrorKind::kPermission;
      continue;
    }
    for (const os::ProcMapping& mapping : *maps) {
      if (!wanted.data_mappings && (mapping.prot & PROT_EXEC) == 0) continue;
      TRY(EmitMapping(pid, mapping, build_ids, emit));
    }
  }
  unread.masks = masks.unread();
  return unread;
}

perfdata::Record MakeMaskRecord(const perfdata::PacMask& mask) {
  return MakeRecord(RecordType::kEventUpdate, 0, perfdata::MakePacMaskUpdate(mask, kNativeEndian));
}

perfdata::PacMask MaskOfMachine(uint32_t pid, uint64_t insn_mask, uint64_t data_mask) {
  perfdata::PacMask mask;
  mask.pid = mask.tid = pid;
  // Which keys are on, a process can only ask of itself (PR_PAC_GET_ENABLED_KEYS).
  mask.enabled_keys = 0;
  mask.insn_mask = insn_mask;
  mask.data_mask = data_mask;
  mask.source = insn_mask == 0 && data_mask == 0 ? perfdata::PacMask::kProgramOf32Bits
                                                 : perfdata::PacMask::kAskedOfCpu;
  return mask;
}

std::optional<perfdata::Record> MaskOfProgram(uint32_t pid, const std::string& program,
                                              const os::PointerAuthentication& machine) {
  const auto bytes = os::MapFile(program);
  if (!bytes) return std::nullopt;
  const auto image = elf::Image::Parse((*bytes)->bytes());
  if (!image) return std::nullopt;
  return image->elf_class() == elf::Class::k64
             ? MakeMaskRecord(MaskOfMachine(pid, machine.insn_mask, machine.data_mask))
             : MakeMaskRecord(MaskOfMachine(pid, 0, 0));
}

Status SynthesizeKernel(const KernelImage& kernel, const EmitRecord& emit) {
  constexpr auto kMiscKernel = static_cast<uint16_t>(perfdata::CpuMode::kKernel);
  constexpr auto kKernelPid = static_cast<uint32_t>(-1);
  if (kernel.text_start != 0) {
    perfdata::Mmap mmap;
    mmap.pid = kKernelPid;
    mmap.addr = kernel.text_start;
    mmap.len = kernel.text_end - kernel.text_start;
    // Where the reference symbol is now: a reader learns from it how far the kernel was moved.
    mmap.pgoff = kernel.text_start;
    mmap.filename = "[kernel.kallsyms]" + kernel.reference_symbol;
    TRY(emit(MakeRecord(RecordType::kMmap, kMiscKernel, std::move(mmap))));
  }
  for (const KernelModule& module : kernel.modules) {
    perfdata::Mmap2 mmap;
    mmap.pid = kKernelPid;
    mmap.addr = module.address;
    mmap.len = module.size;
    mmap.prot = PROT_READ | PROT_EXEC;
    mmap.flags = MAP_PRIVATE;
    mmap.filename = module.path;
    uint16_t misc = kMiscKernel;
    if (module.build_id) {
      mmap.build_id = *module.build_id;
      misc |= perfdata::kMiscMmapBuildId;
    }
    TRY(emit(MakeRecord(RecordType::kMmap2, misc, std::move(mmap))));
  }
  return {};
}

}  // namespace stackreel::record
