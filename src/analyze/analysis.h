// The pipeline perf.data → samples with their frames, in order of time; and → profile.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/background_executor.h"
#include "base/counters.h"
#include "base/error.h"
#include "base/io.h"
#include "perfdata/reader.h"
#include "perfdata/sample.h"
#include "profile/filter.h"
#include "profile/profile.h"
#include "session/session.h"
#include "symbolize/symbolizer.h"
#include "unwind/unwind.h"

namespace stackreel::analyze {

struct PendingSample;

// One frame of a sample, ready to show.
struct AnalyzedFrame {
  CodeAddress address;
  unwind::FrameOrigin origin = unwind::FrameOrigin::kSampled;
  session::ModuleId module = session::kNoModule;
  FileOffset offset;  // as the mapping has it; for kernels and JIT code it means nothing
  Svma svma;          // of address, not of the lookup address; 0 without a module
  bool kernel = false;
  // Innermost first; one unless inlined functions were asked for. Empty span: not symbolized.
  std::span<const symbolize::SymbolizedFrame> symbols;
};

struct AnalyzedSample {
  const perfdata::Sample* sample = nullptr;
  uint16_t misc = 0;
  uint32_t event = 0;
  uint32_t pid = 0, tid = 0;
  StringInterner::Id comm = 0;  // in session.strings()
  uint64_t period = 1;
  bool has_callchain = false;                // the event asks for chains
  bool chain_is_empty = false;               // but this sample has none: frames is the sampled ip
  std::span<const AnalyzedFrame> frames;     // innermost first: kernel, then user
  std::optional<unwind::StackEnd> user_end;  // set if the user stack was unwound here
  session::PointerMask mask;                 // arm64: what was taken from its code addresses
  const PendingSample* pending = nullptr;    // for Analysis::LocateInSample
};

struct AnalysisOptions {
  // Samples that do not pass are left out, most of them before they are unwound.
  profile::Filter filter;
  bool unwind = true;  // user stacks dumped in the samples
  bool symbolize = true;
  // Frames in code that a JIT compiler told of lie in its dump, where they have names; else in the
  // memory that they ran in.
  bool jit_code = true;
  symbolize::SymbolizeOptions symbols;
  size_t max_frames = 1024;
  bool records = false;  // the sink wants records that are no samples too
};

// How many samples a mask was used for.
struct MaskUse {
  session::PointerMask mask;
  uint64_t samples = 0;
};

struct AnalysisResult {
  perfdata::ReadEnd read;
  uint64_t samples = 0;   // given to the sink
  uint64_t filtered = 0;  // not asked for
  uint64_t lost = 0;      // records that the kernel's buffers had no room for
  uint64_t user_stacks = 0, complete_stacks = 0, frames = 0, unresolved_frames = 0;
  std::vector<uint64_t> ends;  // by StackEnd
  std::vector<MaskUse> masks;  // arm64 only
};

class AnalysisSink {
 public:
  virtual ~AnalysisSink() = default;
  virtual Status OnSample(const AnalyzedSample& sample) = 0;

  // A sink whose work on a sample mostly needs nothing of the samples before can have it done by
  // several threads. Its samples then come in portions of some that follow each other, which it
  // works out into an object of its own type, and it gets no OnSample.
  class Portion {
   public:
    virtual ~Portion() = default;
  };
  // Null: it takes all by OnSample. Not asked where there is one thread only.
  virtual std::unique_ptr<Portion> MakePortion(size_t /*workers*/) { return nullptr; }
  // Called by any thread, of several at a time those with another `worker` and another portion; the
  // samples of a portion in their order. They stay where they are until OnPortion is done. May
  // change the portion and what the sink has for that worker, and look at all else.
  virtual Status Prepare(const AnalyzedSample& /*sample*/, size_t /*worker*/,
                         Portion& /*portion*/) {
    return {};
  }
  // Takes a portion when its turn has come, and makes it empty.
  virtual Status OnPortion(Portion& /*portion*/) { return {}; }

  // With AnalysisOptions::records: any other record, between the samples before and after it in
  // time, once the session has taken it up. `event` is the event it is of, the first if it does not
  // say.
  virtual Status OnRecord(const perfdata::Record& /*record*/, uint32_t /*event*/) { return {}; }
};

// Owns what the frames refer to; keep it while they are used.
class Analysis {
 public:
  Analysis(perfdata::Reader& reader, symbolize::ModuleFileProvider& files, Executor& executor,
           const AnalysisOptions& options);
  // The recording is read on while other threads work.
  Analysis(perfdata::Reader& reader, symbolize::ModuleFileProvider& files,
           BackgroundExecutor& executor, const AnalysisOptions& options);
  ~Analysis();
  Analysis(const Analysis&) = delete;
  Analysis& operator=(const Analysis&) = delete;

  // Reads it all; samples go to `sink` in order of time, one after another, but not always on the
  // same thread.
  Result<AnalysisResult> Run(AnalysisSink& sink);

  // Where an address (without its tag, if it has one) is, and what function, in the process of the
  // sample and at its time; for use within OnSample and OnPortion.
  AnalyzedFrame LocateInSample(const AnalyzedSample& sample, Avma address);

  [[nodiscard]] session::Session& session();
  [[nodiscard]] symbolize::Symbolizer& symbolizer();
  [[nodiscard]] const perfdata::EventTable& events() const;
  [[nodiscard]] const perfdata::Reader& reader() const;
  [[nodiscard]] Counters& counters();
  // Called now and then with bytes read and in all.
  std::function<void(uint64_t, uint64_t)> on_progress;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct ProfileOptions {
  bool lines = false;      // tell frames apart by line
  bool addresses = false;  // and by address
  bool times = false;      // keep each sample and its time; else equal samples are merged
};
// Runs an analysis into a profile.
Result<profile::Profile> MakeProfile(Analysis& analysis, const ProfileOptions& options);

// The maps of a process as the unwinder needs them, cached by version. `mappings` is parallel to
// the entries of the AddressSpace. Used when analysing and when recording live.
class UnwindMapsCache {
 public:
  UnwindMapsCache(
      session::Session& session,
      std::function<std::shared_ptr<const unwind::UnwindModule>(session::ModuleId)> load);
  ~UnwindMapsCache();
  std::shared_ptr<const unwind::UnwindMaps> Get(const session::AddressSpacePtr& maps);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Registers of a sample as the unwinder takes them; nothing if there are none (kernel threads).
std::optional<unwind::Registers> RegistersOf(const perfdata::SampledRegs& regs);

}  // namespace stackreel::analyze
