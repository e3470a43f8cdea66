#include <optional>

#include "unwind/aarch64/fast_unwinder.h"
#include "unwind/aarch64/full_unwinder.h"
#include "unwind/aarch64/registers.h"
#include "unwind/counts.h"
#include "unwind/unwind.h"
#include "unwind/x86_64/fast_unwinder.h"
#include "unwind/x86_64/full_unwinder.h"
#include "unwind/x86_64/registers.h"

namespace stackreel::unwind {
namespace {

constexpr size_t kCacheLine = 64;
// The innermost frames, which differ from sample to sample, lie within the first bytes. More is not
// asked for: it would only use up memory bandwidth.
constexpr size_t kPrefetchBytes = 6144;

// The two paths of one kind of CPU: the fast one, and the one it hands stacks to that it cannot do.
template <class Fast, class Full>
struct Paths {
  explicit Paths(Counts& counts) : fast(counts), full(counts) {}

  StackEnd Unwind(const UnwindInput& input, Counts& counts, std::vector<Frame>& out) {
    const size_t before = out.size();
    const Counts counted = counts;
    auto end = fast.Unwind(input, out);
    if (!end) {
      counts.traced_returns = counted.traced_returns;
      counts.inferred_returns = counted.inferred_returns;
      ++counts.full_restarts;
      out.resize(before);
      end = full.Unwind(input, out);
    }
    ++counts.stacks;
    counts.frames += out.size() - before;
    return *end;
  }

  Fast fast;
  Full full;
};
template <class Cpu>
using X86Paths = Paths<x86_64::FastUnwinder<Cpu>, x86_64::FullUnwinder<Cpu>>;

// Whether the sample tells the pc and the stack pointer.
bool HasStart(const UnwindInput& input) {
  const Registers& registers = input.registers;
  if (input.arch == Arch::kAarch64) {
    return registers.Has(aarch64::kPerfPc) && registers.Has(aarch64::Cpu::kSp);
  }
  return registers.Has(x86_64::kPerfIp) && registers.Has(x86_64::kPerfSp);
}

}  // namespace

struct Unwinder::State {
  Counts counts;
  std::optional<X86Paths<x86_64::Cpu64>> cpu64;
  std::optional<X86Paths<x86_64::Cpu32>> cpu32;
  std::optional<Paths<aarch64::FastUnwinder, aarch64::FullUnwinder>> aarch64;
  Counters named;
};

Unwinder::Unwinder() : state_(std::make_unique<State>()) {}
Unwinder::~Unwinder() = default;

StackEnd Unwinder::Unwind(const UnwindInput& input, std::vector<Frame>& out) {
  static const UnwindMaps kNoMaps;
  if (input.arch == Arch::kOther) return StackEnd::kUnsupported;
  if (!HasStart(input)) return StackEnd::kNoRegisters;
  if (input.maps == nullptr) {
    UnwindInput with_maps = input;
    with_maps.maps = &kNoMaps;
    return Unwind(with_maps, out);
  }
  State& state = *state_;
  switch (input.arch) {
    case Arch::kX86_64:
      if (!state.cpu64) state.cpu64.emplace(state.counts);
      return state.cpu64->Unwind(input, state.counts, out);
    case Arch::kX86:
      if (!state.cpu32) state.cpu32.emplace(state.counts);
      return state.cpu32->Unwind(input, state.counts, out);
    case Arch::kAarch64:
      if (!state.aarch64) state.aarch64.emplace(state.counts);
      return state.aarch64->Unwind(input, state.counts, out);
    case Arch::kOther:
      break;
  }
  return StackEnd::kUnsupported;
}

void Unwinder::Prefetch(const StackView& stack) const {
  const ByteView bytes = stack.bytes();
  const size_t size = bytes.size() < kPrefetchBytes ? bytes.size() : kPrefetchBytes;
  for (size_t at = 0; at < size; at += kCacheLine) __builtin_prefetch(bytes.data() + at);
  if (state_->cpu64) state_->cpu64->fast.PrefetchWhereLastRead(stack);
}

const Counters& Unwinder::counters() const {
  const Counts& counts = state_->counts;
  Counters named;
  named.Add("unwind.stacks", counts.stacks);
  named.Add("unwind.frames", counts.frames);
  named.Add("unwind.cache_miss", counts.cache_misses);
  named.Add("unwind.restart_full", counts.full_restarts);
  named.Add("unwind.fp_fallback", counts.frame_pointer_steps);
  named.Add("unwind.bad_cfi", counts.bad_rules);
  named.Add("unwind.code_unannounced", counts.codes_unannounced);
  named.Add("unwind.traced_return", counts.traced_returns);
  named.Add("unwind.traced_return_inferred", counts.inferred_returns);
  state_->named = std::move(named);
  return state_->named;
}

}  // namespace stackreel::unwind
