// One sample → its frames: sampled address, kernel chain, user chain or unwound stack.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "analyze/analysis.h"
#include "analyze/jit_codes.h"
#include "perfdata/sample.h"
#include "session/address_space.h"
#include "unwind/unwind.h"

namespace stackreel::analyze {

// Mappings as they were at the sample's time.
struct MapsAtTime {
  session::AddressSpacePtr space;
  std::shared_ptr<const unwind::UnwindMaps> unwind;  // parallel to space->entries()
};

// A sample on its way. It holds all that its frames are made from, so that other threads can do it.
struct PendingSample {
  perfdata::RawRecord raw;  // what `sample` points into
  perfdata::Sample sample;
  bool is_decoded = false;  // `sample` is what `raw` says
  uint32_t event = 0;
  uint64_t branch_sample_type = 0;  // of its event
  StringInterner::Id comm = 0;
  MapsAtTime user, kernel, guest_user, guest_kernel;
  // The code that a JIT compiler said it made, and the sample's time by its clock.
  std::shared_ptr<const JitCodes> jit;
  uint64_t jit_time = 0;
  unwind::Arch arch = unwind::Arch::kX86_64;
  session::PointerMask mask;
  Endian endian = Endian::kLittle;
  // The user chain that came later (CALLCHAIN_DEFERRED), if this sample's chain ends in a cookie.
  std::optional<uint64_t> awaited_cookie;
  std::vector<uint64_t> deferred_chain;
  // What came out.
  size_t first_frame = 0, frame_count = 0;  // in the frames of its chunk
  bool chain_is_empty = false;
  std::optional<unwind::StackEnd> user_end;
  uint64_t unresolved = 0;  // frames without symbols
};

// The user part of a chain is deferred if it has the marker: the cookie that the later record has.
// kNoDeferredCookie is that of kernels that wrote none: the next chain of the thread is its.
inline constexpr uint64_t kNoDeferredCookie = 0;
std::optional<uint64_t> DeferredCookieOf(const perfdata::Sample& sample);

// For use by one thread at a time.
class ChainBuilder {
 public:
  struct Options {
    bool unwind = true;
    size_t max_frames = 1024;
    bool jit_code = true;
  };
  explicit ChainBuilder(const Options& options) : options_(options) {}

  // Appends the frames of `pending`, innermost first. They have symbols only where they were copied
  // from frames in `out` that had: those of the stack unwound before of the same thread, which
  // mostly differs in its innermost frames only. So `out` has the frames of earlier calls, as they
  // were made, or is empty.
  void Build(PendingSample& pending, std::vector<AnalyzedFrame>& out);
  // Starts the loads that decoding the sample will need.
  static void PrefetchRecord(const PendingSample& pending);
  // Starts the loads that Build will need.
  void Prefetch(const PendingSample& pending) const;

  [[nodiscard]] const unwind::Unwinder& unwinder() const { return unwinder_; }
  // Chains with a context marker that is none.
  [[nodiscard]] uint64_t bad_chains() const { return bad_chains_; }

 private:
  // The mapping that the last frame was in: the next one mostly is in it too.
  struct Place {
    uint64_t version = 0;  // of the maps
    uint64_t start = 0, end = 0;
    session::ModuleId module = session::kNoModule;
    uint64_t offset_bias = 0, bias = 0;  // avma - file offset, avma - svma
    bool jit = false;                    // see session::Mapping

    [[nodiscard]] bool Holds(uint64_t of_version, uint64_t lookup) const {
      return version == of_version && lookup >= start && lookup < end;
    }
  };
  void AddSampledChain(PendingSample& pending, std::vector<AnalyzedFrame>& out);
  bool AddBranchChain(PendingSample& pending, std::vector<AnalyzedFrame>& out);
  void AddUnwound(PendingSample& pending, std::vector<AnalyzedFrame>& out);
  void SpliceChain(const PendingSample& pending, size_t first, std::vector<AnalyzedFrame>& out);
  bool FindPlace(const MapsAtTime& maps, uint64_t lookup);
  static bool FindJitCode(const PendingSample& pending, uint64_t lookup, AnalyzedFrame& frame);
  void AddFrame(const PendingSample& pending, CodeAddress address, unwind::FrameOrigin origin,
                perfdata::CpuMode mode, std::vector<AnalyzedFrame>& out);
  // A stack that was unwound: where in `out` its frames are.
  struct Unwound {
    uint32_t tid = 0;
    unwind::Arch arch = unwind::Arch::kX86_64;
    uint64_t version = 0;  // of the maps
    uint64_t mask = 0;
    size_t first = 0, count = 0;
  };
  Unwound& LastOf(uint32_t tid) { return last_unwound_[tid % last_unwound_.size()]; }
  [[nodiscard]] size_t SharedFrames(const PendingSample& pending, const Unwound& last,
                                    const std::vector<AnalyzedFrame>& out) const;
  [[nodiscard]] bool Full(const PendingSample& pending,
                          const std::vector<AnalyzedFrame>& out) const {
    return out.size() - pending.first_frame >= options_.max_frames;
  }

  Options options_;
  Place last_place_;
  unwind::Unwinder unwinder_;
  std::vector<unwind::Frame> unwound_;
  std::vector<uint64_t> unwound_addresses_;
  std::vector<uint64_t> user_chain_;     // of the kernel, for samples whose stack is dumped as well
  std::array<Unwound, 8> last_unwound_;  // of threads that take turns
  uint64_t bad_chains_ = 0;
};

}  // namespace stackreel::analyze
