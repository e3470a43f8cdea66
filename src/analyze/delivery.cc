#include "analyze/delivery.h"

#include <algorithm>

namespace stackreel::analyze {
namespace {

bool IsUnresolved(const AnalyzedFrame& frame) {
  return frame.symbols.empty() || frame.symbols.back().function == 0;
}

// What symbols are looked up by.
Svma LookupSvma(const AnalyzedFrame& frame) {
  return frame.address.kind == CodeAddressKind::kReturnAddress ? frame.svma - 1 : frame.svma;
}

// A signal handler returns to the first instruction of its trampoline: nothing lies before.
bool IsToBeFoundAtItself(const AnalyzedFrame& frame) {
  return frame.address.kind == CodeAddressKind::kReturnAddress && IsUnresolved(frame);
}

std::span<AnalyzedFrame> FramesOf(Chunk& chunk, const PendingSample& pending) {
  return std::span(chunk.frames).subspan(pending.first_frame, pending.frame_count);
}

}  // namespace

void Batch::Release() {
  for (size_t i = 0; i < size; ++i) samples[i].raw.block.reset();
  size = 0;
  bytes = 0;
}

void Delivery::Start(AnalysisSink& sink, size_t workers) {
  sink_ = &sink;
  workers_ = workers;
  by_portions_ = workers > 1 && sink.MakePortion(workers) != nullptr;
}

uint64_t Delivery::Symbolize(std::span<AnalyzedFrame> frames) {
  uint64_t unresolved = 0;
  for (AnalyzedFrame& frame : frames) {
    if (frame.module != session::kNoModule) {
      const session::Module& module = session_.modules()[frame.module];
      frame.symbols = symbolizer_.Find(frame.module, module, LookupSvma(frame));
      if (IsToBeFoundAtItself(frame)) {
        frame.symbols = symbolizer_.Find(frame.module, module, frame.svma);
      }
    }
    if (IsUnresolved(frame)) ++unresolved;
  }
  return unresolved;
}

AnalyzedSample Delivery::Describe(const PendingSample& pending,
                                  std::span<const AnalyzedFrame> frames) const {
  const perfdata::Attr& attr = reader_.events().events()[pending.event].attr;
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
  sample.frames = frames;
  sample.user_end = pending.user_end;
  sample.mask = pending.mask;
  sample.pending = &pending;
  return sample;
}

void Delivery::Count(const PendingSample& pending, uint64_t unresolved) {
  result_.unresolved_frames += unresolved;
  if (pending.arch == unwind::Arch::kAarch64) CountMask(pending.mask);
  ++result_.samples;
  result_.frames += pending.frame_count;
  if (!pending.user_end) return;
  ++result_.user_stacks;
  const auto end = static_cast<size_t>(*pending.user_end);
  if (result_.ends.size() <= end) result_.ends.resize(end + 1);
  ++result_.ends[end];
  if (*pending.user_end == unwind::StackEnd::kRoot) ++result_.complete_stacks;
}

void Delivery::CountMask(const session::PointerMask& mask) {
  // Nearly always the one of the sample before.
  if (last_mask_ >= result_.masks.size() || result_.masks[last_mask_].mask != mask) {
    const auto known = std::find_if(result_.masks.begin(), result_.masks.end(),
                                    [&](const MaskUse& use) { return use.mask == mask; });
    last_mask_ = static_cast<size_t>(known - result_.masks.begin());
    if (known == result_.masks.end()) result_.masks.push_back({mask, 0});
  }
  ++result_.masks[last_mask_].samples;
}

// The frames that FindSymbols left.
void Delivery::SymbolizeUnknown(Batch& batch, Chunk& chunk) {
  for (const auto& [sample, frame] : chunk.unknown) {
    batch.samples[sample].unresolved += Symbolize(std::span(chunk.frames).subspan(frame, 1));
  }
}

Status Delivery::DeliverSamples(Batch& batch) {
  for (size_t i = 0; i < batch.size; ++i) {
    Chunk& chunk = batch.chunks[i / kChunkSamples];
    const PendingSample& pending = batch.samples[i];
    const std::span<AnalyzedFrame> frames = FramesOf(chunk, pending);
    uint64_t unresolved = 0;
    if (finds_symbols()) {
      if (i % kChunkSamples == 0) SymbolizeUnknown(batch, chunk);
      unresolved = pending.unresolved;
    } else if (options_.symbolize) {
      unresolved = Symbolize(frames);
    }
    if (!selector_.SelectsFrames(frames, session_, symbolizer_)) {
      ++result_.filtered;
      continue;
    }
    Count(pending, unresolved);
    TRY(sink_->OnSample(Describe(pending, frames)));
  }
  batch.Release();
  return {};
}

void Delivery::MakePortions(Batch& batch) {
  for (size_t i = 0; i < batch.chunk_count(); ++i) {
    Chunk& chunk = batch.chunks[i];
    if (chunk.portion == nullptr) chunk.portion = sink_->MakePortion(workers_);
    chunk.selected.clear();
    chunk.is_prepared = false;
  }
}

void Delivery::FindSymbols(Batch& batch, size_t chunk_index, size_t sample) const {
  PendingSample& pending = batch.samples[sample];
  pending.unresolved = 0;
  if (!options_.symbolize) return;
  Chunk& chunk = batch.chunks[chunk_index];
  const std::span<AnalyzedFrame> frames = FramesOf(chunk, pending);
  for (AnalyzedFrame& frame : frames) {
    if (frame.module != session::kNoModule && frame.symbols.empty()) {
      frame.symbols = symbolizer_.FindKnown(frame.module, LookupSvma(frame));
      if (!frame.symbols.empty() && IsToBeFoundAtItself(frame)) {
        frame.symbols = symbolizer_.FindKnown(frame.module, frame.svma);
      }
      if (frame.symbols.empty()) {
        chunk.unknown.emplace_back(sample, &frame - chunk.frames.data());
        continue;
      }
    }
    if (IsUnresolved(frame)) ++pending.unresolved;
  }
}

// While its frames are in this worker's cache.
void Delivery::PrepareIfKnown(Batch& batch, size_t chunk_index, size_t worker) const {
  Chunk& chunk = batch.chunks[chunk_index];
  if (!chunk.unknown.empty() || selector_.looks_at_frames()) return;
  for (const PendingSample& pending : batch.SamplesOf(chunk_index)) {
    chunk.selected.push_back(Describe(pending, FramesOf(chunk, pending)));
  }
  Prepare(chunk, worker);
}

void Delivery::Complete(Batch& batch) {
  for (size_t i = 0; i < batch.chunk_count(); ++i) {
    Chunk& chunk = batch.chunks[i];
    if (chunk.is_prepared) {
      for (const PendingSample& pending : batch.SamplesOf(i)) Count(pending, pending.unresolved);
      continue;
    }
    SymbolizeUnknown(batch, chunk);
    for (const PendingSample& pending : batch.SamplesOf(i)) {
      const std::span<const AnalyzedFrame> frames = FramesOf(chunk, pending);
      if (!selector_.SelectsFrames(frames, session_, symbolizer_)) {
        ++result_.filtered;
        continue;
      }
      Count(pending, pending.unresolved);
      chunk.selected.push_back(Describe(pending, frames));
    }
  }
}

void Delivery::Prepare(Chunk& chunk, size_t worker) const {
  if (chunk.is_prepared) return;
  chunk.is_prepared = true;
  chunk.prepared = Status();
  for (const AnalyzedSample& sample : chunk.selected) {
    chunk.prepared = sink_->Prepare(sample, worker, *chunk.portion);
    if (!chunk.prepared) return;
  }
}

Status Delivery::DeliverPortions(Batch& batch) {
  for (size_t i = 0; i < batch.chunk_count(); ++i) {
    TRY(sink_->OnPortion(*batch.chunks[i].portion));
    TRY(std::move(batch.chunks[i].prepared));
  }
  batch.Release();
  return {};
}

}  // namespace stackreel::analyze
