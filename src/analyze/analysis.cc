#include "analyze/analysis.h"

#include <algorithm>
#include <utility>

#include "analyze/chain_builder.h"
#include "analyze/deferred_queue.h"
#include "analyze/function_names.h"
#include "analyze/jit_codes.h"
#include "analyze/module_images.h"
#include "analyze/sample_selector.h"
#include "base/check.h"
#include "base/pointer_code.h"
#include "perfdata/sorter.h"

namespace stackreel::analyze {
namespace {

using perfdata::RecordType;

// A batch is as much as all workers do between two visits of the sink. It is small, so that stacks
// are still in the cache when they are unwound, and large enough to be worth the wake-ups, if there
// are any.
constexpr size_t kBatchSamplesPerWorker = 128;
constexpr size_t kBatchBytesPerWorker = size_t{1} << 20;
constexpr size_t kBatchBytesAlone = size_t{1} << 18;
// Contiguous samples that one worker takes at a time.
constexpr size_t kChunkSamples = 16;

constexpr uint32_t kNoId = UINT32_MAX;  // of a sample without TID

struct Batch {
  std::vector<PendingSample> samples;  // used up to size; the rest waits to be used again
  size_t size = 0;
  size_t bytes = 0;
  std::vector<std::vector<AnalyzedFrame>> chunk_frames;
};

}  // namespace

struct Analysis::State : public perfdata::TimedSink {
  State(perfdata::Reader& reader_in, symbolize::ModuleFileProvider& files, Executor& executor_in,
        const AnalysisOptions& options_in)
      : reader(reader_in),
        executor(executor_in),
        options(options_in),
        session(reader.features(), reader.endian(), counters),
        named_files(files, reader.features(), reader.endian()),
        symbolizer(named_files, options.symbols, counters),
        images(session, symbolizer, counters),
        jit_codes(symbolizer, counters),
        maps(session, [this](session::ModuleId id) { return LoadUnwindModule(id); }),
        selector(options.filter) {
    session.SetSegmentLoader([this](const session::Module& module) { return Segments(module); });
    const ChainBuilder::Options chain_options{options.unwind, options.max_frames};
    for (size_t i = 0; i < executor.concurrency(); ++i) {
      builders.push_back(std::make_unique<ChainBuilder>(chain_options));
    }
    batch_bytes = builders.size() == 1 ? kBatchBytesAlone : kBatchBytesPerWorker * builders.size();
    batch.samples.resize(kBatchSamplesPerWorker * builders.size());
    built.samples.resize(batch.samples.size());
  }

  Status OnTimedRecord(const perfdata::TimedRecord& record) override;
  Status OnSample(const perfdata::TimedRecord& record);
  Status ShowRecord(const perfdata::TimedRecord& record);
  void OnDeferredChain(const perfdata::TimedRecord& record);
  void OnLost(const perfdata::TimedRecord& record);
  void OnTimeConversion(const perfdata::TimedRecord& record);
  Status Take(PendingSample& pending);
  Status TakeReady(bool at_end);
  Status FlushBatch();
  Status FlushAll();
  void BuildChunk(size_t chunk, size_t worker);
  Status DeliverBatch(Batch& from);
  uint64_t Symbolize(std::span<AnalyzedFrame> frames);
  AnalyzedFrame LocateInSample(Avma address);
  void CountMask(const session::PointerMask& mask);
  Status Deliver(const PendingSample& pending, std::vector<AnalyzedFrame>& frames);
  void Locate(PendingSample& pending);
  MapsAtTime MapsOf(const session::AddressSpacePtr& space) { return {space, maps.Get(space)}; }
  std::shared_ptr<const unwind::UnwindModule> LoadUnwindModule(session::ModuleId id);
  std::vector<session::LoadSegment> Segments(const session::Module& module);
  [[nodiscard]] perfdata::RecordContext ContextOf(const perfdata::TimedRecord& record) const;
  void CollectCounters();

  perfdata::Reader& reader;
  Executor& executor;
  const AnalysisOptions options;
  Counters counters;
  session::Session session;
  RecordedFunctionNames named_files;
  symbolize::Symbolizer symbolizer;
  ModuleImages images;
  JitCodesCache jit_codes;
  UnwindMapsCache maps;
  std::vector<std::unique_ptr<ChainBuilder>> builders;  // by worker
  DeferredQueue deferred;
  SampleSelector selector;

  size_t batch_bytes = 0;  // that end a batch
  Batch batch;             // is being filled
  Batch built;             // its frames are made, but it is not delivered

  AnalysisSink* sink = nullptr;
  const PendingSample* delivered = nullptr;  // the one that the sink looks at
  AnalysisResult result;
  size_t last_mask = 0;  // in result.masks
  std::function<void(uint64_t, uint64_t)>* on_progress = nullptr;
};

perfdata::RecordContext Analysis::State::ContextOf(const perfdata::TimedRecord& record) const {
  const auto& events = reader.events().events();
  const uint32_t event = record.event.value_or(0);
  return {reader.endian(), event < events.size() ? &events[event].attr : nullptr};
}

// Samples before it are given to the sink first, whatever that costs.
Status Analysis::State::ShowRecord(const perfdata::TimedRecord& record) {
  TRY(FlushAll());
  session.Apply(record, ContextOf(record));
  // A bad one the session has counted.
  const auto decoded = perfdata::DecodeRecord(record.raw, ContextOf(record));
  return decoded ? sink->OnRecord(*decoded, record.event.value_or(0)) : Status();
}

Status Analysis::State::OnTimedRecord(const perfdata::TimedRecord& record) {
  switch (record.raw.record_type()) {
    case RecordType::kSample:
      return OnSample(record);
    case RecordType::kCallchainDeferred:
      OnDeferredChain(record);
      return TakeReady(/*at_end=*/false);
    case RecordType::kLost:
    case RecordType::kLostSamples:
      OnLost(record);
      return options.records ? ShowRecord(record) : Status();
    case RecordType::kTimeConv:
      OnTimeConversion(record);
      return {};
    default:
      if (options.records) return ShowRecord(record);
      session.Apply(record, ContextOf(record));
      return {};
  }
}

Status Analysis::State::OnSample(const perfdata::TimedRecord& record) {
  const auto& events = reader.events().events();
  if (!record.event || *record.event >= events.size()) {
    counters.Add("analyze.sample_without_event");
    return {};
  }
  const bool direct = deferred.empty();
  PendingSample local;
  PendingSample& pending = direct ? batch.samples[batch.size] : local;
  pending.event = *record.event;
  const perfdata::Attr& attr = events[pending.event].attr;
  pending.branch_sample_type = attr.branch_sample_type;
  pending.raw = record.raw;
  pending.endian = reader.endian();
  pending.deferred_chain.clear();
  pending.awaited_cookie.reset();
  pending.user_end.reset();
  if (!perfdata::DecodeSample(record.raw, attr, reader.endian(), pending.sample)) {
    counters.Add("analyze.bad_sample");
    return {};
  }
  perfdata::Sample& sample = pending.sample;
  if (!sample.Has(perfdata::kSampleTid)) sample.pid = sample.tid = kNoId;
  const session::Thread& thread = session.ThreadOf(sample.pid, sample.tid);
  pending.comm = thread.comm_set ? thread.comm : session.strings().Intern(session.CommOf(thread));
  if (!selector.Selects(sample, pending.event, pending.comm, session)) {
    ++result.filtered;
    return {};
  }
  Locate(pending);
  pending.awaited_cookie = DeferredCookieOf(sample);
  if (direct && !pending.awaited_cookie) return Take(pending);
  if (direct) {
    deferred.Push(std::move(pending));
  } else {
    deferred.Push(std::move(local));
  }
  return TakeReady(/*at_end=*/false);
}

// Notes all that tells, at this time, where the sample's addresses are.
void Analysis::State::Locate(PendingSample& pending) {
  const session::Process& process = session.ProcessOf(pending.sample.pid);
  pending.user = MapsOf(process.maps);
  pending.kernel = MapsOf(session.kernel_maps());
  if (pending.raw.cpu_mode() == perfdata::CpuMode::kGuestUser) {
    pending.guest_user = MapsOf(session.GuestProcessOf(pending.sample.pid).maps);
  } else {
    pending.guest_user = {};
  }
  pending.guest_kernel = MapsOf(session.guest_kernel_maps());
  pending.jit = jit_codes.Get(session, process.jit_dump);
  if (pending.jit != nullptr) {
    pending.jit_time = jit_codes.TimeInDump(
        pending.jit->dump, reader.events().events()[pending.event].attr, pending.sample.time);
  }
  pending.arch = unwind::ArchOf(session.machine(), pending.sample.regs_user.abi);
  pending.mask = session.MaskOf(process, &pending.sample);
}

void Analysis::State::OnDeferredChain(const perfdata::TimedRecord& record) {
  Result<perfdata::Record> decoded = perfdata::DecodeRecord(record.raw, ContextOf(record));
  if (!decoded || !decoded->sample_id) {
    counters.Add("analyze.bad_deferred_chain");
    return;
  }
  const auto* chain = std::get_if<perfdata::CallchainDeferred>(&decoded->body);
  if (chain == nullptr) return;
  const uint64_t cookie = chain->has_cookie ? chain->cookie : kNoDeferredCookie;
  deferred.OnChain(decoded->sample_id->tid, cookie, chain->ips);
}

void Analysis::State::OnLost(const perfdata::TimedRecord& record) {
  Result<perfdata::Record> decoded = perfdata::DecodeRecord(record.raw, ContextOf(record));
  if (!decoded) {
    counters.Add("analyze.bad_lost");
  } else if (const auto* lost = std::get_if<perfdata::Lost>(&decoded->body)) {
    result.lost += lost->lost;
  } else if (const auto* samples = std::get_if<perfdata::LostSamples>(&decoded->body)) {
    result.lost += samples->lost;
  }
}

void Analysis::State::OnTimeConversion(const perfdata::TimedRecord& record) {
  const Result<perfdata::Record> decoded = perfdata::DecodeRecord(record.raw, ContextOf(record));
  if (!decoded) return counters.Add("analyze.bad_time_conversion");
  const auto* conversion = std::get_if<perfdata::TimeConv>(&decoded->body);
  if (conversion != nullptr) jit_codes.SetConversion(*conversion);
}

Status Analysis::State::TakeReady(bool at_end) {
  while (std::optional<PendingSample> pending = deferred.Pop(at_end)) {
    batch.samples[batch.size] = std::move(*pending);
    TRY(Take(batch.samples[batch.size]));
  }
  return {};
}

// `pending` is the first of `batch` that is not counted yet.
Status Analysis::State::Take(PendingSample& pending) {
  ++batch.size;
  batch.bytes += pending.raw.bytes.size();
  if (batch.size == batch.samples.size() || batch.bytes >= batch_bytes) return FlushBatch();
  return {};
}

void Analysis::State::BuildChunk(size_t chunk, size_t worker) {
  const size_t first = chunk * kChunkSamples;
  const size_t last = std::min(first + kChunkSamples, batch.size);
  std::vector<AnalyzedFrame>& frames = batch.chunk_frames[chunk];
  frames.clear();
  for (size_t i = first; i < last; ++i) {
    if (i + 1 < last) builders[worker]->Prefetch(batch.samples[i + 1]);
    builders[worker]->Build(batch.samples[i], frames);
  }
}

Status Analysis::State::DeliverBatch(Batch& from) {
  for (size_t i = 0; i < from.size; ++i) {
    TRY(Deliver(from.samples[i], from.chunk_frames[i / kChunkSamples]));
  }
  for (size_t i = 0; i < from.size; ++i) from.samples[i].raw.block.reset();
  from.size = 0;
  from.bytes = 0;
  return {};
}

// With several workers one of them delivers the batch before, since that takes about as long as
// unwinding does.
Status Analysis::State::FlushBatch() {
  const size_t chunks = (batch.size + kChunkSamples - 1) / kChunkSamples;
  if (batch.chunk_frames.size() < chunks) batch.chunk_frames.resize(chunks);
  Status delivery;
  executor.ParallelFor(chunks + 1, [&](size_t index, size_t worker) {
    if (index == 0) {
      delivery = DeliverBatch(built);
    } else {
      BuildChunk(index - 1, worker);
    }
  });
  TRY(delivery);
  std::swap(batch, built);
  // Alone, the worker finds the frames in its cache if they are delivered at once.
  if (builders.size() == 1) TRY(DeliverBatch(built));
  if (*on_progress) (*on_progress)(reader.position(), reader.total());
  return {};
}

// Gives the sink all samples so far.
Status Analysis::State::FlushAll() {
  TRY(FlushBatch());
  return DeliverBatch(built);
}

// Returns how many frames have no symbol.
uint64_t Analysis::State::Symbolize(std::span<AnalyzedFrame> frames) {
  uint64_t unresolved = 0;
  for (AnalyzedFrame& frame : frames) {
    if (frame.module != session::kNoModule) {
      const Svma lookup =
          frame.address.kind == CodeAddressKind::kReturnAddress ? frame.svma - 1 : frame.svma;
      const session::Module& module = session.modules()[frame.module];
      frame.symbols = symbolizer.Find(frame.module, module, lookup);
      // A signal handler returns to the first instruction of its trampoline: nothing lies before.
      if (lookup != frame.svma && (frame.symbols.empty() || frame.symbols.back().function == 0)) {
        frame.symbols = symbolizer.Find(frame.module, module, frame.svma);
      }
    }
    if (frame.symbols.empty() || frame.symbols.back().function == 0) ++unresolved;
  }
  return unresolved;
}

Status Analysis::State::Deliver(const PendingSample& pending, std::vector<AnalyzedFrame>& frames) {
  const std::span<AnalyzedFrame> own(frames.data() + pending.first_frame, pending.frame_count);
  const uint64_t unresolved = options.symbolize ? Symbolize(own) : 0;
  if (!selector.SelectsFrames(own, session, symbolizer)) {
    ++result.filtered;
    return {};
  }
  result.unresolved_frames += unresolved;
  const perfdata::Attr& attr = reader.events().events()[pending.event].attr;
  AnalyzedSample sample;
  sample.sample = &pending.sample;
  sample.misc = pending.raw.misc;
  sample.event = pending.event;
  sample.pid = pending.sample.pid;
  sample.tid = pending.sample.tid;
  sample.comm = pending.comm;
  // Without PERIOD every sample counts what the event was opened with.
  sample.period = pending.sample.Has(perfdata::kSamplePeriod) ? pending.sample.period
                  : attr.Has(perfdata::kAttrFreq)
                      ? 1
                      : std::max<uint64_t>(attr.sample_period_or_freq, 1);
  sample.has_callchain = (attr.sample_type & perfdata::kSampleCallchain) != 0;
  sample.chain_is_empty = pending.chain_is_empty;
  sample.frames = own;
  sample.user_end = pending.user_end;
  sample.mask = pending.mask;
  if (pending.arch == unwind::Arch::kAarch64) CountMask(pending.mask);
  ++result.samples;
  result.frames += own.size();
  if (pending.user_end) {
    ++result.user_stacks;
    const auto end = static_cast<size_t>(*pending.user_end);
    if (result.ends.size() <= end) result.ends.resize(end + 1);
    ++result.ends[end];
    if (*pending.user_end == unwind::StackEnd::kRoot) ++result.complete_stacks;
  }
  delivered = &pending;
  const Status status = sink->OnSample(sample);
  delivered = nullptr;
  return status;
}

void Analysis::State::CountMask(const session::PointerMask& mask) {
  // Nearly always the one of the sample before.
  if (last_mask >= result.masks.size() || result.masks[last_mask].mask != mask) {
    const auto known = std::find_if(result.masks.begin(), result.masks.end(),
                                    [&](const MaskUse& use) { return use.mask == mask; });
    last_mask = static_cast<size_t>(known - result.masks.begin());
    if (known == result.masks.end()) result.masks.push_back({mask, 0});
  }
  ++result.masks[last_mask].samples;
}

AnalyzedFrame Analysis::State::LocateInSample(Avma address) {
  AnalyzedFrame frame;
  if (delivered == nullptr) return frame;
  const bool is_arm = delivered->arch == unwind::Arch::kAarch64;
  address = Avma(is_arm ? StripTag(address.value) : StripTagX86(address.value));
  frame.address.avma = address;
  frame.kernel = static_cast<int64_t>(address.value) < 0;
  const MapsAtTime& at_time = frame.kernel ? delivered->kernel : delivered->user;
  const session::Location location = session.Find(*at_time.space, address);
  frame.module = location.module;
  frame.svma = location.svma;
  frame.offset = location.offset;
  Symbolize(std::span(&frame, 1));
  return frame;
}

std::shared_ptr<const unwind::UnwindModule> Analysis::State::LoadUnwindModule(
    session::ModuleId id) {
  if (!options.unwind) return nullptr;
  const session::Module& module = session.modules()[id];
  if (module.key.kind != session::ModuleKind::kJit) return images.UnwindModuleOf(id);
  const auto codes = jit_codes.Get(session, session.ProcessOf(module.key.pid).jit_dump);
  return codes == nullptr ? nullptr : codes->frames;
}

std::vector<session::LoadSegment> Analysis::State::Segments(const session::Module& module) {
  const auto id = static_cast<session::ModuleId>(&module - session.modules().data());
  const elf::Image* image = images.MainOf(id);
  return image != nullptr ? session::LoadSegmentsOf(*image) : std::vector<session::LoadSegment>();
}

void Analysis::State::CollectCounters() {
  counters.Merge(reader.counters());
  for (const auto& builder : builders) {
    counters.Merge(builder->unwinder().counters());
    counters.Add("analyze.bad_chain", builder->bad_chains());
  }
  counters.Add("analyze.deferred_chain_missing", deferred.given_up());
  counters.Add("analyze.deferred_chain_unclaimed", deferred.unclaimed());
}

Analysis::Analysis(perfdata::Reader& reader, symbolize::ModuleFileProvider& files,
                   Executor& executor, const AnalysisOptions& options)
    : state_(std::make_unique<State>(reader, files, executor, options)) {}
Analysis::~Analysis() = default;

Result<AnalysisResult> Analysis::Run(AnalysisSink& sink) {
  State& state = *state_;
  state.sink = &sink;
  state.on_progress = &on_progress;
  perfdata::RoundSorter sorter(state.reader, state, state.counters);
  TRY_ASSIGN(state.result.read, state.reader.ReadAll(sorter));
  TRY(sorter.Finish());
  TRY(state.TakeReady(/*at_end=*/true));
  TRY(state.FlushAll());
  state.CollectCounters();
  return state.result;
}

AnalyzedFrame Analysis::LocateInSample(Avma address) { return state_->LocateInSample(address); }

session::Session& Analysis::session() { return state_->session; }
symbolize::Symbolizer& Analysis::symbolizer() { return state_->symbolizer; }
const perfdata::EventTable& Analysis::events() const { return state_->reader.events(); }
const perfdata::Reader& Analysis::reader() const { return state_->reader; }
Counters& Analysis::counters() { return state_->counters; }

}  // namespace stackreel::analyze
