#include "record/round_processor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>

#include "base/check.h"
#include "elf/image.h"
#include "os/file.h"
#include "perfdata/pac_mask.h"
#include "perfdata/record_size.h"
#include "record/event_parse.h"
#include "record/records.h"
#include "record/tracing_data.h"
#include "symfiles/symfiles.h"

namespace stackreel::record {

namespace {

using perfdata::RecordType;

// Files while recording: vDSOs are those that are known, all others are looked for in the mount
// namespace of their process. Debug information is not needed to unwind, so nothing is fetched.
class RecordingFiles : public symbolize::ModuleFileProvider {
 public:
  explicit RecordingFiles(const VdsoImages& vdsos) : vdsos_(vdsos) {
    symfiles::SearchOptions options;
    options.proc_root = true;
    options.debuginfod = false;
    files_ = symfiles::MakeFileProvider(options);
  }
  symbolize::ModuleFiles FilesOf(const session::Module& module) override {
    if (module.key.kind != session::ModuleKind::kVdso) return files_->FilesOf(module);
    symbolize::ModuleFiles files;
    files.main = vdsos_.Find(module.key.build_id);
    return files;
  }

 private:
  const VdsoImages& vdsos_;
  std::unique_ptr<symbolize::ModuleFileProvider> files_;
};

// ".2026112912301542": of the day, to hundredths of a second, as perf names files it switches.
std::string TimeSuffix() {
  const auto now = std::chrono::system_clock::now();
  const auto hundredths =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() / 10 %
      100;
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  std::tm local = {};
  localtime_r(&seconds, &local);
  return fmt::format(".{:04}{:02}{:02}{:02}{:02}{:02}{:02}", local.tm_year + 1900, local.tm_mon + 1,
                     local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec, hundredths);
}

// `path`, or where that is taken (two files ended within 10 ms) with -1, -2, … behind it: a file
// that was written must not be written over.
std::string UnusedName(const std::string& path) {
  std::string name = path;
  for (int i = 1; access(name.c_str(), F_OK) == 0; ++i) name = fmt::format("{}-{}", path, i);
  return name;
}

}  // namespace

Result<SwitchOutput> ParseSwitchOutput(const std::string& text) {
  SwitchOutput out;
  if (text.empty()) return out;
  if (text == "signal") {
    out.on_signal = true;
    return out;
  }
  uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number);
  const std::string_view unit(result.ptr, static_cast<size_t>(end - result.ptr));
  constexpr uint64_t kMost = uint64_t{1} << 24;  // of a unit: no product overflows
  if (result.ec == std::errc{} && number != 0 && number < kMost && unit.size() == 1) {
    const size_t power = std::string_view("BKMG").find(unit[0]);
    const size_t seconds = std::string_view("smhd").find(unit[0]);
    if (power != std::string_view::npos) {
      out.bytes = number << (10 * power);
      return out;
    }
    if (seconds != std::string_view::npos) {
      constexpr std::array<uint64_t, 4> kSeconds = {1, 60, 3600, 86400};
      out.time = std::chrono::seconds(number * kSeconds[seconds]);
      return out;
    }
  }
  return Fail(ErrorKind::kUsage,
              fmt::format("'{}' says not when to switch the output: signal, a size such as 100M, "
                          "or a time such as 30s",
                          text));
}

RoundProcessor::RoundProcessor(const ProcessorOptions& options,
                               const std::vector<perfdata::Event>& events, RoundQueue& queue,
                               Executor& executor, Counters& counters)
    : options_(options),
      events_(events),
      written_(events),
      queue_(queue),
      counters_(counters),
      session_(session_features_, kNativeEndian, counters) {
  for (const perfdata::Event& event : events_) table_.Add(event);
  // Its records are written in our form, and perf warns of a flag that it does not know.
  for (perfdata::Event& event : written_) event.attr.flags &= ~uint64_t{perfdata::kAttrPtrAuth};
  machine_features_ = MachineFeatures();
  Counters ignored;  // we wrote them ourselves
  for (const auto& [feature, bytes] : machine_features_) {
    perfdata::DecodeFeature(feature, bytes, kNativeEndian, session_features_, ignored);
  }
  if (auto tracing = ReadTracingData(FindTracefs({}), events_); tracing && !tracing->empty()) {
    machine_features_[static_cast<uint32_t>(perfdata::Feature::kTracingData)] = std::move(*tracing);
  }
  if (!options_.groups.empty()) {
    machine_features_[static_cast<uint32_t>(perfdata::Feature::kGroupDesc)] =
        perfdata::EncodeGroupDesc(options_.groups, kNativeEndian);
  }
  if (!options_.unwind_live) return;
  files_ = std::make_unique<RecordingFiles>(vdsos_);
  unwinder_ = std::make_unique<LiveUnwinder>(session_, *files_, executor, events_, options_.clockid,
                                             counters);
  for (perfdata::Event& event : written_) event.attr = analyze::WithoutStack(event.attr);
}

RoundProcessor::~RoundProcessor() = default;

Result<std::unique_ptr<RoundProcessor>> RoundProcessor::Create(
    const ProcessorOptions& options, const std::vector<perfdata::Event>& events, RoundQueue& queue,
    Executor& executor, Counters& counters) {
  std::unique_ptr<RoundProcessor> out(
      new RoundProcessor(options, events, queue, executor, counters));
  // Without addresses (kptr_restrict) or /proc there is no kernel image to describe.
  if (auto kernel = ReadKernelImage()) out->kernel_ = std::move(*kernel);
  TRY(CheckOutputPath(options.path, options.switch_output.enabled()));
  // A link stays, and what it leads to is written, renamed and moved away.
  if (options.path != "-") out->options_.path = os::FollowLinks(options.path);
  TRY(out->CreateFile());
  out->ReadKeysOfThreads();
  return out;
}

Status RoundProcessor::CreateFile() {
  if (unwinder_) ends_of_earlier_files_ = unwinder_->StackEnds();
  FeatureBytes early = Features();
  early[static_cast<uint32_t>(perfdata::Feature::kEventDesc)] =
      perfdata::EncodeEventDesc(written_, kNativeEndian);
  TRY_ASSIGN(file_,
             RecordingFile::Create(options_.path, options_.compression_level, written_, early));
  file_start_ = std::chrono::steady_clock::now();
  return {};
}

Status RoundProcessor::Run() {
  Status status = Synthesize();
  while (true) {
    auto round = queue_.Pop();
    if (!round) {
      if (status) status = Fail(std::move(round.error()));
      break;
    }
    if (!*round) break;
    // After a failure rounds are still taken, so that nobody waits for room in the queue.
    if (status) {
      status = TakeRound(std::move(**round));
    } else {
      queue_.Recycle(std::move(**round));
    }
    if (!status) failed_ = true;
    const std::lock_guard lock(rounds_mutex_);
    ++rounds_done_;
    rounds_changed_.notify_all();
  }
  if (status) {
    status = order_.Finish([this](const TimeOrder::Entry& entry) { return PassOn(entry.record); });
    if (status && unwinder_) {
      status = FlushUnwinder();
    }
  }
  if (!status) failed_ = true;
  return status;
}

void RoundProcessor::AwaitRounds(uint64_t rounds, std::chrono::milliseconds patience) {
  std::unique_lock lock(rounds_mutex_);
  rounds_changed_.wait_for(lock, patience, [&] { return rounds_done_ >= rounds; });
}

// ---- rounds ----

Status RoundProcessor::TakeRound(Round round) {
  Round& kept = held_[round_] = std::move(round);
  for (std::vector<uint8_t>& ring : kept.rings) TRY(ReadRing(ring));
  ++round_;
  return EndRound();
}

Status RoundProcessor::ReadRing(std::vector<uint8_t>& ring) {
  for (size_t at = 0; at + perfdata::kRecordHeaderSize <= ring.size();) {
    const size_t size = LoadUnaligned<uint16_t>(ring.data() + at + 6, kNativeEndian);
    CHECK(size >= perfdata::kRecordHeaderSize &&
          size <= ring.size() - at);  // ConsumeRing saw to that
    const std::span<uint8_t> bytes(ring.data() + at, size);
    at += size;
    perfdata::RawRecord raw = AsRaw(bytes);
    if (raw.record_type() == RecordType::kMmap2) {
      AddVdsoBuildId(bytes);
      raw = AsRaw(bytes);
    }
    const auto time = table_.TimeOf(raw, kNativeEndian);
    order_.Add(time.value_or(0), bytes);
  }
  return {};
}

// The kernel has no file to read the vDSO's build-id from. In the MMAP2 record:
//   header 8 | pid, tid 8 | addr 8 | len 8 | pgoff 8 | union 24 | prot, flags 8 | filename
void RoundProcessor::AddVdsoBuildId(std::span<uint8_t> record) {
  constexpr size_t kPid = 8, kAddr = 16, kLen = 24, kUnion = 40, kFilename = 72;
  const uint16_t misc = LoadUnaligned<uint16_t>(record.data() + 4, kNativeEndian);
  if ((misc & perfdata::kMiscMmapBuildId) != 0 || record.size() <= kFilename ||
      TextUpToNul(record.subspan(kFilename)) != "[vdso]") {
    return;
  }
  const BuildId found = vdsos_.IdAt(LoadUnaligned<uint32_t>(record.data() + kPid, kNativeEndian),
                                    LoadUnaligned<uint64_t>(record.data() + kAddr, kNativeEndian),
                                    LoadUnaligned<uint64_t>(record.data() + kLen, kNativeEndian));
  if (found.empty()) return;
  StoreUnaligned<uint16_t>(record.data() + 4, misc | perfdata::kMiscMmapBuildId, kNativeEndian);
  const ByteView id = found.bytes();
  std::fill_n(record.begin() + kUnion, 24, uint8_t{0});
  record[kUnion] = static_cast<uint8_t>(id.size());
  std::copy(id.begin(), id.end(), record.begin() + kUnion + 4);
}

Status RoundProcessor::FlushUnwinder() {
  TRY(unwinder_->NameAgents(
      [this](const perfdata::Record& record) { return file_->WriteRecord(record); }));
  const Status flushed = unwinder_->Flush([this](ByteView record) { return file_->Write(record); });
  rewritten_.clear();
  return flushed;
}

Status RoundProcessor::EndRound() {
  TRY(order_.EndRound([this](const TimeOrder::Entry& entry) { return PassOn(entry.record); }));
  if (unwinder_) {
    TRY(FlushUnwinder());
    too_small_dump_ = unwinder_->too_small_dump();
    any_traced_ = unwinder_->any_traced();
    TRY(WriteStackEnds());
  }
  const uint64_t oldest = order_.oldest_round();
  while (!held_.empty() && held_.begin()->first < oldest) {
    queue_.Recycle(std::move(held_.begin()->second));
    held_.erase(held_.begin());
  }
  TRY(file_->EndRound());
  return CheckSize();
}

// Ends the recording, or the file, where it has the size that was asked for. What comes later is
// not recorded.
Status RoundProcessor::CheckSize() {
  records_since_check_ = 0;
  if (unwinder_) {
    TRY(FlushUnwinder());
  }
  if (options_.max_size != 0 && file_->bytes_written() >= options_.max_size) {
    reached_max_size_ = true;
    return {};
  }
  return SwitchIfDue();
}

// A round may hold many times the size at which to stop. Samples to be unwound are gathered for all
// threads, and small once they are.
Status RoundProcessor::CheckSizeInRound() {
  constexpr size_t kGathered = 128;
  const bool limited = options_.max_size != 0 || options_.switch_output.bytes != 0;
  if (!limited || (unwinder_ && ++records_since_check_ < kGathered)) return {};
  return CheckSize();
}

// How stacks ended up to now, once a second: for pipes, and should we be killed.
Status RoundProcessor::WriteStackEnds() {
  constexpr std::chrono::seconds kInterval{1};
  const auto now = std::chrono::steady_clock::now();
  if (now < next_stack_ends_ || unwinder_->user_stacks() == stack_ends_written_) return {};
  next_stack_ends_ = now + kInterval;
  stack_ends_written_ = unwinder_->user_stacks();
  return file_->WriteFeature(perfdata::Feature::kStackreelStackEnds,
                             perfdata::EncodeStackEnds(StackEndsOfFile(), kNativeEndian));
}

// A file says of its own samples only how their stacks ended.
std::map<std::string, uint64_t> RoundProcessor::StackEndsOfFile() const {
  std::map<std::string, uint64_t> ends = unwinder_->StackEnds();
  for (const auto& [end, stacks] : ends_of_earlier_files_) ends[end] -= stacks;
  std::erase_if(ends, [](const auto& entry) { return entry.second == 0; });
  return ends;
}

Status RoundProcessor::PassOn(ByteView record) {
  if (reached_max_size_) return {};
  TRY(WriteInOrder(record));
  return CheckSizeInRound();
}

Status RoundProcessor::WriteInOrder(ByteView record) {
  const perfdata::RawRecord raw = AsRaw(record);
  if (raw.record_type() == RecordType::kSample) {
    if (record.size() < 2 * perfdata::kRecordHeaderSize) return {};
    const auto id =
        LoadUnaligned<uint64_t>(record.data() + perfdata::kRecordHeaderSize, kNativeEndian);
    const auto event = EventOf(id);
    if (!event) return {};
    ++totals_.samples;
    const auto time = table_.TimeOf(raw, kNativeEndian, *event);
    if (first_time_ == 0) first_time_ = time.value_or(0);
    last_time_ = std::max(last_time_, time.value_or(0));
    const bool has_stack = (events_[*event].attr.sample_type & perfdata::kSampleStackUser) != 0;
    if (unwinder_ && has_stack) {
      unwinder_->AddSample(record, *event);
      return {};
    }
  } else if (raw.type < static_cast<uint32_t>(RecordType::kHeaderAttr)) {
    const auto event = table_.IndexOf(raw, kNativeEndian);
    const perfdata::RecordContext context{kNativeEndian, event ? &events_[*event].attr : nullptr};
    const auto decoded = perfdata::DecodeRecord(raw, context);
    if (decoded) {
      session_.Apply(*decoded);
      Observe(*decoded);
    } else {
      counters_.Add("record.bad_record");
    }
    if (raw.record_type() == RecordType::kPtrAuth) {
      if (!decoded) return {};
      TRY_ASSIGN(record, InOurForm(*decoded));
    }
  }
  if (unwinder_) {
    unwinder_->AddOther(record);
    return {};
  }
  return file_->Write(record);
}

// perf would end at a PTR_AUTH record. The bytes stay until all that came up to now is written.
Result<ByteView> RoundProcessor::InOurForm(const perfdata::Record& ptr_auth) {
  const auto* body = std::get_if<perfdata::PtrAuth>(&ptr_auth.body);
  CHECK(body != nullptr);
  const uint64_t time = ptr_auth.sample_id ? ptr_auth.sample_id->time : 0;
  TRY_ASSIGN(std::vector<uint8_t> bytes,
             perfdata::EncodeRecord(MakeMaskRecord(perfdata::MaskOfRecord(*body, time)),
                                    {.endian = kNativeEndian}));
  if (!unwinder_) rewritten_.clear();
  return ByteView(rewritten_.emplace_back(std::move(bytes)));
}

void RoundProcessor::Observe(const perfdata::Record& record) {
  if (const auto* lost = std::get_if<perfdata::Lost>(&record.body)) {
    totals_.lost_in_records += lost->lost;
  } else if (const auto* samples = std::get_if<perfdata::LostSamples>(&record.body)) {
    totals_.lost_in_records += samples->lost;
  } else if (const auto* comm = std::get_if<perfdata::Comm>(&record.body)) {
    const std::lock_guard lock(tasks_mutex_);
    tasks_[comm->tid] = {.pid = comm->pid, .comm = comm->comm};
  } else if (const auto* task = std::get_if<perfdata::Task>(&record.body)) {
    const std::lock_guard lock(tasks_mutex_);
    if (record.type == static_cast<uint32_t>(RecordType::kExit)) {
      tasks_.erase(task->tid);
    } else {
      const auto parent = tasks_.find(task->ptid);
      tasks_[task->tid] = {.pid = task->pid,
                           .comm = parent != tasks_.end() ? parent->second.comm : ""};
    }
  } else if (std::holds_alternative<perfdata::Throttle>(record.body) &&
             record.type == static_cast<uint32_t>(RecordType::kThrottle)) {
    counters_.Add("record.throttled");
  }
}

std::vector<uint32_t> RoundProcessor::RunningTasks() const {
  const std::lock_guard lock(tasks_mutex_);
  std::vector<uint32_t> tids;
  tids.reserve(tasks_.size());
  for (const auto& [tid, task] : tasks_) tids.push_back(tid);
  return tids;
}

// ---- files ----

bool RoundProcessor::SwitchIsDue() const {
  const SwitchOutput& when = options_.switch_output;
  if (!when.enabled()) return false;
  return switch_requested_ || (when.bytes != 0 && file_bytes_ >= when.bytes) ||
         (when.time.count() != 0 &&
          std::chrono::steady_clock::now() - file_start_.load() >= when.time);
}

Status RoundProcessor::SwitchIfDue() {
  file_bytes_ = file_->bytes_written();
  if (!SwitchIsDue()) return {};
  switch_requested_ = false;
  TRY(CloseFile());
  TRY(CreateFile());
  TRY(file_->Publish());
  first_time_ = last_time_ = 0;
  if (unwinder_) unwinder_->ForgetAgents();
  return EmitSnapshot();
}

Status RoundProcessor::CloseFile() {
  TRY(file_->Finish(Features()));
  CountFile();
  file_.reset();
  std::string path = options_.path;
  if (options_.switch_output.enabled()) {
    path = UnusedName(path + TimeSuffix());
    if (rename(options_.path.c_str(), path.c_str()) != 0) {
      return Fail(os::ErrnoError(errno, "cannot rename", options_.path));
    }
  }
  totals_.files.push_back(path);
  return {};
}

void RoundProcessor::CountFile() {
  totals_.bytes += file_->bytes_written();
  totals_.samples_written += file_->samples_written();
}

std::vector<uint8_t> RoundProcessor::BuildIdFeature() const {
  std::vector<perfdata::HeaderBuildId> ids;
  std::vector<uint16_t> misc;
  constexpr int32_t kKernelPid = -1;
  const auto add = [&](perfdata::CpuMode mode, const BuildId& id, const std::string& name) {
    ids.push_back({.pid = kKernelPid, .build_id = id, .filename = name});
    misc.push_back(
        static_cast<uint16_t>(static_cast<uint16_t>(mode) | uint16_t{perfdata::kMiscBuildIdSize}));
  };
  if (kernel_.build_id) add(perfdata::CpuMode::kKernel, *kernel_.build_id, "[kernel.kallsyms]");
  for (const KernelModule& module : kernel_.modules) {
    if (module.build_id) add(perfdata::CpuMode::kKernel, *module.build_id, module.path);
  }
  for (const session::Module& module : session_.modules()) {
    const bool is_user_file = module.key.kind == session::ModuleKind::kFile ||
                              module.key.kind == session::ModuleKind::kVdso;
    if (is_user_file && !module.key.build_id.empty()) {
      add(perfdata::CpuMode::kUser, module.key.build_id, module.path());
    }
  }
  return perfdata::EncodeBuildIds(ids, misc, kNativeEndian).value_or(std::vector<uint8_t>());
}

FeatureBytes RoundProcessor::Features() const {
  FeatureBytes features = machine_features_;
  const auto put = [&features](perfdata::Feature feature, std::vector<uint8_t> bytes) {
    features[static_cast<uint32_t>(feature)] = std::move(bytes);
  };
  put(perfdata::Feature::kCmdline, EncodeCmdline(options_.cmdline));
  if (first_time_ != 0) {
    put(perfdata::Feature::kSampleTime, EncodeSampleTime(first_time_, last_time_));
  }
  if (auto ids = BuildIdFeature(); !ids.empty()) put(perfdata::Feature::kBuildId, std::move(ids));
  if (unwinder_) {
    if (const auto ends = StackEndsOfFile(); !ends.empty()) {
      put(perfdata::Feature::kStackreelStackEnds, perfdata::EncodeStackEnds(ends, kNativeEndian));
    }
  }
  const bool branches = std::ranges::any_of(written_, [](const perfdata::Event& event) {
    return (event.attr.sample_type & perfdata::kSampleBranchStack) != 0;
  });
  if (branches) put(perfdata::Feature::kBranchStack, {});
  if (options_.clockid) features.merge(ClockFeatures(*options_.clockid));
  return features;
}

Status RoundProcessor::Finish(uint64_t kernel_lost) {
  if (unwinder_) {
    totals_.user_stacks = unwinder_->user_stacks();
    totals_.complete_stacks = unwinder_->complete_stacks();
    unwinder_->CollectCounters(counters_);
  }
  counters_.Add("record.out_of_order", order_.late());
  if (failed_) {
    totals_.lost_in_records = std::max(totals_.lost_in_records, kernel_lost);
    if (file_ == nullptr) return {};  // the next one could not be made
    file_->Salvage(Features());
    CountFile();
    totals_.files.push_back(options_.path);
    return {};
  }
  // A LOST record is written only before the next record that fits; what was lost after that only
  // the counts tell.
  if (kernel_lost > totals_.lost_in_records) {
    TRY(file_->WriteRecord(
        MakeRecord(RecordType::kLostSamples, 0,
                   perfdata::LostSamples{.lost = kernel_lost - totals_.lost_in_records})));
    totals_.lost_in_records = kernel_lost;
  }
  TRY(file_->EndRound());
  return CloseFile();
}

}  // namespace stackreel::record
