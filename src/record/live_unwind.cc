#include "record/live_unwind.h"

#include <elf.h>
#include <sys/mman.h>

#include <algorithm>
#include <set>

#include "analyze/unwind_input.h"
#include "base/check.h"
#include "perfdata/record_size.h"
#include "record/records.h"

namespace stackreel::record {

namespace {

using unwind::StackEnd;

constexpr size_t kSamplesPerChunk = 32;
constexpr size_t kMaxFrames = 1024;

#if defined(__aarch64__)
constexpr uint16_t kMachine = EM_AARCH64;
#else
constexpr uint16_t kMachine = EM_X86_64;
#endif

}  // namespace

std::optional<perfdata::Sample> MasksIn(ByteView record, const perfdata::Attr& attr) {
  constexpr size_t kMasks = 3 * sizeof(uint64_t);
  if ((attr.sample_type & perfdata::kSampleArch1) == 0 ||
      record.size() < perfdata::kRecordHeaderSize + kMasks) {
    return std::nullopt;
  }
  const uint8_t* words = record.data() + record.size() - kMasks;
  perfdata::Sample sample;
  sample.present = perfdata::kSampleArch1;
  sample.arch_enabled_keys = LoadUnaligned<uint64_t>(words, kNativeEndian);
  sample.arch_insn_mask = LoadUnaligned<uint64_t>(words + 8, kNativeEndian);
  sample.arch_data_mask = LoadUnaligned<uint64_t>(words + 16, kNativeEndian);
  return sample;
}

LiveUnwinder::LiveUnwinder(session::Session& session, symbolize::ModuleFileProvider& files,
                           Executor& executor, const std::vector<perfdata::Event>& recorded,
                           std::optional<int32_t> clockid, Counters& counters)
    : session_(session),
      executor_(executor),
      counters_(counters),
      symbolizer_(files, {}, counters),
      images_(session, symbolizer_, counters),
      maps_(session, [this](session::ModuleId id) { return images_.UnwindModuleOf(id); }),
      traced_(clockid, counters),
      ends_(static_cast<size_t>(StackEnd::kLimit) + 1) {
  for (const perfdata::Event& event : recorded) {
    recorded_.push_back(event.attr);
    written_.push_back(analyze::WithoutStack(event.attr));
  }
  session_.SetSegmentLoader([this](const session::Module& module) {
    const auto id = static_cast<session::ModuleId>(&module - session_.modules().data());
    const elf::Image* image = images_.MainOf(id);
    return image != nullptr ? session::LoadSegmentsOf(*image) : std::vector<session::LoadSegment>();
  });
  for (size_t i = 0; i < executor.concurrency(); ++i)
    workers_.push_back(std::make_unique<Worker>());
}

void LiveUnwinder::AddSample(ByteView record, uint32_t event) {
  // header 8 | IDENTIFIER 8 | IP 8 | TID: u32 pid, tid | TIME 8
  constexpr size_t kPidOffset = 24;
  constexpr size_t kTimeOffset = 32;
  CHECK(event < recorded_.size());
  Job job;
  job.record = record;
  job.event = event;
  if (record.size() >= kTimeOffset + 8) {
    const auto pid = LoadUnaligned<uint32_t>(record.data() + kPidOffset, kNativeEndian);
    const session::Process& process = session_.ProcessOf(pid);
    job.maps = maps_.Get(process.maps);
    const auto masks = MasksIn(record, recorded_[event]);
    job.code_mask = session_.MaskOf(process, masks ? &*masks : nullptr).insn;
    const auto tid = LoadUnaligned<uint32_t>(record.data() + kPidOffset + 4, kNativeEndian);
    const auto time = LoadUnaligned<uint64_t>(record.data() + kTimeOffset, kNativeEndian);
    job.detours = traced_.Of(pid, tid, process.ppid, *job.maps, time);
    job.kernel_clock = job.detours != nullptr && traced_.UsesKernelClock(pid);
  }
  items_.push_back({.record = {}, .job = jobs_.size()});
  jobs_.push_back(std::move(job));
}

void LiveUnwinder::AddOther(ByteView record) { items_.push_back({.record = record}); }

Status LiveUnwinder::Flush(const Write& write) {
  const size_t chunks = (jobs_.size() + kSamplesPerChunk - 1) / kSamplesPerChunk;
  if (chunk_bytes_.size() < chunks) chunk_bytes_.resize(chunks);
  traced_.Refresh();
  executor_.ParallelFor(
      chunks, [this](size_t chunk, size_t worker) { UnwindChunk(chunk, *workers_[worker]); });
  UnwindAgain(chunks);
  Status status;
  for (const Item& item : items_) {
    if (!status) break;
    if (item.job == SIZE_MAX) {
      status = write(item.record);
      continue;
    }
    const Job& job = jobs_[item.job];
    if (job.end) {
      ++user_stacks_;
      watch_.Add(job.cut_at);
      ++(job.no_stack ? no_stack_ : ends_[static_cast<size_t>(*job.end)]);
    }
    if (job.bad) {
      counters_.Add("record.bad_sample");
      continue;
    }
    status = write(ByteView(chunk_bytes_[job.chunk]).subspan(job.offset, job.size));
  }
  items_.clear();
  jobs_.clear();
  return status;
}

// Stacks end where it is not known yet what a traced function returns to: more is learnt of that,
// and those near them are unwound once more.
void LiveUnwinder::UnwindAgain(size_t chunks) {
  std::set<const unwind::Detours*> unknown;
  std::vector<size_t> again;
  for (size_t chunk = 0; chunk < chunks; ++chunk) {
    const size_t end = std::min(jobs_.size(), (chunk + 1) * kSamplesPerChunk);
    bool any = false;
    for (size_t i = chunk * kSamplesPerChunk; i < end; ++i) {
      if (jobs_[i].end != StackEnd::kTraced) continue;
      unknown.insert(jobs_[i].detours);
      any = true;
    }
    if (any) again.push_back(chunk);
  }
  std::erase_if(unknown, [this](const auto* detours) { return !traced_.LearnMore(detours); });
  if (unknown.empty()) return;
  executor_.ParallelFor(again.size(),
                        [&](size_t i, size_t worker) { UnwindChunk(again[i], *workers_[worker]); });
}

Status LiveUnwinder::NameAgents(const EmitRecord& emit) {
  constexpr auto kUser = static_cast<uint16_t>(perfdata::CpuMode::kUser);
  std::vector<perfdata::Record> names;
  traced_.ForEachUnnamed([&](uint32_t pid, Avma code, uint64_t time) {
    perfdata::Mmap2 mmap;
    mmap.pid = mmap.tid = pid;
    mmap.addr = code.value;
    mmap.len = tracedata::kAgentCodeSize;
    mmap.prot = PROT_READ | PROT_EXEC;
    mmap.flags = MAP_PRIVATE;
    mmap.filename = session::kAgentMapping;
    perfdata::Record name = MakeRecord(perfdata::RecordType::kMmap2, kUser, std::move(mmap));
    // Behind an execve, at which all that was mapped before is gone.
    name.sample_id->time = time;
    names.push_back(std::move(name));
  });
  for (const perfdata::Record& name : names) TRY(emit(name));
  return {};
}

void LiveUnwinder::UnwindChunk(size_t chunk, Worker& worker) {
  std::vector<uint8_t>& out = chunk_bytes_[chunk];
  out.clear();
  const size_t end = std::min(jobs_.size(), (chunk + 1) * kSamplesPerChunk);
  for (size_t i = chunk * kSamplesPerChunk; i < end; ++i) {
    jobs_[i].chunk = chunk;
    UnwindOne(jobs_[i], worker, out);
  }
}

void LiveUnwinder::UnwindOne(Job& job, Worker& worker, std::vector<uint8_t>& out) {
  const perfdata::RawRecord raw = AsRaw(job.record);
  perfdata::Sample& sample = worker.sample;
  if (!perfdata::DecodeSample(raw, recorded_[job.event], kNativeEndian, sample)) {
    job.bad = true;
    return;
  }
  worker.frames.clear();
  auto end = StackEnd::kNoRegisters;
  const unwind::Arch arch = unwind::ArchOf(kMachine, sample.regs_user.abi);
  if (auto input = analyze::UnwindInputOf(sample, arch, kNativeEndian)) {
    input->maps = job.maps.get();
    input->code_mask = job.code_mask;
    input->max_frames = kMaxFrames;
    input->detours = job.detours;
    if (job.detours != nullptr) input->ticks = traced_.TicksAt(sample.time, job.kernel_clock);
    end = worker.unwinder.Unwind(*input, worker.frames);
    job.end = end;
    // In exec, once the new program is being mapped, the registers are still those of the call: of
    // the old program's pc nothing is known any more, and its stack is gone.
    const bool in_exec = end == StackEnd::kNoMapping && worker.frames.size() == 1;
    job.no_stack = sample.stack_user.empty() && (end == StackEnd::kDumpExhausted || in_exec);
    if (!job.no_stack && input->stack_was_cut && end == StackEnd::kDumpExhausted) {
      job.cut_at = static_cast<uint32_t>(sample.stack_user.size());
    }
  }
  // In a stub, it is at the function that the stub is of.
  const bool is_user =
      job.detours != nullptr && !worker.frames.empty() && job.detours->Find(sample.ip) != nullptr;
  if (is_user) sample.ip = worker.frames.front().address.avma.value;
  worker.chain.clear();
  analyze::BuildCallchain(sample, worker.frames, end, worker.chain);
  constexpr uint64_t kStack = perfdata::kSampleRegsUser | perfdata::kSampleStackUser;
  sample.present &= ~kStack;
  sample.callchain = perfdata::U64Array(
      {reinterpret_cast<const uint8_t*>(worker.chain.data()), worker.chain.size() * 8},
      kNativeEndian);
  const auto encoded = perfdata::EncodeSample(sample, raw.misc, written_[job.event], kNativeEndian);
  if (!encoded) {
    job.bad = true;
    return;
  }
  job.offset = out.size();
  job.size = encoded->size();
  out.insert(out.end(), encoded->begin(), encoded->end());
}

uint64_t LiveUnwinder::complete_stacks() const {
  return ends_[static_cast<size_t>(StackEnd::kRoot)];
}

std::map<std::string, uint64_t> LiveUnwinder::StackEnds() const {
  std::map<std::string, uint64_t> ends;
  for (size_t i = 0; i < ends_.size(); ++i) {
    if (ends_[i] != 0) ends[unwind::StackEndName(static_cast<StackEnd>(i))] = ends_[i];
  }
  if (no_stack_ != 0) ends["no stack dumped"] = no_stack_;
  return ends;
}

void LiveUnwinder::CollectCounters(Counters& counters) const {
  for (const auto& worker : workers_) counters.Merge(worker->unwinder.counters());
  for (const auto& [end, count] : StackEnds()) {
    if (end != unwind::StackEndName(StackEnd::kRoot))
      counters.Add("record.stack_end." + end, count);
  }
}

}  // namespace stackreel::record
