#include "tracedata/uftrace_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_writer.h"
#include "tracedata/functions_by_address.h"
#include "tracedata/open_calls.h"
#include "tracedata/uftrace_record.h"
#include "tracedata/uftrace_text.h"

namespace stackreel::tracedata {

namespace {

constexpr char kSession[] = "0000000000000001";
constexpr uint64_t kFirstModule = 0x100000000000;
constexpr uint64_t kModuleSpan = uint64_t{1} << 36;  // of addresses, for each module
constexpr uint64_t kStackStart = 0x7ffff0000000;
constexpr size_t kPiece = 256 << 10;
constexpr uint16_t kMaxStack = 1024;
// Bits of the info mask: which groups of lines there are.
constexpr uint64_t kInfoMask =
    1 << 0 | 1 << 3 | 1 << 4 | 1 << 6 | 1 << 7 | 1 << 11 | 1 << 12 | 1 << 13;
constexpr uint64_t kBuildIdMask = 1 << 1;
constexpr uint64_t kExitStatusMask = 1 << 2;
constexpr uint64_t kArgumentsMask = 1 << 10;

// A name that fits on a line of fields.
std::string Printable(std::string_view text, std::string_view bad) {
  std::string out(text);
  for (char& c : out) {
    if (static_cast<uint8_t>(c) < 0x20 || bad.find(c) != std::string_view::npos) c = '_';
  }
  return out;
}

// A name of a type as a specification can have it.
std::string TypeName(std::string_view name, uint32_t id) {
  std::string out(name);
  for (char& c : out) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!plain) c = '_';
  }
  // Others may have the same.
  return fmt::format("{}{}{}", out, out.empty() ? "enum_" : "_", id);
}

// How many bytes a value takes in a payload. (An enumeration's value is a whole register's.)
size_t PayloadBytes(const ValueFormat& format) {
  using Kind = ValueFormat::Kind;
  switch (format.kind) {
    case Kind::kFloat:
      return format.bytes == 16 ? 10 : format.bytes;
    case Kind::kStruct:
      return 4;
    case Kind::kEnumeration:
    case Kind::kPointer:
    case Kind::kFunction:
      return 8;
    default:
      return std::min<size_t>(format.bytes, 8);
  }
}

// Takes a text off the front of `values`, as uftrace writes it.
std::string TakeText(ByteView& values) {
  if (values.size() < sizeof(uint16_t)) {
    values = {};
    return "?";
  }
  const auto word = LoadUnaligned<uint16_t>(values.data(), Endian::kLittle);
  values = values.subspan(sizeof(word));
  if (word == ValueFormat::kNullText) return "NULL";
  if (word == ValueFormat::kUnreadableText) {
    uint64_t pointer = 0;
    if (values.size() >= sizeof(pointer)) {
      pointer = LoadUnaligned<uint64_t>(values.data(), Endian::kLittle);
    }
    values = values.subspan(std::min(values.size(), sizeof(pointer)));
    return fmt::format("<{:#x}>", pointer);
  }
  const size_t size = std::min<size_t>(word & ~ValueFormat::kTextGoesOn, values.size());
  std::string text(AsText(values.first(size)));
  values = values.subspan(size);
  if ((word & ValueFormat::kTextGoesOn) != 0) text += "...";
  return text;
}

class UftraceWriter {
 public:
  UftraceWriter(TraceSource& source, FolderWriter& out)
      : source_(source), tables_(source.tables()), out_(out), functions_(source.tables()) {}
  Status Write();
  // Of what was written.
  [[nodiscard]] const CallLosses& losses() const { return losses_; }

 private:
  struct Module {
    std::string path, file;  // with its folder, and without
    std::string build_id;
    std::map<uint64_t, uint32_t> functions;  // by address in it
    uint64_t end = 0;
  };
  void PutEvent(const EventBatch& batch, const OrderedEvent& event, OpenCalls& open);
  Status WriteThread(size_t row);
  Status WriteCalls(size_t row, OpenCalls& open, std::unique_ptr<ByteSink>& file);
  Result<std::unique_ptr<ByteSink>> CreateFile(const TraceThread& thread, uint64_t first_ticks);
  void NoteUntoldLosses();
  void PutUntoldLosses(uint32_t pid, uint64_t ticks, size_t depth);
  Status WriteLossesOfNone();
  [[nodiscard]] std::optional<size_t> AfterExec(size_t row) const;
  Status WriteSymbols();
  Status WriteTasks();
  Status WriteMap();
  Status WriteInfo();
  Status WriteFile(const std::string& name, std::string_view text);
  void PutRecord(UftraceType type, uint64_t ticks, uint32_t depth, uint64_t address, bool more);
  void PutValues(const std::vector<ValueFormat>& formats, ByteView values);
  uint64_t AddressOf(uint32_t function);
  // Of a function that the trace knows, what stands for its address; else what is given.
  uint64_t WrittenAddress(uint64_t avma);
  size_t ModuleFor(const TraceFunction& function);
  [[nodiscard]] std::string SpecText(const std::vector<ValueFormat>& formats, bool returns) const;
  [[nodiscard]] std::string EnumerationName(uint32_t id) const;
  [[nodiscard]] std::string EnumerationLines() const;
  [[nodiscard]] uint64_t Time(uint64_t ticks) const;
  static std::string Stamp(uint64_t nanoseconds) {
    return fmt::format("{}.{:09}", nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000);
  }

  TraceSource& source_;
  const TraceTables& tables_;
  FolderWriter& out_;
  std::vector<Module> modules_;
  std::map<std::string, size_t> module_numbers_;  // by path
  std::set<std::string> files_;
  std::vector<uint64_t> addresses_;  // by function; 0: not known yet
  FunctionsByAddress functions_;
  ByteWriter records_{Endian::kLittle};
  CallLosses losses_;
  std::map<uint32_t, uint64_t> untold_losses_;  // by process: calls that only facts tell of
  uint64_t first_ = UINT64_MAX, last_ = 0, last_ticks_ = 0;
  struct Written {
    uint32_t pid, tid;
    uint64_t first;
  };
  std::vector<Written> threads_;
  std::set<uint32_t> tids_;
  std::set<size_t> written_;  // rows of threads
};

uint64_t UftraceWriter::Time(uint64_t ticks) const {
  const TraceClock& clock = tables_.clock;
  const __int128 since = static_cast<__int128>(ticks) - static_cast<__int128>(clock.origin_ticks);
  const __int128 time = since * 1'000'000'000 / static_cast<__int128>(clock.ticks_per_second) +
                        static_cast<__int128>(clock.origin_nanoseconds);
  return time < 0 ? 0 : static_cast<uint64_t>(time);
}

size_t UftraceWriter::ModuleFor(const TraceFunction& function) {
  const TraceModule* module = source_.ModuleOf(function);
  const std::string path =
      module == nullptr || module->path.empty() ? "/unknown" : Printable(module->path, "");
  const auto [known, fresh] = module_numbers_.try_emplace(path, modules_.size());
  if (!fresh) return known->second;
  Module& made = modules_.emplace_back();
  made.path = path;
  if (module != nullptr) made.build_id = module->build_id.ToHex();
  made.file = path.substr(path.rfind('/') + 1);
  if (!files_.insert(made.file).second && made.build_id.size() >= 4) {
    made.file += "-" + made.build_id.substr(0, 4);
    files_.insert(made.file);
  }
  return known->second;
}

uint64_t UftraceWriter::AddressOf(uint32_t row) {
  if (row >= addresses_.size()) addresses_.resize(tables_.functions.size());
  if (addresses_[row] != 0) return addresses_[row];
  const TraceFunction& function = tables_.functions[row];
  const size_t number = ModuleFor(function);
  Module& module = modules_[number];
  uint64_t offset = function.svma.value;
  // Where that is no place in a file of this size, or another's, any will do.
  if (offset == 0 || offset >= kModuleSpan / 2 || module.functions.contains(offset)) {
    offset = kModuleSpan / 2 + uint64_t{row} * 16;
  }
  while (!module.functions.try_emplace(offset, row).second) ++offset;
  module.end = std::max(module.end, offset + std::clamp<uint64_t>(function.size, 1, 1 << 20));
  addresses_[row] = kFirstModule + number * kModuleSpan + offset;
  return addresses_[row];
}

uint64_t UftraceWriter::WrittenAddress(uint64_t avma) {
  const std::optional<uint32_t> row = functions_.RowAt(Avma(avma));
  return row ? AddressOf(*row) : avma;
}

void UftraceWriter::PutRecord(UftraceType type, uint64_t ticks, uint32_t depth, uint64_t address,
                              bool more) {
  const UftraceRecord record{.nanoseconds = Time(ticks),
                             .type = type,
                             .more = more,
                             .depth = std::min(depth, UftraceRecord::kMaxDepth),
                             .address = address};
  uint8_t bytes[UftraceRecord::kSize];
  record.Encode(bytes);
  records_.Bytes(bytes);
}

void UftraceWriter::PutValues(const std::vector<ValueFormat>& formats, ByteView values) {
  for (const ValueFormat& format : formats) {
    if (format.kind == ValueFormat::Kind::kString) {
      const std::string text = TakeText(values);
      records_.U16(static_cast<uint16_t>(text.size()));
      records_.Text(text);
    } else {
      const size_t there = std::min<size_t>(format.bytes, values.size());
      const size_t size = PayloadBytes(format);
      const ByteView bytes = values.first(format.kind == ValueFormat::Kind::kStruct ? 0 : there);
      if (format.kind == ValueFormat::Kind::kFunction && there == sizeof(uint64_t)) {
        records_.U64(WrittenAddress(LoadUnaligned<uint64_t>(bytes.data(), Endian::kLittle)));
        values = values.subspan(there);
        continue;
      }
      const size_t written = std::min(bytes.size(), size);
      records_.Bytes(bytes.first(written));
      // Of a number that is shorter here than there, its sign goes on.
      const bool negative = format.kind == ValueFormat::Kind::kEnumeration && written != 0 &&
                            (bytes[written - 1] & 0x80) != 0;
      for (size_t i = written; i < size; ++i) records_.U8(negative ? 0xff : 0);
      values = values.subspan(bytes.size());
    }
    records_.AlignTo(4);
  }
  records_.AlignTo(8);
}

void UftraceWriter::PutEvent(const EventBatch& batch, const OrderedEvent& event, OpenCalls& open) {
  const auto depth = [&] { return static_cast<uint32_t>(open.depth()); };
  const uint64_t ticks = event.ticks;
  if (event.kind() == EventKind::kLost) {
    losses_.Add(event);
    PutRecord(UftraceType::kLost, ticks, depth(), event.detail, false);
    return;
  }
  const bool entry = event.kind() == EventKind::kEntry;
  const uint32_t row = event.function();
  const bool known = entry || open.End(row, [&](uint32_t inner) {
    PutRecord(UftraceType::kExit, ticks, depth(), AddressOf(inner), false);
  });
  if (!known) return;  // it began before the trace
  const TraceFunction& function = tables_.functions[row];
  const std::vector<ValueFormat>& formats = entry ? function.arguments : function.returns;
  const ByteView values = batch.ValuesOf(event);
  const bool has_values =
      !values.empty() || (event.kind() != EventKind::kLeft && TakeNoBytes(formats));
  const bool more = has_values && !formats.empty();
  PutRecord(entry ? UftraceType::kEntry : UftraceType::kExit, ticks, depth(), AddressOf(row), more);
  if (entry) open.Enter(row);
  if (more) PutValues(formats, values);
}

// What a process has executed is another thread of ours, with the same numbers, and the same of
// uftrace.
std::optional<size_t> UftraceWriter::AfterExec(size_t row) const {
  const TraceThread& before = tables_.threads[row];
  if (before.tid != before.pid ||
      std::ranges::find(tables_.execs, before.pid, &ProcessExec::pid) == tables_.execs.end()) {
    return std::nullopt;
  }
  for (size_t next = row + 1; next < tables_.threads.size(); ++next) {
    const TraceThread& thread = tables_.threads[next];
    if (thread.pid == before.pid && thread.tid == before.tid) return next;
  }
  return std::nullopt;
}

Status UftraceWriter::WriteThread(size_t row) {
  OpenCalls open;
  std::unique_ptr<ByteSink> file;
  records_.Clear();
  for (std::optional<size_t> next = row; next; next = AfterExec(*next)) {
    written_.insert(*next);
    TRY(WriteCalls(*next, open, file));
  }
  if (file == nullptr) return {};
  PutUntoldLosses(tables_.threads[row].pid, last_ticks_, open.depth());
  return file->Write(records_.view());
}

Result<std::unique_ptr<ByteSink>> UftraceWriter::CreateFile(const TraceThread& thread,
                                                            uint64_t first_ticks) {
  // A number that was used again is another thread.
  uint32_t tid = thread.tid;
  while (!tids_.insert(tid).second) tid = *tids_.rbegin() + 1;
  threads_.push_back({thread.pid, tid, Time(first_ticks)});
  first_ = std::min(first_, Time(first_ticks));
  return out_.Create(fmt::format("{}.dat", tid));
}

// uftrace has no other place for them than among a thread's records.
void UftraceWriter::NoteUntoldLosses() {
  for (const TraceLoss& loss : tables_.losses) {
    if (loss.calls != 0) untold_losses_[loss.pid] += loss.calls;
  }
}

// It is the first thread of the process that has records.
void UftraceWriter::PutUntoldLosses(uint32_t pid, uint64_t ticks, size_t depth) {
  const auto untold = untold_losses_.find(pid);
  if (untold == untold_losses_.end()) return;
  PutRecord(UftraceType::kLost, ticks, static_cast<uint32_t>(depth), untold->second, false);
  untold_losses_.erase(untold);
}

// Of processes of which nothing else was recorded.
Status UftraceWriter::WriteLossesOfNone() {
  while (!untold_losses_.empty()) {
    const uint32_t pid = untold_losses_.begin()->first;
    const uint64_t ticks = std::max(last_ticks_, tables_.clock.origin_ticks);
    TRY_ASSIGN(const auto file, CreateFile({.pid = pid, .tid = pid}, ticks));
    last_ = std::max(last_, Time(ticks));
    records_.Clear();
    PutUntoldLosses(pid, ticks, 0);
    TRY(file->Write(records_.view()));
  }
  return {};
}

// Behind those of what the thread was before, if there is a file already.
Status UftraceWriter::WriteCalls(size_t row, OpenCalls& open, std::unique_ptr<ByteSink>& file) {
  const TraceThread& thread = tables_.threads[row];
  const std::unique_ptr<ThreadCalls> calls = source_.CallsOf(row);
  bool begins = true;
  while (true) {
    TRY_ASSIGN(const EventBatch batch, calls->Next());
    if (batch.events.empty()) return {};
    const uint64_t first = batch.events.front().ticks;
    if (file == nullptr) {
      TRY_ASSIGN(file, CreateFile(thread, first));
    } else if (begins) {
      open.EndAll([&](uint32_t inner) {
        PutRecord(UftraceType::kExit, first, static_cast<uint32_t>(open.depth()), AddressOf(inner),
                  false);
      });
    }
    begins = false;
    for (const OrderedEvent& event : batch.events) PutEvent(batch, event, open);
    last_ticks_ = batch.events.back().ticks;
    last_ = std::max(last_, Time(last_ticks_));
    if (records_.size() < kPiece) continue;
    TRY(file->Write(records_.view()));
    records_.Clear();
  }
}

std::string UftraceWriter::EnumerationName(uint32_t id) const {
  for (const TraceEnumeration& one : tables_.enumerations) {
    if (one.id == id) return TypeName(one.name, id);
  }
  return {};
}

std::string UftraceWriter::EnumerationLines() const {
  std::string text;
  for (const TraceEnumeration& one : tables_.enumerations) {
    if (one.names.empty()) continue;
    text += fmt::format("E: enum {} {{", TypeName(one.name, one.id));
    for (const TraceEnumeration::Name& name : one.names) {
      text += fmt::format("{}{}={}", &name == one.names.data() ? "" : ",",
                          Printable(name.text, "=,{}"), name.value);
    }
    text += "}\n";
  }
  return text;
}

std::string UftraceWriter::SpecText(const std::vector<ValueFormat>& formats, bool returns) const {
  std::string text = "@";
  for (size_t i = 0; i < formats.size(); ++i) {
    const ValueFormat& format = formats[i];
    const size_t bits = 8 * PayloadBytes(format);
    const bool is_float = format.kind == ValueFormat::Kind::kFloat;
    if (i > 0) text += ',';
    text += returns ? "retval" : fmt::format("{}{}", is_float ? "fparg" : "arg", i + 1);
    switch (format.kind) {
      case ValueFormat::Kind::kNumber:
        if (bits != 64) text += fmt::format("/d{}", bits);
        break;
      case ValueFormat::Kind::kSigned:
        text += fmt::format("/i{}", bits);
        break;
      case ValueFormat::Kind::kEnumeration: {
        const std::string name = EnumerationName(format.enumeration);
        text += name.empty() ? "/i64" : "/e:" + name;
        break;
      }
      case ValueFormat::Kind::kStruct:
        text += "/t4:struct";
        break;
      case ValueFormat::Kind::kBool:
      case ValueFormat::Kind::kUnsigned:
        text += fmt::format("/u{}", bits);
        break;
      case ValueFormat::Kind::kHex:
        text += fmt::format("/x{}", bits);
        break;
      case ValueFormat::Kind::kPointer:
      case ValueFormat::Kind::kFunction:
        text += "/p";
        break;
      case ValueFormat::Kind::kCharacter:
        text += "/c";
        break;
      case ValueFormat::Kind::kString:
        text += "/s";
        break;
      case ValueFormat::Kind::kFloat:
        text += returns ? fmt::format("/f{}", bits) : fmt::format("/{}", bits);
        break;
    }
  }
  return text;
}

Status UftraceWriter::WriteFile(const std::string& name, std::string_view text) {
  TRY_ASSIGN(const std::unique_ptr<ByteSink> file, out_.Create(name));
  return file->Write(AsBytes(text));
}

Status UftraceWriter::WriteSymbols() {
  const std::string enumerations = EnumerationLines();
  for (const Module& module : modules_) {
    std::string symbols = fmt::format("# symbols: {}\n# path name: {}\n# build-id: {}\n",
                                      module.functions.size() + 1, module.path, module.build_id);
    std::string debug =
        fmt::format("# path name: {}\n# build-id: {}\n", module.path, module.build_id);
    const size_t debug_head = debug.size();
    bool any = false;
    for (const auto& [offset, row] : module.functions) {
      const TraceFunction& function = tables_.functions[row];
      const std::string name = Printable(function.name, "");
      symbols += fmt::format("{:016x} T {}\n", offset, name);
      if (function.arguments.empty() && function.returns.empty()) continue;
      any = true;
      debug += fmt::format("F: {:x} {}\n", offset, name);
      if (!function.arguments.empty()) {
        debug += fmt::format("A: {}\n", SpecText(function.arguments, false));
      }
      if (!function.returns.empty()) {
        debug += fmt::format("R: {}\n", SpecText(function.returns, true));
      }
    }
    if (any) debug.insert(debug_head, enumerations);
    symbols += fmt::format("{:016x} ? __sym_end\n", module.end);
    TRY(WriteFile(module.file + ".sym", symbols));
    if (any) TRY(WriteFile(module.file + ".dbg", debug));
  }
  return {};
}

Status UftraceWriter::WriteMap() {
  std::string text;
  for (size_t i = 0; i < modules_.size(); ++i) {
    const uint64_t start = kFirstModule + i * kModuleSpan;
    text += fmt::format("{:012x}-{:012x} r-xp 00000000 00:00 0                          {}", start,
                        start + (modules_[i].end + 4095) / 4096 * 4096, modules_[i].path);
    if (!modules_[i].build_id.empty()) text += " build-id:" + modules_[i].build_id;
    text += '\n';
  }
  text += fmt::format("{:012x}-{:012x} rw-p 00000000 00:00 0                          [stack]\n",
                      kStackStart, kStackStart + 0x21000);
  return WriteFile(fmt::format("sid-{}.map", kSession), text);
}

Status UftraceWriter::WriteTasks() {
  const std::string program = modules_.empty() ? "/unknown" : modules_[0].path;
  std::map<uint32_t, const ProcessFork*> forks;
  for (const ProcessFork& fork : tables_.forks) forks.try_emplace(fork.pid, &fork);
  // A child has its parent's open calls, and so may begin when that does; it is told of behind it.
  std::ranges::stable_sort(threads_, {}, [&](const Written& thread) {
    const auto fork = forks.find(thread.pid);
    return std::pair(thread.first, fork == forks.end() ? 0 : fork->second->ticks);
  });
  std::multimap<uint64_t, std::string> lines;
  std::set<uint32_t> begun;
  for (const Written& thread : threads_) {
    const auto fork = forks.find(thread.pid);
    const bool forked = fork != forks.end();
    if (begun.insert(thread.pid).second) {
      const uint64_t start = forked ? std::min(Time(fork->second->ticks), thread.first) : first_;
      lines.emplace(start, forked ? fmt::format("FORK timestamp={} pid={} ppid={}\n", Stamp(start),
                                                thread.pid, fork->second->parent_pid)
                                  : fmt::format("SESS timestamp={} pid={} sid={} exename=\"{}\"\n",
                                                Stamp(start), thread.pid, kSession,
                                                Printable(program, "\"")));
      if (forked && thread.tid == thread.pid) continue;
    }
    lines.emplace(thread.first, fmt::format("TASK timestamp={} tid={} pid={}\n",
                                            Stamp(thread.first), thread.tid, thread.pid));
  }
  std::string text;
  for (const auto& [time, line] : lines) text += line;
  return WriteFile("task.txt", text);
}

Status UftraceWriter::WriteInfo() {
  const bool values = std::ranges::any_of(tables_.functions, [](const TraceFunction& function) {
    return !function.arguments.empty() || !function.returns.empty();
  });
  const auto bit = [](UftraceFeature feature) {
    return uint64_t{1} << static_cast<uint8_t>(feature);
  };
  uint64_t features = bit(UftraceFeature::kTaskSession) | bit(UftraceFeature::kRelativeSymbols) |
                      bit(UftraceFeature::kMaxStack);
  if (values) {
    features |= bit(UftraceFeature::kArguments) | bit(UftraceFeature::kReturns) |
                bit(UftraceFeature::kAutoArguments) | bit(UftraceFeature::kDebugInfo);
  }
  ByteWriter out(Endian::kLittle);
  out.Text(kUftraceMagic);
  out.U32(4);
  out.U16(kUftraceHeadSize);
  out.U8(1);
  out.U8(2);
  out.U64(features);
  const bool knows_status =
      !tables_.exits.empty() && tables_.exits[0].status != ProcessExit::kUnknownStatus;
  // uftrace reads nothing behind one that is empty.
  const std::string build_id = modules_.empty() ? "" : modules_[0].build_id;
  out.U64(kInfoMask | (build_id.empty() ? 0 : kBuildIdMask) | (knows_status ? kExitStatusMask : 0) |
          (values ? kArgumentsMask : 0));
  out.U16(kMaxStack);
  out.Zeros(kUftraceHeadSize - out.size());
  std::string tids;
  for (const Written& thread : threads_) {
    tids += fmt::format("{}{}", tids.empty() ? "" : ",", thread.tid);
  }
  const TraceHost& host = tables_.host;
  std::string text;
  text += fmt::format("exename:{}\n", modules_.empty() ? "/unknown" : modules_[0].path);
  if (!build_id.empty()) text += fmt::format("build_id:{}\n", build_id);
  if (knows_status) text += fmt::format("exit_status:{}\n", tables_.exits[0].status);
  text += fmt::format("cmdline:{}\n", Printable(host.command_line, ""));
  text += fmt::format(
      "cpuinfo:lines=2\ncpuinfo:nr_cpus={0} / {0} (online/possible)\n"
      "cpuinfo:desc={1}\n",
      host.cpus, Printable(host.cpu, ""));
  text += fmt::format("osinfo:lines=3\nosinfo:kernel={}\nosinfo:hostname={}\nosinfo:distro=\"\"\n",
                      Printable(host.kernel, ""), Printable(host.host_name, ""));
  text += fmt::format("taskinfo:lines=2\ntaskinfo:nr_tid={}\ntaskinfo:tids={}\n", threads_.size(),
                      tids);
  if (values) text += "argspec:lines=1\nauto-args:1\n";
  text += "record_date:\n";
  text += fmt::format("elapsed_time:{} sec\n", Stamp(last_ < first_ ? 0 : last_ - first_));
  text += "pattern_type:regex\nuftrace_version:stackreel " STACKREEL_VERSION "\n";
  out.Text(text);
  TRY_ASSIGN(const std::unique_ptr<ByteSink> file, out_.Create("info"));
  return file->Write(out.view());
}

Status UftraceWriter::Write() {
  losses_.AddFacts(tables_);
  NoteUntoldLosses();
  for (size_t row = 0; row < tables_.threads.size(); ++row) {
    if (!written_.contains(row)) TRY(WriteThread(row));
  }
  TRY(WriteLossesOfNone());
  TRY(WriteSymbols());
  TRY(WriteMap());
  TRY(WriteTasks());
  TRY(WriteFile("default.opts", ""));
  return WriteInfo();
}

}  // namespace

Result<CallLosses> WriteUftraceData(TraceSource& source, FolderWriter& out) {
  UftraceWriter writer(source, out);
  TRY(writer.Write());
  return writer.losses();
}

}  // namespace stackreel::tracedata
