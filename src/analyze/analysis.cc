#include "analyze/analysis.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "analyze/chain_builder.h"
#include "analyze/deferred_queue.h"
#include "analyze/delivery.h"
#include "analyze/function_names.h"
#include "analyze/jit_codes.h"
#include "analyze/module_images.h"
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
constexpr uint32_t kNoId = UINT32_MAX;  // of a sample without TID

}  // namespace

struct Analysis::State : public perfdata::TimedSink {
  State(perfdata::Reader& reader_in, symbolize::ModuleFileProvider& files, Executor& executor_in,
        BackgroundExecutor* background_in, const AnalysisOptions& options_in)
      : reader(reader_in),
        executor(executor_in),
        background(background_in),
        options(options_in),
        session(reader.features(), reader.endian(), counters),
        named_files(files, reader.features(), reader.endian()),
        symbolizer(named_files, options.symbols, counters),
        images(session, symbolizer, counters),
        jit_codes(symbolizer, counters),
        maps(session, [this](session::ModuleId id) { return LoadUnwindModule(id); }),
        delivery(reader, session, symbolizer, options, result) {
    session.SetSegmentLoader([this](const session::Module& module) { return Segments(module); });
    const ChainBuilder::Options chain_options{options.unwind, options.max_frames, options.jit_code};
    for (size_t i = 0; i < executor.concurrency(); ++i) {
      builders.push_back(std::make_unique<ChainBuilder>(chain_options));
    }
    batch_bytes = builders.size() == 1 ? kBatchBytesAlone : kBatchBytesPerWorker * builders.size();
    // What waits while workers run comes all at once, to what may be there already.
    batch.samples.resize((builders.size() == 1 ? 1 : 2) * kBatchSamplesPerWorker * builders.size());
    built.samples.resize(batch.samples.size());
  }

  Status OnTimedRecord(const perfdata::TimedRecord& record) override;
  void BeforeTakeUp() override { Wait(); }
  // `ahead`: the record as a sample, if that was decoded already.
  Status Process(const perfdata::TimedRecord& record, perfdata::Sample* ahead);
  Status ProcessQueue();
  Status OnSample(const perfdata::TimedRecord& record, perfdata::Sample* ahead);
  Status OnReadSample(const perfdata::TimedRecord& record);
  // `counted`: what it is of, and how often that happened, if the record is another event's sample.
  struct Counted {
    uint32_t event = 0;
    uint64_t count = 0;
  };
  Status TakeSample(const perfdata::TimedRecord& record, std::optional<Counted> counted,
                    perfdata::Sample* ahead);
  Status ShowRecord(const perfdata::TimedRecord& record);
  void OnDeferredChain(const perfdata::TimedRecord& record);
  void OnLost(const perfdata::TimedRecord& record);
  void OnTimeConversion(const perfdata::TimedRecord& record);
  Status Take(PendingSample& pending);
  Status TakeReady(bool at_end);
  Status FlushBatch();
  Status FlushAll();
  void StartBatch();
  void Wait();
  Status FinishBatch();
  void BuildChunk(size_t chunk, size_t worker);
  AnalyzedFrame LocateInSample(const AnalyzedSample& sample, Avma address);
  [[nodiscard]] Status Decode(const perfdata::RawRecord& raw, uint32_t event,
                              perfdata::Sample& sample) const;
  void Locate(const perfdata::Sample& sample, PendingSample& pending);
  void SetMaps(const session::AddressSpacePtr& space, MapsAtTime& at_time);
  std::shared_ptr<const unwind::UnwindModule> LoadUnwindModule(session::ModuleId id);
  std::vector<session::LoadSegment> Segments(const session::Module& module);
  [[nodiscard]] perfdata::RecordContext ContextOf(const perfdata::TimedRecord& record) const;
  Status RunAll();
  void CollectCounters();

  perfdata::Reader& reader;
  Executor& executor;
  BackgroundExecutor* background;  // the same, if it is one
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
  perfdata::Sample read_sample, scratch_sample;
  std::unordered_map<uint64_t, uint64_t> last_counts;  // by id, of the sample before
  AnalysisResult result;
  Delivery delivery;

  enum class Workers : uint8_t { kIdle, kRunning, kDone };
  Workers workers = Workers::kIdle;  // kDone: what they made is still in `batch`
  // By portions: records that were read while workers ran, to be processed when they are done.
  struct Queued {
    perfdata::TimedRecord record;
    bool is_decoded = false;
    perfdata::Sample sample;
  };
  std::vector<Queued> queue;  // used up to `queued`; the rest waits to be used again
  size_t queued = 0;
  size_t queue_bytes = 0;
  size_t batch_bytes = 0;  // that end a batch
  Batch batch;             // is being filled
  Batch built;             // its frames are made, but it is not delivered

  AnalysisSink* sink = nullptr;
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
  const uint32_t event = record.event.value_or(0);
  if (event >= reader.events().events().size()) {
    counters.Add("analyze.record_without_event");
    return {};
  }
  // A bad one the session has counted.
  const auto decoded = perfdata::DecodeRecord(record.raw, ContextOf(record));
  return decoded ? sink->OnRecord(*decoded, event) : Status();
}

// Reading, cutting up, sorting and decoding needs nothing of what workers look at, so it goes on
// while they run; the session does not.
Status Analysis::State::OnTimedRecord(const perfdata::TimedRecord& record) {
  if (!delivery.by_portions()) return Process(record, nullptr);
  if (queued == queue.size()) queue.emplace_back();
  Queued& added = queue[queued++];
  added.record = record;
  const bool is_sample = record.raw.record_type() == RecordType::kSample && record.event &&
                         *record.event < reader.events().events().size();
  added.is_decoded = is_sample && Decode(record.raw, *record.event, added.sample).has_value();
  queue_bytes += record.raw.bytes.size();
  const bool full = queued >= batch.samples.size() / 2 || queue_bytes >= batch_bytes;
  return full ? ProcessQueue() : Status();
}

Status Analysis::State::ProcessQueue() {
  TRY(FinishBatch());
  for (size_t i = 0; i < queued; ++i) {
    TRY(Process(queue[i].record, queue[i].is_decoded ? &queue[i].sample : nullptr));
    queue[i].record.raw.block.reset();
  }
  queued = 0;
  queue_bytes = 0;
  // Of samples that are left out there may be few left: they wait for more.
  const bool worth = batch.size >= batch.samples.size() / 4 || batch.bytes >= batch_bytes / 2;
  if (worth) StartBatch();
  return {};
}

Status Analysis::State::Process(const perfdata::TimedRecord& record, perfdata::Sample* ahead) {
  switch (record.raw.record_type()) {
    case RecordType::kSample:
      return OnSample(record, ahead);
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

Status Analysis::State::OnSample(const perfdata::TimedRecord& record, perfdata::Sample* ahead) {
  const auto& events = reader.events().events();
  if (!record.event || *record.event >= events.size()) {
    counters.Add("analyze.sample_without_event");
    return {};
  }
  constexpr uint64_t kIdentified = perfdata::kReadId;
  const perfdata::Attr& attr = events[*record.event].attr;
  const bool reads =
      (attr.sample_type & perfdata::kSampleRead) != 0 && (attr.read_format & kIdentified) != 0;
  return reads ? OnReadSample(record) : TakeSample(record, std::nullopt, ahead);
}

// A sample of an event with S (leader sampling) stands for one of each event in its group that
// happened since the sample before, with as many as its count has grown by. So perf shows them.
Status Analysis::State::OnReadSample(const perfdata::TimedRecord& record) {
  const perfdata::EventTable& table = reader.events();
  const perfdata::Attr& attr = table.events()[*record.event].attr;
  if (!perfdata::DecodeSample(record.raw, attr, reader.endian(), read_sample)) {
    counters.Add("analyze.bad_sample");
    return {};
  }
  for (const perfdata::ReadValue& value : read_sample.read.values) {
    const std::optional<uint32_t> event =
        table.HasId(value.id) ? table.IndexOf(value.id) : std::nullopt;
    if (!event) {
      counters.Add("analyze.count_without_event");
      continue;
    }
    const uint64_t before = std::exchange(last_counts[value.id], value.value);
    if (value.value != before) {
      TRY(TakeSample(record, Counted{*event, value.value - before}, nullptr));
    }
  }
  return {};
}

Status Analysis::State::Decode(const perfdata::RawRecord& raw, uint32_t event,
                               perfdata::Sample& sample) const {
  TRY(perfdata::DecodeSample(raw, reader.events().events()[event].attr, reader.endian(), sample));
  if (!sample.Has(perfdata::kSampleTid)) sample.pid = sample.tid = kNoId;
  return {};
}

// Where other threads make the frames they decode the sample again: that takes less time than to
// have it come from this CPU's cache to theirs. So as little as can be is written here.
Status Analysis::State::TakeSample(const perfdata::TimedRecord& record,
                                   std::optional<Counted> counted, perfdata::Sample* ahead) {
  const auto& events = reader.events().events();
  const bool direct = deferred.empty();
  PendingSample local;
  PendingSample& pending = direct ? batch.samples[batch.size] : local;
  pending.event = counted ? counted->event : *record.event;
  pending.branch_sample_type = events[*record.event].attr.branch_sample_type;
  pending.raw = record.raw;
  pending.endian = reader.endian();
  pending.deferred_chain.clear();
  pending.awaited_cookie.reset();
  pending.user_end.reset();
  perfdata::Sample& sample = ahead != nullptr         ? *ahead
                             : delivery.by_portions() ? scratch_sample
                                                      : pending.sample;
  if (ahead == nullptr && !Decode(record.raw, *record.event, sample)) {
    counters.Add("analyze.bad_sample");
    return {};
  }
  if (counted) {
    sample.period = counted->count;
    sample.present |= perfdata::kSamplePeriod;
  }
  const session::Thread& thread = session.ThreadOf(sample.pid, sample.tid);
  pending.comm = thread.comm_set ? thread.comm : session.strings().Intern(session.CommOf(thread));
  if (!delivery.Selects(sample, pending.event, pending.comm)) {
    ++result.filtered;
    return {};
  }
  Locate(sample, pending);
  pending.awaited_cookie = DeferredCookieOf(sample);
  const bool waits = !direct || pending.awaited_cookie;
  pending.is_decoded = !delivery.by_portions() || counted || waits;
  if (pending.is_decoded && delivery.by_portions()) pending.sample = sample;
  if (!waits) return Take(pending);
  if (direct) {
    deferred.Push(std::move(pending));
  } else {
    deferred.Push(std::move(local));
  }
  return TakeReady(/*at_end=*/false);
}

// What a sample before it in its place had is mostly right; and as long as somebody holds it, a
// space does not change.
void Analysis::State::SetMaps(const session::AddressSpacePtr& space, MapsAtTime& at_time) {
  if (at_time.space == space) return;
  at_time = {space, maps.Get(space)};
}

// Notes all that tells, at this time, where the sample's addresses are.
void Analysis::State::Locate(const perfdata::Sample& sample, PendingSample& pending) {
  const session::Process& process = session.ProcessOf(sample.pid);
  SetMaps(process.maps, pending.user);
  SetMaps(session.kernel_maps(), pending.kernel);
  if (pending.raw.cpu_mode() == perfdata::CpuMode::kGuestUser) {
    SetMaps(session.GuestProcessOf(sample.pid).maps, pending.guest_user);
  } else {
    pending.guest_user = {};
  }
  SetMaps(session.guest_kernel_maps(), pending.guest_kernel);
  pending.jit = jit_codes.Get(session, process.jit_dump);
  if (pending.jit != nullptr) {
    pending.jit_time = jit_codes.TimeInDump(
        pending.jit->dump, reader.events().events()[pending.event].attr, sample.time);
  }
  pending.arch = unwind::ArchOf(session.machine(), sample.regs_user.abi);
  pending.mask = session.MaskOf(process, &sample);
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
  const size_t most_bytes = (delivery.by_portions() ? 2 : 1) * batch_bytes;
  if (batch.size == batch.samples.size() || batch.bytes >= most_bytes) return FlushBatch();
  return {};
}

void Analysis::State::BuildChunk(size_t chunk, size_t worker) {
  const size_t first = chunk * kChunkSamples;
  const size_t last = std::min(first + kChunkSamples, batch.size);
  std::vector<AnalyzedFrame>& frames = batch.chunks[chunk].frames;
  frames.clear();
  batch.chunks[chunk].unknown.clear();
  const auto decode = [this](PendingSample& pending) {
    // It could be once, so it can be again.
    if (!pending.is_decoded) (void)Decode(pending.raw, pending.event, pending.sample);
    pending.is_decoded = true;
  };
  decode(batch.samples[first]);
  for (size_t i = first; i < last; ++i) {
    if (i + 2 < last) builders[worker]->PrefetchRecord(batch.samples[i + 2]);
    if (i + 1 < last) {
      decode(batch.samples[i + 1]);
      builders[worker]->Prefetch(batch.samples[i + 1]);
    }
    builders[worker]->Build(batch.samples[i], frames);
    if (delivery.finds_symbols()) delivery.FindSymbols(batch, chunk, i);
  }
  if (delivery.by_portions()) delivery.PrepareIfKnown(batch, chunk, worker);
}

// With several workers and a sink that takes all itself, one of them delivers the batch before,
// since that takes about as long as unwinding does.
Status Analysis::State::FlushBatch() {
  if (delivery.by_portions()) {
    TRY(FinishBatch());
    StartBatch();
    return FinishBatch();
  }
  const size_t chunks = batch.chunk_count();
  if (batch.chunks.size() < chunks) batch.chunks.resize(chunks);
  Status status;
  executor.ParallelFor(chunks + 1, [&](size_t index, size_t worker) {
    if (index == 0) {
      status = delivery.DeliverSamples(built);
    } else {
      BuildChunk(index - 1, worker);
    }
  });
  TRY(std::move(status));
  std::swap(batch, built);
  // Alone, the worker finds the frames in its cache if they are delivered at once.
  if (builders.size() == 1) TRY(delivery.DeliverSamples(built));
  if (*on_progress) (*on_progress)(reader.position(), reader.total());
  return {};
}

// By portions: workers unwind, and have the sink work out what they have just unwound. Where new
// symbols were met that waits for the next batch: they are found when no worker runs.
void Analysis::State::StartBatch() {
  const size_t chunks = batch.chunk_count();
  if (batch.chunks.size() < chunks) batch.chunks.resize(chunks);
  delivery.MakePortions(batch);
  const size_t before = built.chunk_count();
  auto work = [this, before](size_t index, size_t worker) {
    if (index < before) {
      delivery.Prepare(built.chunks[index], worker);
    } else {
      BuildChunk(index - before, worker);
    }
  };
  if (background != nullptr) {
    workers = Workers::kRunning;
    background->Start(before + chunks, work);
  } else {
    workers = Workers::kDone;
    executor.ParallelFor(before + chunks, work);
  }
}

void Analysis::State::Wait() {
  if (workers != Workers::kRunning) return;
  background->Finish();
  workers = Workers::kDone;
}

Status Analysis::State::FinishBatch() {
  Wait();
  if (workers == Workers::kIdle) return {};
  workers = Workers::kIdle;
  TRY(delivery.DeliverPortions(built));
  delivery.Complete(batch);
  std::swap(batch, built);
  if (*on_progress) (*on_progress)(reader.position(), reader.total());
  return {};
}

// Gives the sink all samples so far.
Status Analysis::State::FlushAll() {
  TRY(FlushBatch());
  return delivery.by_portions() ? FlushBatch() : delivery.DeliverSamples(built);
}

AnalyzedFrame Analysis::State::LocateInSample(const AnalyzedSample& sample, Avma address) {
  AnalyzedFrame frame;
  const PendingSample& pending = *sample.pending;
  const bool is_arm = pending.arch == unwind::Arch::kAarch64;
  address = Avma(is_arm ? StripTag(address.value) : StripTagX86(address.value));
  frame.address.avma = address;
  frame.kernel = static_cast<int64_t>(address.value) < 0;
  const MapsAtTime& at_time = frame.kernel ? pending.kernel : pending.user;
  const session::Location location = session.Find(*at_time.space, address);
  frame.module = location.module;
  frame.svma = location.svma;
  frame.offset = location.offset;
  delivery.Symbolize(std::span(&frame, 1));
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

Status Analysis::State::RunAll() {
  perfdata::RoundSorter sorter(reader, *this, counters);
  TRY_ASSIGN(result.read, reader.ReadAll(sorter));
  TRY(sorter.Finish());
  if (delivery.by_portions()) TRY(ProcessQueue());
  TRY(FinishBatch());
  TRY(TakeReady(/*at_end=*/true));
  return FlushAll();
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
    : state_(std::make_unique<State>(reader, files, executor, nullptr, options)) {}
Analysis::Analysis(perfdata::Reader& reader, symbolize::ModuleFileProvider& files,
                   BackgroundExecutor& executor, const AnalysisOptions& options)
    : state_(std::make_unique<State>(reader, files, executor, &executor, options)) {}
Analysis::~Analysis() = default;

Result<AnalysisResult> Analysis::Run(AnalysisSink& sink) {
  State& state = *state_;
  state.sink = &sink;
  state.delivery.Start(sink, state.builders.size());
  state.on_progress = &on_progress;
  Status status = state.RunAll();
  state.Wait();  // they look at the sink, which may go when this returns
  TRY(std::move(status));
  state.CollectCounters();
  return state.result;
}

AnalyzedFrame Analysis::LocateInSample(const AnalyzedSample& sample, Avma address) {
  return state_->LocateInSample(sample, address);
}

session::Session& Analysis::session() { return state_->session; }
symbolize::Symbolizer& Analysis::symbolizer() { return state_->symbolizer; }
const perfdata::EventTable& Analysis::events() const { return state_->reader.events(); }
const perfdata::Reader& Analysis::reader() const { return state_->reader; }
Counters& Analysis::counters() { return state_->counters; }

}  // namespace stackreel::analyze
