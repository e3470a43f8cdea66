#include "analyze/chain_step.h"

#include <algorithm>
#include <string>
#include <utility>

#include "analyze/analysis.h"
#include "analyze/jit_codes.h"
#include "analyze/module_images.h"
#include "analyze/stack_to_chain.h"
#include "analyze/unwind_input.h"
#include "perfdata/record_size.h"
#include "session/session.h"
#include "unwind/unwind.h"

namespace stackreel::analyze {
namespace {

using unwind::StackEnd;

// As in an analysis: a batch is small enough to stay in the cache.
constexpr size_t kBatchSamplesPerWorker = 128;
constexpr size_t kBatchBytesPerWorker = size_t{1} << 20;
constexpr size_t kChunkSamples = 16;
constexpr size_t kMaxFrames = 1024;

// A record of the same size, as counts of what was dropped tell it, without a field that can be
// read.
void LeaveHeader(perfdata::RawRecord& raw) {
  const size_t kept = std::min(raw.bytes.size(), perfdata::kRecordHeaderSize);
  raw.extra_size += raw.bytes.size() - kept;
  raw.bytes = raw.bytes.first(kept);
}

class ChainStep : public anonymize::RecordStep {
 public:
  ChainStep(const anonymize::RecordingHead& head, perfdata::TimedSink& next,
            symbolize::ModuleFileProvider& files, Executor& executor);

  Status OnTimedRecord(const perfdata::TimedRecord& record) override;
  [[nodiscard]] std::vector<perfdata::Event> Events() const override { return written_; }
  Status Finish() override { return Flush(); }
  void CollectCounters(Counters& counters) const override;
  [[nodiscard]] std::map<uint32_t, std::vector<uint8_t>> Features() const override;

 private:
  // A record of the batch; what is no sample to be unwound only waits for its turn.
  struct Item {
    perfdata::TimedRecord record;
    bool unwind = false;
    perfdata::Sample sample;
    std::shared_ptr<const unwind::UnwindMaps> maps;
    uint64_t code_mask = 0;
    unwind::Arch arch = unwind::Arch::kX86_64;
    std::optional<StackEnd> end;
  };
  // One thread's caches.
  struct Worker {
    unwind::Unwinder unwinder;
    std::vector<unwind::Frame> frames;
    std::vector<uint64_t> chain;
    std::vector<uint8_t> chain_bytes;
  };
  [[nodiscard]] bool IsToUnwind(const perfdata::TimedRecord& record) const;
  Status Flush();
  void Unwind(Item& item, Worker& worker) const;
  std::shared_ptr<const unwind::UnwindModule> LoadUnwindModule(session::ModuleId id);

  Endian endian_;
  const std::vector<perfdata::Event>& recorded_;
  std::vector<perfdata::Event> written_;
  perfdata::TimedSink& next_;
  Executor& executor_;
  Counters counters_;
  session::Session session_;
  symbolize::Symbolizer symbolizer_;
  ModuleImages images_;
  JitCodesCache jit_codes_;
  UnwindMapsCache maps_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<Item> batch_;
  size_t batch_samples_ = 0, batch_bytes_ = 0;
  std::map<StackEnd, uint64_t> ends_;
};

ChainStep::ChainStep(const anonymize::RecordingHead& head, perfdata::TimedSink& next,
                     symbolize::ModuleFileProvider& files, Executor& executor)
    : endian_(head.endian),
      recorded_(head.events),
      written_(head.events),
      next_(next),
      executor_(executor),
      session_(head.features, head.endian, counters_),
      symbolizer_(files, {}, counters_),
      images_(session_, symbolizer_, counters_),
      jit_codes_(symbolizer_, counters_),
      maps_(session_, [this](session::ModuleId id) { return LoadUnwindModule(id); }) {
  for (perfdata::Event& event : written_) {
    if (HasDumpedStack(event.attr)) event.attr = WithoutStack(event.attr);
  }
  session_.SetSegmentLoader([this](const session::Module& module) {
    const auto id = static_cast<session::ModuleId>(&module - session_.modules().data());
    const elf::Image* image = images_.MainOf(id);
    return image != nullptr ? session::LoadSegmentsOf(*image) : std::vector<session::LoadSegment>();
  });
  for (size_t i = 0; i < executor.concurrency(); ++i) {
    workers_.push_back(std::make_unique<Worker>());
  }
}

std::shared_ptr<const unwind::UnwindModule> ChainStep::LoadUnwindModule(session::ModuleId id) {
  const session::Module& module = session_.modules()[id];
  if (module.key.kind != session::ModuleKind::kJit) return images_.UnwindModuleOf(id);
  const auto codes = jit_codes_.Get(session_, session_.ProcessOf(module.key.pid).jit_dump);
  return codes == nullptr ? nullptr : codes->frames;
}

bool ChainStep::IsToUnwind(const perfdata::TimedRecord& record) const {
  return record.raw.record_type() == perfdata::RecordType::kSample && record.event &&
         *record.event < recorded_.size() && HasDumpedStack(recorded_[*record.event].attr);
}

Status ChainStep::OnTimedRecord(const perfdata::TimedRecord& record) {
  const perfdata::Attr* attr =
      record.event && *record.event < recorded_.size() ? &recorded_[*record.event].attr : nullptr;
  Item item;
  item.record = record;
  if (record.raw.record_type() != perfdata::RecordType::kSample) {
    session_.Apply(record, {endian_, attr});
  } else if (IsToUnwind(record)) {
    item.unwind = perfdata::DecodeSample(record.raw, *attr, endian_, item.sample).has_value();
    // What is damaged is dropped by who decodes it next: but without registers and stack, where the
    // damage mostly is, it might decode.
    if (!item.unwind) LeaveHeader(item.record.raw);
    const session::Process& process = session_.ProcessOf(item.sample.pid);
    item.maps = maps_.Get(process.maps);
    item.code_mask = session_.MaskOf(process, &item.sample).insn;
    item.arch = unwind::ArchOf(session_.machine(), item.sample.regs_user.abi);
  }
  if (!item.unwind && batch_.empty()) return next_.OnTimedRecord(item.record);
  batch_samples_ += item.unwind ? 1 : 0;
  batch_bytes_ += record.raw.bytes.size();
  batch_.push_back(std::move(item));
  const bool full = batch_samples_ >= kBatchSamplesPerWorker * workers_.size() ||
                    batch_bytes_ >= kBatchBytesPerWorker * workers_.size();
  return full ? Flush() : Status();
}

Status ChainStep::Flush() {
  const size_t chunks = (batch_.size() + kChunkSamples - 1) / kChunkSamples;
  executor_.ParallelFor(chunks, [this](size_t chunk, size_t worker) {
    const size_t last = std::min((chunk + 1) * kChunkSamples, batch_.size());
    for (size_t i = chunk * kChunkSamples; i < last; ++i) {
      if (batch_[i].unwind) Unwind(batch_[i], *workers_[worker]);
    }
  });
  for (const Item& item : batch_) {
    if (item.end) ++ends_[*item.end];
    TRY(next_.OnTimedRecord(item.record));
  }
  batch_.clear();
  batch_samples_ = batch_bytes_ = 0;
  return {};
}

// Makes the item's record the one with a callchain.
void ChainStep::Unwind(Item& item, Worker& worker) const {
  perfdata::Sample& sample = item.sample;
  worker.frames.clear();
  auto end = StackEnd::kNoRegisters;
  // As in an analysis: of a task without memory, which is exiting, registers alone say nothing.
  auto input =
      sample.stack_user_size == 0 ? std::nullopt : UnwindInputOf(sample, item.arch, endian_);
  if (input) {
    input->maps = item.maps.get();
    input->code_mask = item.code_mask;
    input->max_frames = kMaxFrames;
    end = worker.unwinder.Unwind(*input, worker.frames);
    item.end = end;
  }
  worker.chain.clear();
  BuildCallchain(sample, worker.frames, end, worker.chain);
  worker.chain_bytes.resize(8 * worker.chain.size());
  for (size_t i = 0; i < worker.chain.size(); ++i) {
    StoreUnaligned(worker.chain_bytes.data() + 8 * i, worker.chain[i], endian_);
  }
  sample.callchain = perfdata::U64Array(worker.chain_bytes, endian_);
  perfdata::RawRecord& raw = item.record.raw;
  auto encoded =
      perfdata::EncodeSample(sample, raw.misc, written_[*item.record.event].attr, endian_);
  auto block = std::make_shared<perfdata::Block>();
  // It has become smaller, but for a chain longer than its stack was: then it cannot be damaged
  // input's fault, and an empty record is what the next step drops and counts.
  if (encoded) block->bytes = std::move(*encoded);
  raw.bytes = block->bytes;
  raw.block = std::move(block);
}

void ChainStep::CollectCounters(Counters& counters) const {
  counters.Merge(counters_);
  for (const auto& worker : workers_) counters.Merge(worker->unwinder.counters());
}

std::map<uint32_t, std::vector<uint8_t>> ChainStep::Features() const {
  std::map<std::string, uint64_t> ends;
  for (const auto& [end, count] : ends_) ends[unwind::StackEndName(end)] = count;
  return {{static_cast<uint32_t>(perfdata::Feature::kStackreelStackEnds),
           perfdata::EncodeStackEnds(ends, endian_)}};
}

}  // namespace

bool HasDumpedStack(const perfdata::Attr& attr) {
  constexpr uint64_t kNeeded = perfdata::kSampleRegsUser | perfdata::kSampleStackUser;
  return (attr.sample_type & kNeeded) == kNeeded;
}

std::unique_ptr<anonymize::RecordStep> MakeChainStep(const anonymize::RecordingHead& head,
                                                     perfdata::TimedSink& next,
                                                     symbolize::ModuleFileProvider& files,
                                                     Executor& executor) {
  const auto has_stack = [](const perfdata::Event& event) { return HasDumpedStack(event.attr); };
  if (std::ranges::none_of(head.events, has_stack)) return nullptr;
  return std::make_unique<ChainStep>(head, next, files, executor);
}

}  // namespace stackreel::analyze
