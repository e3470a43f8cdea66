// RoundProcessor: what was there before a file begins.
#include <sys/mman.h>

#include <utility>

#include "os/bpf_programs.h"
#include "os/file.h"
#include "os/pointer_authentication.h"
#include "os/proc.h"
#include "record/records.h"
#include "record/round_processor.h"

namespace stackreel::record {

using perfdata::RecordType;

Status RoundProcessor::EmitSynthesized(const perfdata::Record& record) {
  session_.Apply(record);
  Observe(record);
  return file_->WriteRecord(record);
}

// Mappings may be read while programs run: records of what changes them meanwhile say the same
// again. A key that changes before its thread is read would be told of the time before, too.
void RoundProcessor::ReadKeysOfThreads() {
  if (options_.masks != os::MaskRoute::kRecords) return;
  for (const uint32_t pid : DescribedProcesses()) {
    for (const uint32_t tid : os::ListThreads(pid)) {
      if (const auto said = options_.ptr_auth(pid, tid)) keys_of_threads_[tid] = *said;
    }
  }
}

std::vector<uint32_t> RoundProcessor::DescribedProcesses() const {
  return options_.all_processes ? os::ListProcesses() : options_.pids;
}

Status RoundProcessor::Synthesize() {
  const EmitRecord emit = [this](const perfdata::Record& record) {
    perfdata::Record copy = record;
    auto* mmap = std::get_if<perfdata::Mmap2>(&copy.body);
    const BuildId vdso = mmap != nullptr && mmap->filename == "[vdso]"
                             ? vdsos_.IdAt(mmap->pid, mmap->addr, mmap->len)
                             : BuildId();
    if (!vdso.empty()) {
      mmap->build_id = vdso;
      mmap->maj = mmap->min = 0;
      mmap->ino = 0;
      copy.misc |= perfdata::kMiscMmapBuildId;
    }
    return EmitSynthesized(copy);
  };
  TRY(EmitKernel(emit));
  const std::vector<uint32_t> pids = DescribedProcesses();
  ProcessFacts wanted = {options_.data_mappings, os::LearnPointerAuthentication(), {}};
  if (options_.masks == os::MaskRoute::kRecords) {
    wanted.ptr_auth = [&](uint32_t pid, uint32_t tid) -> Result<os::PointerAuthentication> {
      const auto known = keys_of_threads_.find(tid);
      return known != keys_of_threads_.end() ? known->second : options_.ptr_auth(pid, tid);
    };
  }
  for (const uint32_t pid : pids) {
    TRY_ASSIGN(const Unread unread, SynthesizeProcess(pid, wanted, build_ids_, emit));
    if (unread.mappings) counters_.Add("record.maps_not_readable");
    if (unread.masks) counters_.Add("record.masks_not_readable");
  }
  keys_of_threads_.clear();
  TRY(EmitGroups(pids, emit));
  TRY(file_->WriteRecord(MakeRecord(RecordType::kFinishedInit, 0, perfdata::FinishedInit())));
  return file_->EndRound();
}

// The kernel, its modules and the BPF programs as they are now. Programs that this user may not see
// are in nobody's samples of his either.
Status RoundProcessor::EmitKernel(const EmitRecord& emit) const {
  TRY(SynthesizeKernel(kernel_, emit));
  const auto programs = os::ReadBpfPrograms();
  return programs ? SynthesizeBpf(kernel_, *programs, emit) : Status();
}

// Namespaces and control groups as they are now.
Status RoundProcessor::EmitGroups(const std::vector<uint32_t>& pids, const EmitRecord& emit) const {
  for (const uint32_t pid : pids) {
    if (options_.namespaces) TRY(SynthesizeNamespaces(pid, emit));
  }
  if (!options_.cgroups) return {};
  return SynthesizeCgroups(os::ReadTextFile("/proc/mounts").value_or(""), emit);
}

// What is known of the mask of a process, by its first thread, and of others whose keys are not the
// same as that one's.
std::optional<perfdata::PacMask> RoundProcessor::MaskOfTask(const session::Process& process,
                                                            uint32_t tid) const {
  if (!process.mask) return std::nullopt;
  perfdata::PacMask mask = MaskOfMachine(process.pid, process.mask->insn, process.mask->data);
  const auto keys_of = [this](uint32_t of) {
    const session::Thread* thread = session_.FindThread(of);
    return thread != nullptr ? thread->enabled_keys : std::nullopt;
  };
  const auto keys = keys_of(tid);
  if (tid != process.pid && (!keys || keys == keys_of(process.pid))) return std::nullopt;
  if (process.mask->source != session::MaskSource::kKernel) return mask;
  mask.tid = tid;
  mask.enabled_keys = keys.value_or(0);
  mask.source = perfdata::PacMask::kKernelRecord;
  return mask;
}

// The state of all processes now, for the beginning of a further file.
Status RoundProcessor::EmitSnapshot() {
  const EmitRecord emit = [this](const perfdata::Record& record) {
    return file_->WriteRecord(record);
  };
  TRY(EmitKernel(emit));
  std::vector<uint32_t> pids;
  const std::lock_guard lock(tasks_mutex_);
  for (const auto& [tid, task] : tasks_) {
    const session::Process& process = session_.ProcessOf(task.pid);
    perfdata::Task fork;
    fork.pid = task.pid;
    fork.tid = tid;
    fork.ppid = fork.ptid = tid == task.pid ? process.ppid : task.pid;
    TRY(emit(MakeRecord(RecordType::kFork,
                        tid == task.pid ? uint16_t{perfdata::kMiscForkExec} : uint16_t{0}, fork)));
    TRY(emit(MakeRecord(RecordType::kComm, 0,
                        perfdata::Comm{.pid = task.pid, .tid = tid, .comm = task.comm})));
    if (const auto mask = MaskOfTask(process, tid)) TRY(emit(MakeMaskRecord(*mask)));
    if (tid != task.pid) continue;
    for (const session::AddressSpace::Entry& entry : process.maps->entries()) {
      const session::Module& module = session_.modules()[entry.value.module];
      perfdata::Mmap2 mmap;
      mmap.pid = mmap.tid = tid;
      mmap.addr = entry.start;
      mmap.len = entry.end - entry.start;
      mmap.pgoff = entry.value.offset.value;
      mmap.prot = entry.value.prot;
      mmap.flags = MAP_PRIVATE;
      mmap.filename = module.key.kind == session::ModuleKind::kVdso
                          ? "[vdso]"
                          : module.path() + (module.deleted ? " (deleted)" : "");
      uint16_t misc = static_cast<uint16_t>(perfdata::CpuMode::kUser);
      if (!module.key.build_id.empty()) {
        mmap.build_id = module.key.build_id;
        misc |= perfdata::kMiscMmapBuildId;
      }
      if (!entry.value.executable) misc |= perfdata::kMiscMmapData;
      TRY(emit(MakeRecord(RecordType::kMmap2, misc, std::move(mmap))));
    }
    pids.push_back(tid);
  }
  TRY(EmitGroups(pids, emit));
  return file_->EndRound();
}

}  // namespace stackreel::record
