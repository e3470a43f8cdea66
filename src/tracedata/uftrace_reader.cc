#include "tracedata/uftrace_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>
#include <utility>

#include "base/byte_writer.h"
#include "tracedata/uftrace_record.h"
#include "tracedata/uftrace_symbols.h"
#include "tracedata/uftrace_text.h"

namespace stackreel::tracedata {

namespace {

constexpr size_t kReadPiece = 256 << 10;  // of a .dat file, read at a time
constexpr size_t kBatch = 8 << 10;        // events given at a time
constexpr size_t kMaxPayload = 8192;      // of a record
constexpr size_t kMaxInfo = 64 << 20;
// Two records of a thread lie closer; for finding records behind a payload of unknown size.
constexpr uint64_t kMaxStep = uint64_t{24} * 3600 * 1'000'000'000;

Result<std::vector<uint8_t>> ReadWhole(TraceFolder& folder, const std::string& name, size_t limit) {
  TRY_ASSIGN(const std::unique_ptr<FileSource> file, folder.Open(name));
  std::vector<uint8_t> bytes;
  while (bytes.size() < limit) {
    const size_t at = bytes.size();
    bytes.resize(at + (64 << 10));
    TRY_ASSIGN(const size_t n, file->Read(std::span(bytes).subspan(at)));
    bytes.resize(at + n);
    if (n == 0) break;
  }
  return bytes;
}

// When which session begins, of one process.
struct SessionStart {
  uint64_t nanoseconds = 0;
  size_t session = 0;
};

class Recording : public TraceSource {
 public:
  explicit Recording(std::unique_ptr<TraceFolder> folder)
      : folder_(std::move(folder)), symbols_(*folder_, info_, tables_, counters_) {}
  Status Open();

  [[nodiscard]] const TraceTables& tables() const override { return tables_; }
  [[nodiscard]] const TraceModule* ModuleOf(const TraceFunction& function) const override {
    return function.module < tables_.modules.size() ? &tables_.modules[function.module] : nullptr;
  }
  std::unique_ptr<ThreadCalls> CallsOf(size_t thread_row) override;
  [[nodiscard]] const Counters& counters() const override { return counters_; }
  [[nodiscard]] const std::string& damage() const override { return damage_; }
  [[nodiscard]] std::string FormatName() const override {
    return fmt::format("uftrace.data, version {}", info_.version);
  }
  [[nodiscard]] uint64_t bytes() const override { return bytes_; }

  UftraceSymbols& symbols() { return symbols_; }
  Counters& counts() { return counters_; }
  [[nodiscard]] const std::vector<SessionStart>& SessionsOf(uint32_t pid) { return sessions_[pid]; }
  void AddDamage(const std::string& text) {
    if (damage_.empty()) damage_ = text;
  }

 private:
  void TakeTask(const UftraceTaskLine& line);
  void AddThread(uint32_t pid, uint32_t tid, const std::string& comm);
  void FindThreads();
  void TakeInfo();

  std::unique_ptr<TraceFolder> folder_;
  UftraceInfo info_;
  TraceTables tables_;
  Counters counters_;
  UftraceSymbols symbols_;
  std::map<uint32_t, std::vector<SessionStart>> sessions_;  // by pid
  std::map<uint32_t, std::string> comms_;                   // by pid
  std::map<uint32_t, uint32_t> rows_;                       // of threads, by tid
  std::string damage_;
  uint64_t bytes_ = 0;
};

void Recording::AddThread(uint32_t pid, uint32_t tid, const std::string& comm) {
  const auto row = static_cast<uint32_t>(tables_.threads.size());
  if (!rows_.try_emplace(tid, row).second) return;
  tables_.threads.push_back({.index = row, .pid = pid, .tid = tid, .comm = comm});
}

void Recording::TakeTask(const UftraceTaskLine& line) {
  switch (line.kind) {
    case UftraceTaskLine::Kind::kSession: {
      std::vector<SessionStart>& sessions = sessions_[line.pid];
      if (!sessions.empty()) {
        tables_.execs.push_back({.ticks = line.nanoseconds, .pid = line.pid, .path = line.name});
      }
      sessions.push_back({line.nanoseconds, symbols_.AddSession(line.sid, line.pid)});
      comms_[line.pid] = line.name.substr(line.name.rfind('/') + 1);
      break;
    }
    case UftraceTaskLine::Kind::kTask:
      AddThread(line.pid, line.tid, comms_[line.pid]);
      break;
    case UftraceTaskLine::Kind::kFork:
      tables_.forks.push_back(
          {.ticks = line.nanoseconds, .pid = line.pid, .parent_pid = line.parent_pid});
      if (sessions_[line.pid].empty()) {
        const std::vector<SessionStart> inherited = sessions_[line.parent_pid];
        sessions_[line.pid] = inherited;
        comms_[line.pid] = comms_[line.parent_pid];
      }
      AddThread(line.pid, line.tid, comms_[line.pid]);
      break;
    case UftraceTaskLine::Kind::kLibrary:
      symbols_.AddLibrary(line.sid, line.base, line.name);
      break;
  }
}

// Threads that task.txt lacks; and sizes.
void Recording::FindThreads() {
  for (const std::string& name : folder_->Files()) {
    const Result<std::unique_ptr<FileSource>> file = folder_->Open(name);
    const uint64_t size = file ? (*file)->size().value_or(0) : 0;
    bytes_ += size;
    if (!name.ends_with(".dat")) continue;
    const std::string_view stem = std::string_view(name).substr(0, name.size() - 4);
    uint32_t tid = 0;
    const auto [end, code] = std::from_chars(stem.data(), stem.data() + stem.size(), tid);
    if (code == std::errc() && end == stem.data() + stem.size()) {
      AddThread(tid, tid, comms_[tid]);
    } else {  // kernel-cpu0.dat, perf-cpu0.dat
      counters_.Add("uftrace.passed_over_bytes", size);
    }
  }
}

void Recording::TakeInfo() {
  tables_.host.command_line = info_.Line("cmdline");
  tables_.host.host_name = info_.Line("osinfo:hostname");
  tables_.host.kernel = info_.Line("osinfo:kernel");
  tables_.host.cpu = info_.Line("cpuinfo:desc");
  const std::string_view cpus = info_.Line("cpuinfo:nr_cpus");
  std::from_chars(cpus.data(), cpus.data() + cpus.size(), tables_.host.cpus);
}

Status Recording::Open() {
  TRY_ASSIGN(const std::vector<uint8_t> info, ReadWhole(*folder_, "info", kMaxInfo));
  Result<UftraceInfo> parsed = ParseUftraceInfo(info);
  if (!parsed) {
    return Fail(std::move(parsed.error()).At(folder_->name() + "/info", parsed.error().offset));
  }
  info_ = std::move(*parsed);
  TakeInfo();
  const Result<std::vector<uint8_t>> tasks = ReadWhole(*folder_, "task.txt", SIZE_MAX);
  if (!tasks) {
    AddDamage(tasks.error().ToString());
  } else {
    std::vector<UftraceTaskLine> lines = ParseUftraceTasks(AsText(*tasks), counters_);
    for (const UftraceTaskLine& line : lines) TakeTask(line);
  }
  FindThreads();
  return {};
}

// The records of one .dat file, as events.
class RecordCalls : public ThreadCalls {
 public:
  RecordCalls(Recording& recording, std::unique_ptr<FileSource> file, uint32_t pid)
      : recording_(recording), file_(std::move(file)), sessions_(recording.SessionsOf(pid)) {
    uint8_t first[UftraceRecord::kSize];
    const Result<size_t> n = file_ == nullptr ? 0 : file_->ReadAt(0, first);
    if (n && *n == sizeof(first)) {
      last_ = UftraceRecord::Decode(first).nanoseconds;
    } else {
      ended_ = true;
    }
  }

  [[nodiscard]] uint64_t NextTicks() const override { return ended_ ? UINT64_MAX : last_; }
  Result<EventBatch> Next() override;

 private:
  struct Open {
    uint32_t depth = 0;
    uint32_t row = 0;
  };
  Result<bool> Have(size_t size);
  void TakeSession(uint64_t nanoseconds);
  void LeaveFrom(uint32_t depth, uint64_t nanoseconds);
  Status TakeRecord(const UftraceRecord& record);
  Status TakeCall(const UftraceRecord& record);
  Result<bool> TakeValues(const std::vector<UftraceSpec>& specs, OrderedEvent& event);
  void PutString(std::string_view text);
  Status PassPayload();
  void Stop(const std::string& why);

  Recording& recording_;
  std::unique_ptr<FileSource> file_;
  const std::vector<SessionStart>& sessions_;
  size_t next_session_ = 0;
  size_t session_ = SIZE_MAX;
  bool ended_ = false;
  uint64_t last_ = 0;
  uint64_t offset_ = 0;  // in the file, of buffer_[at_]
  std::vector<uint8_t> buffer_;
  size_t at_ = 0;
  std::vector<Open> open_;
  std::vector<OrderedEvent> events_;
  ByteWriter values_{Endian::kLittle};
};

// Whether so many bytes are left in the file; then they are in the buffer.
Result<bool> RecordCalls::Have(size_t size) {
  if (buffer_.size() - at_ >= size) return true;
  buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(at_));
  at_ = 0;
  while (buffer_.size() < size) {
    const size_t old = buffer_.size();
    buffer_.resize(std::max(kReadPiece, size));
    TRY_ASSIGN(const size_t n, file_->ReadAt(offset_ + old, std::span(buffer_).subspan(old)));
    buffer_.resize(old + n);
    if (n == 0) return false;
  }
  return true;
}

void RecordCalls::Stop(const std::string& why) {
  const uint64_t rest = file_->size().value_or(offset_) - offset_;
  recording_.AddDamage(fmt::format("{}: offset {:#x}: {}; {} bytes are not read", file_->name(),
                                   offset_, why, rest));
  recording_.counts().Add("tracedata.damaged_bytes", rest);
  ended_ = true;
}

// After an exec other functions stand at the addresses, and no call is open.
void RecordCalls::TakeSession(uint64_t nanoseconds) {
  while (next_session_ < sessions_.size() &&
         (session_ == SIZE_MAX || sessions_[next_session_].nanoseconds <= nanoseconds)) {
    if (session_ != SIZE_MAX) LeaveFrom(0, nanoseconds);
    session_ = sessions_[next_session_++].session;
  }
  if (session_ == SIZE_MAX) session_ = recording_.symbols().AddSession("");
}

// Ends calls at `depth` and deeper, of which the exits were not recorded.
void RecordCalls::LeaveFrom(uint32_t depth, uint64_t nanoseconds) {
  while (!open_.empty() && open_.back().depth >= depth) {
    events_.push_back({nanoseconds, EventHead(EventKind::kLeft, open_.back().row), 0});
    open_.pop_back();
  }
}

Result<EventBatch> RecordCalls::Next() {
  events_.clear();
  values_.Clear();
  while (!ended_ && events_.size() < kBatch) {
    TRY_ASSIGN(const bool whole, Have(UftraceRecord::kSize));
    if (!whole) {
      if (at_ != buffer_.size()) Stop("ends within a record");
      ended_ = true;
      break;
    }
    UftraceRecord record = UftraceRecord::Decode(buffer_.data() + at_);
    if (!record.is_one) {
      Stop("no record where one belongs");
      break;
    }
    if (record.nanoseconds < last_) {
      recording_.counts().Add("tracedata.out_of_order");
      record.nanoseconds = last_;
    }
    last_ = record.nanoseconds;
    at_ += UftraceRecord::kSize;
    offset_ += UftraceRecord::kSize;
    TRY(TakeRecord(record));
  }
  if (events_.empty()) {
    buffer_ = {};
    events_ = {};
    return EventBatch{};
  }
  return EventBatch{events_, values_.view()};
}

Status RecordCalls::TakeRecord(const UftraceRecord& record) {
  switch (record.type) {
    case UftraceType::kLost: {
      const auto count = static_cast<uint32_t>(std::min<uint64_t>(record.address, UINT32_MAX));
      const auto reason = static_cast<uint32_t>(LossReason::kNoSpace);
      events_.push_back({record.nanoseconds, EventHead(EventKind::kLost, reason), count});
      break;
    }
    case UftraceType::kEvent:
      recording_.counts().Add("uftrace.event");
      break;
    case UftraceType::kEntry:
    case UftraceType::kExit:
      return TakeCall(record);
  }
  return record.more ? PassPayload() : Status();
}

Status RecordCalls::TakeCall(const UftraceRecord& record) {
  TakeSession(record.nanoseconds);
  const UftraceSymbols::Function function = recording_.symbols().At(session_, record.address);
  const bool entry = record.type == UftraceType::kEntry;
  LeaveFrom(entry ? record.depth : record.depth + 1, record.nanoseconds);
  if (entry) {
    open_.push_back({record.depth, function.row});
  } else if (!open_.empty() && open_.back().depth == record.depth) {
    if (open_.back().row == function.row) {
      open_.pop_back();
    } else {  // setjmp returns once more, and what was called meanwhile does not
      LeaveFrom(record.depth, record.nanoseconds);
    }
  }
  OrderedEvent event{record.nanoseconds,
                     EventHead(entry ? EventKind::kEntry : EventKind::kExit, function.row), 0};
  if (record.more) {
    static const std::vector<UftraceSpec> kNone;
    const std::vector<UftraceSpec>& specs = function.specs == nullptr ? kNone
                                            : entry                   ? function.specs->arguments
                                                                      : function.specs->returns;
    TRY_ASSIGN(const bool taken, TakeValues(specs, event));
    if (!taken) {
      recording_.counts().Add("uftrace.unknown_values");
      TRY(PassPayload());
    }
  }
  events_.push_back(event);
  return {};
}

// A text that goes on ends with dots. (What stands for one that is none is a text, too: "NULL",
// "<0x1234>".)
void RecordCalls::PutString(std::string_view text) {
  constexpr std::string_view kGoesOn = "...";
  constexpr size_t kWhole = 98;  // bytes of a text, at most
  const bool goes_on = text.size() == kWhole && text.ends_with(kGoesOn);
  if (goes_on) text.remove_suffix(kGoesOn.size());
  values_.U16(static_cast<uint16_t>(text.size() | (goes_on ? ValueFormat::kTextGoesOn : 0)));
  values_.Text(text);
}

// Takes a payload as `specs` say: each value is padded to four bytes, the whole to eight. False: it
// is not as they say, and nothing was taken.
Result<bool> RecordCalls::TakeValues(const std::vector<UftraceSpec>& specs, OrderedEvent& event) {
  if (specs.empty()) return false;
  TRY(Have(kMaxPayload));
  const ByteView bytes = ByteView(buffer_).subspan(at_);
  const size_t start = values_.size();
  values_.U32(0);
  size_t used = 0;
  bool ok = true;
  for (const UftraceSpec& spec : specs) {
    size_t size = spec.bytes;
    if (spec.format.kind == ValueFormat::Kind::kString) {
      ok = bytes.size() >= used + 2;
      size = ok ? 2 + LoadUnaligned<uint16_t>(bytes.data() + used, Endian::kLittle) : 0;
    }
    ok = ok && size <= kMaxPayload && used + size <= bytes.size();
    if (!ok) break;
    if (spec.format.kind == ValueFormat::Kind::kString) {
      PutString(AsText(bytes.subspan(used + 2, size - 2)));
    } else if (spec.format.kind != ValueFormat::Kind::kStruct) {
      values_.Bytes(bytes.subspan(used, std::min<size_t>(size, spec.format.bytes)));
    }
    used += (size + 3) / 4 * 4;
  }
  used = (used + 7) / 8 * 8;
  // The next record must follow.
  const bool at_end = used == bytes.size();
  ok = ok && used <= bytes.size() &&
       (at_end || (used + UftraceRecord::kSize <= bytes.size() &&
                   UftraceRecord::Decode(bytes.data() + used).is_one));
  if (!ok) {
    std::vector<uint8_t> kept = values_.Take();
    kept.resize(start);
    values_.Bytes(kept);
    return false;
  }
  values_.PutAt(start, static_cast<uint32_t>(values_.size() - start - 4));
  values_.AlignTo(4);
  at_ += used;
  offset_ += used;
  event.head |= kValuesBit;
  event.detail = static_cast<uint32_t>(start);
  return true;
}

// Goes on at the next thing that looks like a record.
Status RecordCalls::PassPayload() {
  size_t passed = 0;
  while (passed < kMaxPayload) {
    TRY_ASSIGN(const bool whole, Have(UftraceRecord::kSize));
    if (!whole) {
      offset_ += buffer_.size() - at_;
      at_ = buffer_.size();
      return {};
    }
    const UftraceRecord record = UftraceRecord::Decode(buffer_.data() + at_);
    if (passed != 0 && record.is_one && record.nanoseconds >= last_ &&
        record.nanoseconds - last_ < kMaxStep) {
      return {};
    }
    at_ += 8;
    offset_ += 8;
    passed += 8;
  }
  return {};
}

std::unique_ptr<ThreadCalls> Recording::CallsOf(size_t thread_row) {
  const TraceThread& thread = tables_.threads[thread_row];
  Result<std::unique_ptr<FileSource>> file = folder_->Open(fmt::format("{}.dat", thread.tid));
  return std::make_unique<RecordCalls>(*this, file ? std::move(*file) : nullptr, thread.pid);
}

}  // namespace

bool HasUftraceMagic(ByteView bytes) { return AsText(bytes).starts_with(kUftraceMagic); }

Result<std::unique_ptr<TraceSource>> OpenUftraceData(std::unique_ptr<TraceFolder> folder) {
  auto recording = std::make_unique<Recording>(std::move(folder));
  TRY(recording->Open());
  return recording;
}

}  // namespace stackreel::tracedata
