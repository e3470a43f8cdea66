#include "session/session.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "base/check.h"
#include "perfdata/pac_mask.h"
#include "session/build_id_index.h"
#include "session/limits.h"
#include "session/pointer_mask.h"

namespace stackreel::session {
namespace {

using perfdata::CpuMode;
using perfdata::RecordType;

constexpr uint32_t kKernelPid = UINT32_MAX;
// Threads that have exited are kept for late samples, up to this many.
constexpr size_t kExitedKept = 4096;
constexpr uint64_t kHugePage = uint64_t{2} << 20;

bool IsWanted(uint32_t type) {
  switch (static_cast<RecordType>(type)) {
    case RecordType::kMmap:
    case RecordType::kMmap2:
    case RecordType::kComm:
    case RecordType::kFork:
    case RecordType::kExit:
    case RecordType::kEventUpdate:  // may carry a mask
    case RecordType::kPtrAuth:
    case RecordType::kNamespaces:
    case RecordType::kKsymbol:
    case RecordType::kCgroup:
    case RecordType::kHeaderBuildId:
      return true;
      // BPF_EVENT has no address: what it loads is named by KSYMBOL records beside it. TEXT_POKE
      // changes instructions of the kernel, not what they are part of.
    default:
      return type == perfdata::kRecordTypePacMask;
  }
}

// uname -m → EM_* (elf.h).
uint16_t MachineOf(std::string_view arch) {
  if (arch == "x86_64" || arch == "amd64") return 62;
  if (arch.size() == 4 && arch[0] == 'i' && arch.ends_with("86")) return 3;
  if (arch == "aarch64" || arch == "arm64") return 183;
  if (arch.starts_with("arm")) return 40;
  if (arch.starts_with("ppc64")) return 21;
  if (arch.starts_with("ppc")) return 20;
  if (arch.starts_with("s390")) return 22;
  if (arch.starts_with("riscv")) return 243;
  if (arch.starts_with("mips")) return 8;
  if (arch.starts_with("loongarch")) return 258;
  return 0;
}

// Both kinds of MMAP record.
struct MmapEvent {
  uint32_t pid = 0;
  uint64_t addr = 0, len = 0, pgoff = 0;
  uint32_t prot = 0, flags = 0;
  bool executable = false;
  BuildId build_id;
  std::string_view filename;

  [[nodiscard]] Avma start() const { return Avma(addr); }
  [[nodiscard]] Avma end() const { return Avma(addr + std::min(len, UINT64_MAX - addr)); }
};

bool StripPrefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

}  // namespace

struct Session::State {
  State(const perfdata::Features& features_in, Endian endian_in, Counters& counters_in)
      : features(features_in), endian(endian_in), counters(counters_in), build_ids(features_in) {}

  const perfdata::Features& features;
  Endian endian;
  Counters& counters;
  BuildIdIndex build_ids;
  StringInterner strings;

  std::unordered_map<uint32_t, std::unique_ptr<Process>> processes;
  std::unordered_map<uint32_t, Thread> threads;  // by tid
  std::deque<uint32_t> exited;                   // tids, oldest first
  AddressSpacePtr kernel_maps = std::make_shared<AddressSpace>();
  AddressSpacePtr guest_kernel_maps = std::make_shared<AddressSpace>();
  std::optional<AddressSpace::Entry> kernel;  // the kernel proper, as it was mapped last
  std::unordered_map<uint32_t, std::unique_ptr<Process>> guest_processes;
  std::unordered_map<uint64_t, std::string> cgroups;

  std::vector<Module> modules;
  std::map<std::pair<ModuleKey, bool>, ModuleId> module_ids;
  std::vector<std::optional<std::vector<LoadSegment>>> segments;  // by ModuleId
  std::function<std::vector<LoadSegment>(const Module&)> segment_loader;

  // The maps for changing: copied first if anyone else holds them.
  static AddressSpace& Writable(AddressSpacePtr& maps) {
    if (maps.use_count() != 1) maps = std::make_shared<AddressSpace>(*maps);
    return const_cast<AddressSpace&>(*maps);  // all are made non-const
  }

  void OnMask(Session& session, const perfdata::PacMask& mask);
  void OnMmap(Session& session, const MmapEvent& mmap, CpuMode mode);
  void OnUserMmap(Session& session, const MmapEvent& mmap, Process& process);
  void OnKernelMmap(Session& session, const MmapEvent& mmap, bool guest);
  void OnComm(Session& session, const perfdata::Comm& comm, bool exec);
  void OnFork(Session& session, const perfdata::Task& task, bool exec);
  void OnExit(const perfdata::Task& task);
  void OnNamespaces(Session& session, const perfdata::Namespaces& namespaces);
  void OnKsymbol(Session& session, const perfdata::Ksymbol& symbol);
  void OnBuildId(const perfdata::HeaderBuildId& id);
  void Forget(uint32_t tid);
};

Session::Session(const perfdata::Features& features, Endian endian, Counters& counters)
    : state_(std::make_unique<State>(features, endian, counters)) {
  // The idle threads are never announced.
  Thread& idle = ThreadOf(0, 0);
  idle.comm = state_->strings.Intern("swapper");
  idle.comm_set = true;
}
Session::~Session() = default;

void Session::Apply(const perfdata::TimedRecord& record, const perfdata::RecordContext& context) {
  if (!IsWanted(record.raw.type)) return;
  // Where its event did not ask for it, another kernel may mean another thing by the number.
  if (record.raw.record_type() == RecordType::kPtrAuth && context.attr != nullptr &&
      !context.attr->Has(perfdata::kAttrPtrAuth)) {
    state_->counters.Add("session.mask_not_asked_for");
    return;
  }
  Result<perfdata::Record> decoded = perfdata::DecodeRecord(record.raw, context);
  if (!decoded) {
    state_->counters.Add("session.bad_record");
    return;
  }
  Apply(*decoded);
}

void Session::Apply(const perfdata::Record& record) {
  const auto mode = static_cast<CpuMode>(record.misc & perfdata::kMiscCpuModeMask);
  if (const auto* mmap = std::get_if<perfdata::Mmap>(&record.body)) {
    // MMAP does not say what the mapping may do, but data mappings are flagged.
    const bool executable = (record.misc & perfdata::kMiscMmapData) == 0;
    state_->OnMmap(
        *this,
        {mmap->pid, mmap->addr, mmap->len, mmap->pgoff, 0, 0, executable, {}, mmap->filename},
        mode);
  } else if (const auto* mmap2 = std::get_if<perfdata::Mmap2>(&record.body)) {
    state_->OnMmap(*this,
                   {mmap2->pid, mmap2->addr, mmap2->len, mmap2->pgoff, mmap2->prot, mmap2->flags,
                    IsExecutable(mmap2->prot), mmap2->build_id, mmap2->filename},
                   mode);
  } else if (const auto* comm = std::get_if<perfdata::Comm>(&record.body)) {
    state_->OnComm(*this, *comm, (record.misc & perfdata::kMiscCommExec) != 0);
  } else if (const auto* task = std::get_if<perfdata::Task>(&record.body)) {
    if (record.type == static_cast<uint32_t>(RecordType::kFork)) {
      state_->OnFork(*this, *task, (record.misc & perfdata::kMiscForkExec) != 0);
    } else {
      state_->OnExit(*task);
    }
  } else if (const auto* namespaces = std::get_if<perfdata::Namespaces>(&record.body)) {
    state_->OnNamespaces(*this, *namespaces);
  } else if (const auto* symbol = std::get_if<perfdata::Ksymbol>(&record.body)) {
    state_->OnKsymbol(*this, *symbol);
  } else if (const auto* cgroup = std::get_if<perfdata::Cgroup>(&record.body)) {
    state_->cgroups[cgroup->id] = cgroup->path;
  } else if (const auto* id = std::get_if<perfdata::HeaderBuildId>(&record.body)) {
    state_->OnBuildId(*id);
  } else if (const auto* mask = std::get_if<perfdata::PacMask>(&record.body)) {
    state_->OnMask(*this, *mask);
  } else if (const auto* kernels = std::get_if<perfdata::PtrAuth>(&record.body)) {
    state_->OnMask(*this, perfdata::MaskOfRecord(*kernels, 0));
  } else if (const auto* update = std::get_if<perfdata::EventUpdate>(&record.body)) {
    if (const auto carried = perfdata::PacMaskOf(*update, state_->endian)) {
      state_->OnMask(*this, *carried);
    }
  }
}

void Session::State::OnMask(Session& session, const perfdata::PacMask& mask) {
  if (!processes.contains(mask.pid)) counters.Add("session.mask_of_unknown_process");
  const bool of_kernel = perfdata::IsOfKernel(mask.source);
  if (of_kernel) session.ThreadOf(mask.pid, mask.tid).enabled_keys = mask.enabled_keys;
  Process& process = session.ProcessOf(mask.pid);
  // What the kernel said is not put right by what was only found out on one of its CPUs.
  if (process.mask && process.mask->source == MaskSource::kKernel && !of_kernel) return;
  process.mask = {mask.insn_mask, mask.data_mask,
                  of_kernel ? MaskSource::kKernel : MaskSource::kSideBand};
}

void Session::State::OnMmap(Session& session, const MmapEvent& mmap, CpuMode mode) {
  switch (mode) {
    case CpuMode::kKernel:
      OnKernelMmap(session, mmap, /*guest=*/false);
      return;
    case CpuMode::kGuestKernel:
      OnKernelMmap(session, mmap, /*guest=*/true);
      return;
    case CpuMode::kGuestUser:
      OnUserMmap(session, mmap, session.GuestProcessOf(mmap.pid));
      return;
    default:
      if (mmap.pid == kKernelPid) {
        OnKernelMmap(session, mmap, /*guest=*/false);
      } else {
        OnUserMmap(session, mmap, session.ProcessOf(mmap.pid));
      }
  }
}

void Session::State::OnUserMmap(Session& session, const MmapEvent& mmap, Process& process) {
  if (ReachesBeyondMemory(mmap.addr, mmap.len)) {
    counters.Add("session.bad_mapping");
    return;
  }
  ModuleName name = ClassifyMapping(mmap.filename, mmap.pid, mmap.executable, mmap.flags);
  if (process.exec_pending) {
    process.exec_pending = false;
    process.maps = std::make_shared<AddressSpace>();
  }
  // Text that was copied to huge pages: an anonymous mapping put over a part of a file's text holds
  // the same code. Elsewhere an anonymous mapping is memory of its own.
  if (name.key.kind == ModuleKind::kJit && mmap.addr % kHugePage == 0 &&
      mmap.len % kHugePage == 0 && mmap.len != 0) {
    const AddressSpace::Entry* under = process.maps->Find(mmap.start());
    if (under != nullptr && under->value.executable && mmap.end().value <= under->end &&
        modules[under->value.module].key.kind == ModuleKind::kFile) {
      counters.Add("session.huge_page_text");
      return;
    }
  }
  if (name.key.kind == ModuleKind::kFile) {
    name.key.build_id = mmap.build_id.empty() ? build_ids.Find(name.key.path) : mmap.build_id;
    // Where it is not known what the file is, the same path is another file in another namespace.
    if (name.key.build_id.empty()) name.key.mount_namespace = process.mount_namespace;
  }
  if (name.key.kind == ModuleKind::kVdso) {
    // The kernel calls them all one; perf calls that of 32-bit tasks so.
    if (mmap.end().value <= UINT32_MAX) name.key.path = "[vdso32]";
    name.key.build_id = mmap.build_id.empty() ? build_ids.Find(name.key.path) : mmap.build_id;
  }
  Mapping mapping;
  mapping.module = session.InternModule(name.key, name.deleted, mmap.pid);
  Module& module = modules[mapping.module];
  if (module.mount_namespace == 0) module.mount_namespace = process.mount_namespace;
  if (name.key.kind == ModuleKind::kJitDump) process.jit_dump = mapping.module;
  mapping.jit = name.key.kind == ModuleKind::kJit;
  mapping.offset = FileOffset(name.key.kind == ModuleKind::kVdso ? 0 : mmap.pgoff);
  mapping.prot = mmap.prot;
  mapping.executable = mmap.executable;
  Writable(process.maps).Assign(mmap.start(), mmap.end(), mapping);
}

void Session::State::OnKernelMmap(Session& session, const MmapEvent& mmap, bool guest) {
  AddressSpacePtr& maps = guest ? guest_kernel_maps : kernel_maps;
  std::string_view rest = mmap.filename;
  const bool is_kernel =
      guest ? StripPrefix(rest, "[guest.kernel.kallsyms") : StripPrefix(rest, "[kernel.kallsyms");
  ModuleKey key;
  key.path = std::string(mmap.filename);
  key.kind = ModuleKind::kKernelModule;
  if (is_kernel) {
    // "[kernel.kallsyms]_stext", "[guest.kernel.kallsyms.PID]_text"
    const size_t close = rest.find(']');
    rest = close == std::string_view::npos ? std::string_view() : rest.substr(close + 1);
    key.path.resize(key.path.size() - rest.size());
    key.kind = guest ? ModuleKind::kGuestKernel : ModuleKind::kKernel;
  }
  // Damaged: a module would lie over all of the kernel, a kernel not where its own symbol is.
  const bool is_bad = is_kernel ? mmap.pgoff != 0 && mmap.pgoff >= mmap.end().value
                                : mmap.len > kMostKernelModuleBytes;
  if (is_bad) {
    counters.Add("session.bad_kernel_mapping");
    return;
  }
  key.build_id = mmap.build_id.empty() ? build_ids.Find(key.path) : mmap.build_id;
  const ModuleId id = session.InternModule(key, /*deleted=*/false, /*pid=*/0);
  Module& module = modules[id];
  module.kernel_start = mmap.start();
  if (is_kernel && mmap.pgoff != 0) {
    module.reference_symbol = std::string(rest);
    module.reference_address = mmap.pgoff;
  }
  Mapping mapping;
  mapping.module = id;
  mapping.offset = FileOffset(is_kernel ? 0 : mmap.pgoff);
  AddressSpace& writable = Writable(maps);
  // The kernel's range may span that of its modules, which then stay.
  std::vector<AddressSpace::Entry> keep;
  if (is_kernel) keep = writable.entries();
  if (is_kernel && !guest) kernel = {mmap.start().value, mmap.end().value, mapping};
  writable.Assign(mmap.start(), mmap.end(), mapping);
  for (const AddressSpace::Entry& entry : keep) {
    if (modules[entry.value.module].key.kind != ModuleKind::kKernelModule) continue;
    writable.Assign(Avma(entry.start), Avma(entry.end), entry.value);
  }
}

void Session::State::OnComm(Session& session, const perfdata::Comm& comm, bool exec) {
  Thread& thread = session.ThreadOf(comm.pid, comm.tid);
  thread.comm = strings.Intern(comm.comm);
  thread.comm_set = true;
  if (!exec) return;
  thread.enabled_keys.reset();
  Process& process = session.ProcessOf(comm.pid);
  process.exec_pending = true;
  process.mask.reset();
  process.jit_dump = kNoModule;
}

void Session::State::OnFork(Session& session, const perfdata::Task& task, bool exec) {
  Forget(task.tid);
  const Thread parent = session.ThreadOf(task.ppid, task.ptid);
  if (task.pid != task.ppid) {
    const Process& old = session.ProcessOf(task.ppid);
    AddressSpacePtr maps = exec ? std::make_shared<AddressSpace>() : old.maps;
    const bool old_exec_pending = !exec && old.exec_pending;
    const std::optional<PointerMask> mask = exec ? std::nullopt : old.mask;
    const ModuleId jit_dump = exec ? kNoModule : old.jit_dump;
    const uint64_t mount_namespace = old.mount_namespace;
    Process& process = session.ProcessOf(task.pid);
    process.ppid = task.ppid;
    process.maps = std::move(maps);
    process.exec_pending = old_exec_pending;
    process.mask = mask;
    process.jit_dump = jit_dump;
    process.mount_namespace = mount_namespace;
  }
  Thread& thread = session.ThreadOf(task.pid, task.tid);
  if (parent.comm_set) {
    thread.comm = parent.comm;
    thread.comm_set = true;
  }
  thread.enabled_keys = exec ? std::nullopt : parent.enabled_keys;
}

void Session::State::OnExit(const perfdata::Task& task) {
  const auto it = threads.find(task.tid);
  if (it == threads.end() || it->second.exited || task.tid == 0) return;
  it->second.exited = true;
  exited.push_back(task.tid);
  const auto process = processes.find(it->second.pid);
  if (process != processes.end() && process->second->live_threads > 0) {
    --process->second->live_threads;
  }
  if (exited.size() <= kExitedKept) return;
  const uint32_t oldest = exited.front();
  exited.pop_front();
  const auto old = threads.find(oldest);
  if (old == threads.end() || !old->second.exited) return;  // the number is in use again
  const uint32_t pid = old->second.pid;
  Forget(oldest);
  const auto empty = processes.find(pid);
  if (empty != processes.end() && empty->second->live_threads == 0) processes.erase(empty);
}

void Session::State::Forget(uint32_t tid) {
  const auto it = threads.find(tid);
  if (it == threads.end()) return;
  const auto process = processes.find(it->second.pid);
  if (!it->second.exited && process != processes.end() && process->second->live_threads > 0) {
    --process->second->live_threads;
  }
  threads.erase(it);
}

// Of the namespaces (net, uts, ipc, pid, user, mnt, cgroup) only the one of mounts says where files
// are.
void Session::State::OnNamespaces(Session& session, const perfdata::Namespaces& namespaces) {
  constexpr size_t kMount = 5;
  if (namespaces.links.size() <= kMount) return;
  session.ProcessOf(namespaces.pid).mount_namespace = namespaces.links[kMount].ino;
}

void Session::State::OnKsymbol(Session& session, const perfdata::Ksymbol& symbol) {
  constexpr uint16_t kUnregister = 1;
  const Avma start(symbol.addr);
  const Avma end(symbol.addr + std::min<uint64_t>(symbol.len, UINT64_MAX - symbol.addr));
  AddressSpace& maps = Writable(kernel_maps);
  if ((symbol.flags & kUnregister) != 0) {
    maps.Erase(start, end);
    // What the kernel proper had there is there again.
    if (kernel && kernel->start < end.value && kernel->end > start.value) {
      const uint64_t first = std::max(kernel->start, start.value);
      Mapping again = kernel->value;
      Advance(again, first - kernel->start);
      maps.Assign(Avma(first), Avma(std::min(kernel->end, end.value)), again);
    }
    return;
  }
  ModuleKey key;
  key.kind = ModuleKind::kKernelModule;
  key.path = symbol.name;
  Mapping mapping;
  mapping.module = session.InternModule(key, /*deleted=*/false, /*pid=*/0);
  modules[mapping.module].ksymbol = true;
  modules[mapping.module].kernel_start = start;
  maps.Assign(start, end, mapping);
}

void Session::State::OnBuildId(const perfdata::HeaderBuildId& id) {
  build_ids.Add(id);
  // Modules that were mapped before have it from now on.
  for (ModuleId i = 0; i < modules.size(); ++i) {
    Module& module = modules[i];
    if (module.key.path != id.filename || !module.key.build_id.empty()) continue;
    module_ids.erase({module.key, module.deleted});
    module.key.build_id = id.build_id;
    module_ids.emplace(std::pair(module.key, module.deleted), i);
  }
}

namespace {
Process& FindOrMake(std::unordered_map<uint32_t, std::unique_ptr<Process>>& processes,
                    uint32_t pid) {
  std::unique_ptr<Process>& process = processes[pid];
  if (process == nullptr) {
    process = std::make_unique<Process>();
    process->pid = pid;
    process->maps = std::make_shared<AddressSpace>();
  }
  return *process;
}
}  // namespace

Process& Session::ProcessOf(uint32_t pid) { return FindOrMake(state_->processes, pid); }
Process& Session::GuestProcessOf(uint32_t pid) { return FindOrMake(state_->guest_processes, pid); }

std::string_view Session::CgroupPath(uint64_t id) const {
  const auto it = state_->cgroups.find(id);
  return it == state_->cgroups.end() ? std::string_view() : it->second;
}

Thread& Session::ThreadOf(uint32_t pid, uint32_t tid) {
  const auto [it, made] = state_->threads.try_emplace(tid);
  Thread& thread = it->second;
  if (made || (thread.pid != pid && tid != 0)) {
    // A number that came back without EXIT and FORK having been seen keeps its comm, as in perf.
    if (!made && !thread.exited) {
      Process& old = ProcessOf(thread.pid);
      if (old.live_threads > 0) --old.live_threads;
    }
    thread.pid = pid;
    thread.tid = tid;
    thread.exited = false;
    thread.enabled_keys.reset();
    ++ProcessOf(pid).live_threads;
  }
  return thread;
}

const Thread* Session::FindThread(uint32_t tid) const {
  const auto it = state_->threads.find(tid);
  return it == state_->threads.end() ? nullptr : &it->second;
}

const std::unordered_map<uint32_t, std::unique_ptr<Process>>& Session::processes() const {
  return state_->processes;
}

std::string Session::CommOf(const Thread& thread) const {
  if (thread.comm_set) return std::string(state_->strings.Text(thread.comm));
  return ":" + std::to_string(static_cast<int32_t>(thread.tid));
}

const AddressSpacePtr& Session::kernel_maps() const { return state_->kernel_maps; }
const AddressSpacePtr& Session::guest_kernel_maps() const { return state_->guest_kernel_maps; }

uint64_t Session::BiasOf(const AddressSpace::Entry& entry) {
  const Mapping& mapping = entry.value;
  CHECK(mapping.module < state_->modules.size());
  const Module& module = state_->modules[mapping.module];
  if (module.ksymbol) return entry.start - mapping.offset.value;
  switch (module.key.kind) {
    case ModuleKind::kKernel:
    case ModuleKind::kKernelModule:
    case ModuleKind::kGuestKernel:
    case ModuleKind::kJit:
    case ModuleKind::kAnonymous:
      return 0;
    case ModuleKind::kFile:
    case ModuleKind::kVdso:
    case ModuleKind::kVsyscall:
    case ModuleKind::kJitDump:
      break;
  }
  uint64_t moved = 0;  // svma - file offset
  const LoadSegment* segment = SegmentOfMapping(SegmentsOf(mapping.module), mapping.offset,
                                                entry.end - entry.start, mapping.executable);
  if (segment != nullptr) moved = segment->vaddr - segment->offset;
  return entry.start - mapping.offset.value - moved;
}

Location Session::Find(const AddressSpace& maps, Avma avma) {
  const AddressSpace::Entry* entry = maps.Find(avma);
  if (entry == nullptr) return {};
  Location location;
  location.module = entry->value.module;
  location.offset = entry->value.offset + (avma.value - entry->start);
  location.svma = Svma(avma.value - BiasOf(*entry));
  const Mapping& mapping = entry->value;
  if (mapping.executable || state_->modules[mapping.module].key.kind != ModuleKind::kFile) {
    return location;
  }
  // The end of read-only data and the start of the written are one page of the file, mapped twice.
  const LoadSegment* data = DataSegmentAt(SegmentsOf(mapping.module), location.offset);
  if (data != nullptr) location.svma = Svma(location.offset.value - data->offset + data->vaddr);
  return location;
}

const std::vector<Module>& Session::modules() const { return state_->modules; }

ModuleId Session::InternModule(const ModuleKey& key, bool deleted, uint32_t pid) {
  const auto id = static_cast<ModuleId>(state_->modules.size());
  const auto [it, made] = state_->module_ids.try_emplace({key, deleted}, id);
  if (made) {
    Module module;
    module.key = key;
    module.deleted = deleted;
    module.first_pid = pid;
    state_->modules.push_back(std::move(module));
    state_->segments.emplace_back();
  }
  return it->second;
}

void Session::SetSegments(ModuleId module, std::vector<LoadSegment> segments) {
  CHECK(module < state_->segments.size());
  state_->segments[module] = std::move(segments);
}

const std::vector<LoadSegment>& Session::SegmentsOf(ModuleId module) {
  CHECK(module < state_->segments.size());
  std::optional<std::vector<LoadSegment>>& segments = state_->segments[module];
  if (!segments) {
    std::vector<LoadSegment> loaded;
    if (state_->segment_loader) loaded = state_->segment_loader(state_->modules[module]);
    segments = std::move(loaded);
  }
  return *segments;
}

void Session::SetSegmentLoader(std::function<std::vector<LoadSegment>(const Module&)> loader) {
  state_->segment_loader = std::move(loader);
}

// Takes the best source whose mask leaves the process's own code addresses as they are.
PointerMask Session::MaskOf(const Process& process, const perfdata::Sample* sample) const {
  constexpr uint16_t kAarch64 = 183;
  if (machine() != kAarch64) return {};
  const Avma end = process.maps->HighestExecutableEnd();
  const auto usable = [&](const PointerMask& mask) {
    if (LeavesAddresses(mask, end)) return true;
    state_->counters.Add("session.mask_hits_addresses");
    return false;
  };
  if (sample != nullptr && sample->Has(perfdata::kSampleArch1)) {
    const PointerMask mask{sample->arch_insn_mask, sample->arch_data_mask, MaskSource::kSample};
    if (process.mask && process.mask->insn != mask.insn) {
      state_->counters.Add("session.mask_contradicts");
    }
    if (usable(mask)) return mask;
  }
  if (process.mask && usable(*process.mask)) return *process.mask;
  const auto header = MaskFromFeatures(state_->features, state_->endian);
  if (header && usable(*header)) return *header;
  return MaskFromHighestMapping(end).value_or(PointerMask{});
}

uint16_t Session::machine() const {
  const auto raw = state_->features.raw.find(static_cast<uint32_t>(perfdata::Feature::kEMachine));
  if (raw != state_->features.raw.end() && raw->second.size() >= 4) {
    return static_cast<uint16_t>(LoadUnaligned<uint32_t>(raw->second.data(), state_->endian));
  }
  return MachineOf(state_->features.arch);
}

StringInterner& Session::strings() { return state_->strings; }
const StringInterner& Session::strings() const { return state_->strings; }
Counters& Session::counters() const { return state_->counters; }

}  // namespace stackreel::session
