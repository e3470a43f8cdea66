// Samples with their frames → the sink: symbols, selection by frame, and what the result counts.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "analyze/analysis.h"
#include "analyze/chain_builder.h"
#include "analyze/sample_selector.h"

namespace stackreel::analyze {

// Contiguous samples that one worker takes at a time.
inline constexpr size_t kChunkSamples = 16;

struct Chunk {
  std::vector<AnalyzedFrame> frames;
  // Samples that have frames whose symbols FindSymbols did not find, and these.
  std::vector<std::pair<size_t, size_t>> unknown;
  std::vector<AnalyzedSample> selected;
  std::unique_ptr<AnalysisSink::Portion> portion;
  bool is_prepared = false;
  Status prepared;
};

struct Batch {
  std::vector<PendingSample> samples;  // used up to size; the rest waits to be used again
  size_t size = 0;
  size_t bytes = 0;
  std::vector<Chunk> chunks;

  [[nodiscard]] size_t chunk_count() const { return (size + kChunkSamples - 1) / kChunkSamples; }
  [[nodiscard]] std::span<PendingSample> SamplesOf(size_t chunk) {
    const size_t first = chunk * kChunkSamples;
    return std::span(samples).subspan(first, std::min(kChunkSamples, size - first));
  }
  void Release();
};

// Either a batch goes to the sink sample by sample, by one thread (DeliverSamples, after
// FindSymbols where finds_symbols()); or by portions, in these steps, of which those that are const
// may run for many chunks at once, while no other step runs:
//   FindSymbols       looks for symbols among those that are known
//   PrepareIfKnown    has the sink work a chunk out at once, if all are and none is left out
//   Complete          finds the other symbols, selects and counts
//   Prepare           has the sink work out what is not yet
//   DeliverPortions
class Delivery {
 public:
  Delivery(const perfdata::Reader& reader, session::Session& session,
           symbolize::Symbolizer& symbolizer, const AnalysisOptions& options,
           AnalysisResult& result)
      : reader_(reader),
        session_(session),
        symbolizer_(symbolizer),
        options_(options),
        selector_(options.filter),
        result_(result) {}

  void Start(AnalysisSink& sink, size_t workers);
  [[nodiscard]] bool by_portions() const { return by_portions_; }
  // Whether FindSymbols may run: not while another thread has the sink take samples.
  [[nodiscard]] bool finds_symbols() const { return by_portions_ || workers_ == 1; }
  // What can be said before the stack is unwound.
  bool Selects(const perfdata::Sample& sample, uint32_t event, StringInterner::Id comm) {
    return selector_.Selects(sample, event, comm, session_);
  }

  Status DeliverSamples(Batch& batch);

  // Before the others, not const either.
  void MakePortions(Batch& batch);
  void FindSymbols(Batch& batch, size_t chunk, size_t sample) const;
  void PrepareIfKnown(Batch& batch, size_t chunk, size_t worker) const;
  void Complete(Batch& batch);
  void Prepare(Chunk& chunk, size_t worker) const;
  Status DeliverPortions(Batch& batch);

  // Gives frames their symbols; returns how many have none.
  uint64_t Symbolize(std::span<AnalyzedFrame> frames);

 private:
  void SymbolizeUnknown(Batch& batch, Chunk& chunk);
  AnalyzedSample Describe(const PendingSample& pending,
                          std::span<const AnalyzedFrame> frames) const;
  void Count(const PendingSample& pending, uint64_t unresolved);
  void CountMask(const session::PointerMask& mask);

  const perfdata::Reader& reader_;
  session::Session& session_;
  symbolize::Symbolizer& symbolizer_;
  const AnalysisOptions& options_;
  SampleSelector selector_;
  AnalysisResult& result_;
  AnalysisSink* sink_ = nullptr;
  size_t workers_ = 1;
  bool by_portions_ = false;
  size_t last_mask_ = 0;  // in result_.masks
};

}  // namespace stackreel::analyze
