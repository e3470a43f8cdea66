#include "tracedata/trace_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>

#include "tracedata/block.h"
#include "tracedata/event_order.h"
#include "tracedata/fact_wire.h"
#include "tracedata/id_rows.h"
#include "tracedata/open_across_gaps.h"

namespace stackreel::tracedata {

namespace {

constexpr size_t kScanWindow = 1 << 20;

// Where a block stands.
struct BlockPlace {
  uint64_t offset = 0;  // of its stored bytes
  BlockHead head;
};

// Finds the blocks of a file, one after another.
class BlockScan {
 public:
  BlockScan(FileSource& file, uint64_t start, uint64_t size)
      : file_(file), at_(start), size_(size) {}

  // Nothing: the end.
  Result<std::optional<BlockPlace>> Next() {
    while (at_ < size_) {
      uint8_t bytes[kBlockHeadSize];
      TRY_ASSIGN(const size_t n, file_.ReadAt(at_, bytes));
      const std::optional<BlockHead> head = DecodeBlockHead(ByteView(bytes, n));
      if (head && head->stored <= size_ - at_ - kBlockHeadSize) {
        const BlockPlace place{at_ + kBlockHeadSize, *head};
        at_ = place.offset + head->stored;
        return place;
      }
      if (head || n < kBlockHeadSize) {  // cut short
        if (bad_bytes_ == 0) first_bad_ = at_;
        bad_bytes_ += size_ - at_;
        at_ = size_;
        cut_ = true;
        break;
      }
      TRY(PassDamage());
    }
    return std::nullopt;
  }

  [[nodiscard]] uint64_t bad_bytes() const { return bad_bytes_; }
  [[nodiscard]] std::string Damage() const {
    if (bad_bytes_ == 0) return "";
    return fmt::format("{}: offset {:#x}: {}, {} bytes are not read", file_.name(), first_bad_,
                       cut_ ? "ends within a block" : "no block where one belongs", bad_bytes_);
  }

 private:
  Status PassDamage() {
    if (bad_bytes_ == 0) first_bad_ = at_;
    const uint64_t start = at_;
    std::vector<uint8_t> window(kScanWindow);
    uint64_t from = at_ + 1;
    at_ = size_;
    while (from < size_) {
      TRY_ASSIGN(const size_t n, file_.ReadAt(from, window));
      if (n == 0) break;
      const size_t found = FindBlockHead(ByteView(window).first(n), 0);
      if (found < n) {
        at_ = from + found;
        break;
      }
      if (n < kBlockHeadSize) break;
      from += n - (kBlockHeadSize - 1);
    }
    bad_bytes_ += at_ - start;
    return {};
  }

  FileSource& file_;
  uint64_t at_, size_;
  uint64_t bad_bytes_ = 0, first_bad_ = 0;
  bool cut_ = false;
};

Result<FileHead> CheckHead(FileSource& file, TraceFileKind kind) {
  uint8_t head[kFileHeadSize];
  TRY_ASSIGN(const size_t n, file.ReadAt(0, head));
  Result<FileHead> checked = CheckFileHead(ByteView(head, n), kind);
  if (!checked) {
    const auto offset = checked.error().offset;
    return Fail(std::move(checked.error()).At(std::string(file.name()), offset));
  }
  return checked;
}

struct ChunkPlace {
  uint64_t offset = 0, base = 0, hash = 0;
  uint32_t stored = 0, bytes = 0, sequence = 0;
  BlockCodec codec = BlockCodec::kPlain;
};

class Trace : public TraceSource {
 public:
  Trace(std::unique_ptr<FileSource> calls, std::unique_ptr<FileSource> facts)
      : calls_(std::move(calls)), facts_(std::move(facts)) {}
  Status Open();

  [[nodiscard]] const TraceTables& tables() const override { return tables_; }
  [[nodiscard]] const TraceModule* ModuleOf(const TraceFunction& function) const override {
    const auto found = module_rows_.find(function.module);
    return found == module_rows_.end() ? nullptr : &tables_.modules[found->second];
  }
  std::unique_ptr<ThreadCalls> CallsOf(size_t thread_row) override;
  [[nodiscard]] const Counters& counters() const override { return counters_; }
  [[nodiscard]] const std::string& damage() const override { return damage_; }
  [[nodiscard]] std::string FormatName() const override {
    return fmt::format("stackreel trace, version {}", version_);
  }
  [[nodiscard]] uint64_t bytes() const override {
    return calls_->size().value_or(0) + facts_->size().value_or(0);
  }

  // The row of a function; adds one for an id that no fact tells of.
  uint32_t RowOf(uint32_t id) {
    const std::optional<uint32_t> row = function_rows_.Find(id);
    return row ? *row : AddUnknownFunction(id);
  }
  void AddDamage(const std::string& text) {
    if (damage_.empty()) damage_ = text;
  }
  FileSource& calls() { return *calls_; }
  Counters& counts() { return counters_; }

 private:
  Status ReadFacts();
  Status FindChunks();
  void Take(TraceFact fact);
  uint32_t AddUnknownFunction(uint32_t id);
  uint32_t ThreadRow(uint32_t index);

  std::unique_ptr<FileSource> calls_, facts_;
  TraceTables tables_;
  IdRows function_rows_;
  std::unordered_map<uint32_t, uint32_t> module_rows_, thread_rows_;
  std::vector<std::vector<ChunkPlace>> chunks_;  // by row of the thread
  Counters counters_;
  std::string damage_;
  uint32_t version_ = 0;  // of the format
};

void Trace::Take(TraceFact fact) {
  if (auto* clock = std::get_if<TraceClock>(&fact)) {
    if (clock->ticks_per_second != 0) {
      tables_.clock = *clock;
    } else {
      counters_.Add("tracedata.bad_fact");
    }
  } else if (auto* host = std::get_if<TraceHost>(&fact)) {
    tables_.host = std::move(*host);
  } else if (auto* module = std::get_if<TraceModule>(&fact)) {
    module_rows_[module->id] = static_cast<uint32_t>(tables_.modules.size());
    tables_.modules.push_back(std::move(*module));
  } else if (auto* load = std::get_if<ModuleLoad>(&fact)) {
    tables_.loads.push_back(*load);
  } else if (auto* function = std::get_if<TraceFunction>(&fact)) {
    if (function->id > kMaxFunction) {
      counters_.Add("tracedata.bad_fact");
    } else if (const auto row = function_rows_.Find(function->id)) {
      tables_.functions[*row] = std::move(*function);
    } else {
      function_rows_.Set(function->id, static_cast<uint32_t>(tables_.functions.size()));
      tables_.functions.push_back(std::move(*function));
    }
  } else if (auto* thread = std::get_if<TraceThread>(&fact)) {
    // Told again where its name changes.
    const auto [known, fresh] =
        thread_rows_.try_emplace(thread->index, static_cast<uint32_t>(tables_.threads.size()));
    if (fresh) {
      tables_.threads.push_back(std::move(*thread));
    } else {
      tables_.threads[known->second] = std::move(*thread);
    }
  } else if (auto* fork = std::get_if<ProcessFork>(&fact)) {
    tables_.forks.push_back(*fork);
  } else if (auto* exec = std::get_if<ProcessExec>(&fact)) {
    tables_.execs.push_back(std::move(*exec));
  } else if (auto* exit = std::get_if<ProcessExit>(&fact)) {
    tables_.exits.push_back(*exit);
  } else if (auto* patch = std::get_if<PatchEvent>(&fact)) {
    tables_.patches.push_back(std::move(*patch));
  } else if (auto* loss = std::get_if<TraceLoss>(&fact)) {
    tables_.losses.push_back(std::move(*loss));
  } else if (auto* enumeration = std::get_if<TraceEnumeration>(&fact)) {
    tables_.enumerations.push_back(std::move(*enumeration));
  } else if (auto* filters = std::get_if<FilterChange>(&fact)) {
    tables_.filters.push_back(std::move(*filters));
  }
}

Status Trace::ReadFacts() {
  TRY_ASSIGN(const FileHead head, CheckHead(*facts_, TraceFileKind::kFacts));
  version_ = head.version;
  BlockScan scan(*facts_, head.size, facts_->size().value_or(0));
  BlockDecoder decoder;
  std::vector<uint8_t> stored;
  while (true) {
    TRY_ASSIGN(const std::optional<BlockPlace> place, scan.Next());
    if (!place) break;
    stored.resize(place->head.stored);
    TRY_ASSIGN(const size_t n, facts_->ReadAt(place->offset, stored));
    const auto bytes = decoder.Decode(place->head, ByteView(stored).first(n));
    if (!bytes) {
      counters_.Add("tracedata.damaged_bytes", place->head.stored);
      AddDamage(fmt::format("{}: offset {:#x}: {} bytes of facts are damaged", facts_->name(),
                            place->offset, place->head.stored));
      continue;
    }
    for (TraceFact& fact : DecodeFacts(*bytes, counters_)) Take(std::move(fact));
  }
  counters_.Add("tracedata.damaged_bytes", scan.bad_bytes());
  AddDamage(scan.Damage());
  return {};
}

uint32_t Trace::AddUnknownFunction(uint32_t id) {
  counters_.Add("tracedata.unknown_function");
  const auto row = static_cast<uint32_t>(tables_.functions.size());
  function_rows_.Set(id, row);
  tables_.functions.push_back(
      {.id = id, .module = UINT32_MAX, .name = fmt::format("[function {}]", id)});
  return row;
}

uint32_t Trace::ThreadRow(uint32_t index) {
  const auto [known, fresh] =
      thread_rows_.try_emplace(index, static_cast<uint32_t>(tables_.threads.size()));
  if (fresh) {
    counters_.Add("tracedata.unknown_thread");
    tables_.threads.push_back({.index = index, .comm = "?"});
  }
  return known->second;
}

Status Trace::FindChunks() {
  TRY_ASSIGN(const FileHead head, CheckHead(*calls_, TraceFileKind::kCalls));
  BlockScan scan(*calls_, head.size, calls_->size().value_or(0));
  while (true) {
    TRY_ASSIGN(const std::optional<BlockPlace> place, scan.Next());
    if (!place) break;
    const uint32_t row = ThreadRow(place->head.thread);
    if (chunks_.size() <= row) chunks_.resize(row + 1);
    chunks_[row].push_back({.offset = place->offset,
                            .base = place->head.base,
                            .hash = place->head.hash,
                            .stored = place->head.stored,
                            .bytes = place->head.bytes,
                            .sequence = place->head.sequence,
                            .codec = place->head.codec});
  }
  chunks_.resize(tables_.threads.size());
  for (std::vector<ChunkPlace>& chunks : chunks_) {
    std::ranges::stable_sort(chunks, {}, &ChunkPlace::sequence);
    chunks.shrink_to_fit();
  }
  counters_.Add("tracedata.damaged_bytes", scan.bad_bytes());
  AddDamage(scan.Damage());
  return {};
}

Status Trace::Open() {
  TRY(ReadFacts());
  return FindChunks();
}

// What is common to the chunks of all threads, while they are read.
class ChunkCalls : public ThreadCalls {
 public:
  ChunkCalls(Trace& trace, std::span<const ChunkPlace> chunks) : trace_(trace), chunks_(chunks) {
    if (!chunks.empty() && chunks.back().sequence >= chunks.size()) open_.emplace();
  }

  [[nodiscard]] uint64_t NextTicks() const override {
    return at_ == chunks_.size() ? UINT64_MAX : std::max(last_, chunks_[at_].base);
  }

  Result<EventBatch> Next() override {
    events_.clear();
    while (at_ < chunks_.size() && events_.empty()) {
      const ChunkPlace& place = chunks_[at_++];
      const bool behind_gap = AddGap(place);
      TRY(AddChunk(place, behind_gap));
    }
    if (events_.empty()) {
      Release();
      return EventBatch{};
    }
    return EventBatch{events_, bytes_};
  }

 private:
  bool AddGap(const ChunkPlace& place) {
    const bool behind_gap = place.sequence > next_sequence_;
    if (behind_gap) {
      trace_.counts().Add("tracedata.dropped_chunks", place.sequence - next_sequence_);
      AddLoss(place);
    }
    next_sequence_ = uint64_t{place.sequence} + 1;
    return behind_gap;
  }

  // Of calls before or in a chunk. None of its events comes before that, whatever times it has.
  void AddLoss(const ChunkPlace& place) {
    last_ = std::max(last_, place.base);
    events_.push_back(
        {last_, EventHead(EventKind::kLost, static_cast<uint32_t>(LossReason::kNoSpace)), 0});
  }

  Status AddChunk(const ChunkPlace& place, bool behind_gap) {
    stored_.resize(place.stored);
    TRY_ASSIGN(const size_t n, trace_.calls().ReadAt(place.offset, stored_));
    const BlockHead head{.stored = place.stored,
                         .bytes = place.bytes,
                         .codec = place.codec,
                         .base = place.base,
                         .hash = place.hash};
    if (decoder_ == nullptr) decoder_ = std::make_unique<BlockDecoder>();
    const std::optional<ByteView> bytes = decoder_->Decode(head, ByteView(stored_).first(n));
    if (!bytes) {
      trace_.counts().Add("tracedata.damaged_chunk");
      trace_.counts().Add("tracedata.damaged_bytes", place.stored);
      trace_.AddDamage(fmt::format("{}: offset {:#x}: a chunk of {} bytes is damaged",
                                   trace_.calls().name(), place.offset, place.stored));
      AddLoss(place);
      return {};
    }
    bytes_ = *bytes;
    const size_t first = events_.size();
    if (order_ == nullptr) order_ = std::make_unique<EventOrder>();
    order_->Append(bytes_, place.base, events_, trace_.counts());
    for (OrderedEvent& event : std::span(events_).subspan(first)) {
      if (event.kind() == EventKind::kLost) continue;
      event.head = (event.head & ~kMaxFunction) | trace_.RowOf(event.function());
    }
    if (open_ && behind_gap && IsByAgent(first)) Resume(first);
    uint64_t late = 0;
    for (OrderedEvent& event : std::span(events_).subspan(first)) {
      if (open_) open_->Note(event);
      if (event.ticks < last_) {
        event.ticks = last_;
        ++late;
      }
      last_ = event.ticks;
    }
    trace_.counts().Add("tracedata.out_of_order", late);
    return {};
  }

  // Whether the agent made the gap before this chunk: it says what it has dropped. Of chunks that
  // it wrote and that were lost later it knows nothing, and tells of no call anew.
  [[nodiscard]] bool IsByAgent(size_t first) const {
    return std::ranges::any_of(std::span(events_).subspan(first), [](const OrderedEvent& event) {
      return event.kind() == EventKind::kLost && event.detail != 0 &&
             event.function() == static_cast<uint32_t>(LossReason::kNoSpace);
    });
  }

  void Resume(size_t first) {
    const std::vector<uint32_t> ended = open_->Resume(events_, first, last_);
    std::vector<OrderedEvent> left;
    left.reserve(ended.size());
    for (const uint32_t row : ended) left.push_back({last_, EventHead(EventKind::kLeft, row), 0});
    events_.insert(events_.begin() + static_cast<std::ptrdiff_t>(first), left.begin(), left.end());
  }

  void Release() {
    events_ = {};
    stored_ = {};
    bytes_ = {};
    order_.reset();
    decoder_.reset();
  }

  Trace& trace_;
  std::span<const ChunkPlace> chunks_;
  size_t at_ = 0;
  uint64_t next_sequence_ = 0;
  uint64_t last_ = 0;
  std::vector<uint8_t> stored_;
  std::unique_ptr<BlockDecoder> decoder_;
  std::unique_ptr<EventOrder> order_;
  ByteView bytes_;
  std::vector<OrderedEvent> events_;
  std::optional<OpenAcrossGaps> open_;  // where there are gaps
};

std::unique_ptr<ThreadCalls> Trace::CallsOf(size_t thread_row) {
  return std::make_unique<ChunkCalls>(*this, chunks_[thread_row]);
}

}  // namespace

Result<std::unique_ptr<TraceSource>> OpenTrace(std::unique_ptr<FileSource> calls,
                                               std::unique_ptr<FileSource> facts) {
  auto trace = std::make_unique<Trace>(std::move(calls), std::move(facts));
  TRY(trace->Open());
  return trace;
}

}  // namespace stackreel::tracedata
