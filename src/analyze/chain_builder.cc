#include "analyze/chain_builder.h"

#include <algorithm>

#include "analyze/chain_splice.h"
#include "analyze/unwind_input.h"
#include "base/check.h"
#include "base/pointer_code.h"
#include "perfdata/context_marker.h"

namespace stackreel::analyze {
namespace {

using perfdata::CpuMode;
using unwind::FrameOrigin;

constexpr uint64_t kBranchCallStack = 1u << 11;  // PERF_SAMPLE_BRANCH_CALL_STACK

CpuMode ModeOf(const PendingSample& pending) { return pending.raw.cpu_mode(); }

bool IsKernelMode(CpuMode mode) {
  return mode == CpuMode::kKernel || mode == CpuMode::kGuestKernel;
}

const MapsAtTime* MapsFor(const PendingSample& pending, CpuMode mode) {
  switch (mode) {
    case CpuMode::kKernel:
      return &pending.kernel;
    case CpuMode::kUser:
      return &pending.user;
    case CpuMode::kGuestKernel:
      return &pending.guest_kernel;
    case CpuMode::kGuestUser:
      return &pending.guest_user;
    case CpuMode::kUnknown:
    case CpuMode::kHypervisor:
      return nullptr;
  }
  return nullptr;
}

bool WillUnwind(const PendingSample& pending) {
  return pending.sample.regs_user.abi != 0 && pending.sample.stack_user_size != 0;
}

}  // namespace

std::optional<uint64_t> DeferredCookieOf(const perfdata::Sample& sample) {
  const perfdata::U64Array& chain = sample.callchain;
  for (size_t i = 0; i < chain.size(); ++i) {
    if (chain[i] != perfdata::kContextUserDeferred) continue;
    return i + 1 < chain.size() ? chain[i + 1] : kNoDeferredCookie;
  }
  return std::nullopt;
}

// The fields up to the registers, and the size of the stack behind it.
void ChainBuilder::PrefetchRecord(const PendingSample& pending) {
  if (pending.is_decoded) return;
  constexpr size_t kLine = 64;
  constexpr size_t kFirstBytes = 320;
  const ByteView bytes = pending.raw.bytes;
  for (size_t at = 0; at < std::min(bytes.size(), kFirstBytes); at += kLine) {
    __builtin_prefetch(bytes.data() + at);
  }
  if (!bytes.empty()) __builtin_prefetch(bytes.data() + bytes.size() - 1);
}

void ChainBuilder::Prefetch(const PendingSample& pending) const {
  if (!WillUnwind(pending)) return;
  const auto sp = pending.sample.regs_user.Get(unwind::StackPointerOf(pending.arch));
  unwinder_.Prefetch(unwind::StackView(Avma(sp.value_or(0)), pending.sample.stack_user));
}

void ChainBuilder::Build(PendingSample& pending, std::vector<AnalyzedFrame>& out) {
  pending.first_frame = out.size();
  if (out.empty()) last_unwound_.fill({});
  user_chain_.clear();
  const bool unwind = options_.unwind && WillUnwind(pending);
  if (pending.sample.Has(perfdata::kSampleCallchain)) {
    if (!AddBranchChain(pending, out)) AddSampledChain(pending, out);
  }
  if (unwind) AddUnwound(pending, out);
  pending.chain_is_empty = out.size() == pending.first_frame;
  if (pending.chain_is_empty && pending.sample.Has(perfdata::kSampleIp)) {
    AddFrame(pending, {Avma(pending.sample.ip), CodeAddressKind::kInstructionPointer},
             FrameOrigin::kSampled, ModeOf(pending), out);
  }
  pending.frame_count = out.size() - pending.first_frame;
}

// The chain as the kernel made it: [marker, ip, ip, …, marker, ip, …]. The first address after a
// marker is where that context was interrupted; the others are return addresses.
void ChainBuilder::AddSampledChain(PendingSample& pending, std::vector<AnalyzedFrame>& out) {
  const perfdata::U64Array& chain = pending.sample.callchain;
  const bool user_is_unwound = options_.unwind && WillUnwind(pending);
  CpuMode mode = CpuMode::kUser;
  auto kind = CodeAddressKind::kInstructionPointer;
  for (size_t i = 0; i < chain.size(); ++i) {
    const uint64_t ip = chain[i];
    if (ip >= perfdata::kContextMax) {
      const std::optional<CpuMode> next = perfdata::ModeOfMarker(ip);
      if (!next) {
        ++bad_chains_;
        out.resize(pending.first_frame);
        return;
      }
      mode = *next;
      kind = CodeAddressKind::kInstructionPointer;
      if (ip == perfdata::kContextUserDeferred) break;  // the cookie follows
      continue;
    }
    const CodeAddress address{Avma(ip), kind};
    kind = CodeAddressKind::kReturnAddress;
    if (mode == CpuMode::kUser && user_is_unwound) {
      const bool may_be_signed = pending.arch == unwind::Arch::kAarch64;
      user_chain_.push_back(may_be_signed ? StripCode(ip, pending.mask.insn) : ip);
    } else if (!Full(pending, out)) {
      AddFrame(pending, address, FrameOrigin::kKernelChain, mode, out);
    }
  }
  kind = CodeAddressKind::kInstructionPointer;
  for (const uint64_t ip : pending.deferred_chain) {
    if (ip >= perfdata::kContextMax) continue;
    if (Full(pending, out)) break;
    AddFrame(pending, {Avma(ip), kind}, FrameOrigin::kKernelChain, CpuMode::kUser, out);
    kind = CodeAddressKind::kReturnAddress;
  }
}

// Last branch records in call-stack mode hold the calls that have not returned, newest first:
//   user frames = where the newest call went, then where each call came from.
// They take the place of the user part of the chain. False: this sample has none.
bool ChainBuilder::AddBranchChain(PendingSample& pending, std::vector<AnalyzedFrame>& out) {
  const perfdata::Sample& sample = pending.sample;
  if ((pending.branch_sample_type & kBranchCallStack) == 0) return false;
  const size_t branches = sample.branches.size();
  size_t user = 0;
  while (user < sample.callchain.size() && sample.callchain[user] != perfdata::kContextUser) ++user;
  if (branches == 0 || user == sample.callchain.size()) return false;
  CpuMode mode = CpuMode::kUser;
  auto kind = CodeAddressKind::kInstructionPointer;
  for (size_t i = 0; i < user && !Full(pending, out); ++i) {
    const uint64_t ip = sample.callchain[i];
    if (ip >= perfdata::kContextMax) {
      mode = perfdata::ModeOfMarker(ip).value_or(CpuMode::kUnknown);
      kind = CodeAddressKind::kInstructionPointer;
      continue;
    }
    AddFrame(pending, {Avma(ip), kind}, FrameOrigin::kKernelChain, mode, out);
    kind = CodeAddressKind::kReturnAddress;
  }
  constexpr auto kExact = CodeAddressKind::kInstructionPointer;
  if (!Full(pending, out)) {
    AddFrame(pending, {Avma(sample.branches[0].to), kExact}, FrameOrigin::kKernelChain,
             CpuMode::kUser, out);
  }
  for (size_t i = 0; i < branches && !Full(pending, out); ++i) {
    AddFrame(pending, {Avma(sample.branches[i].from), kExact}, FrameOrigin::kKernelChain,
             CpuMode::kUser, out);
  }
  return true;
}

void ChainBuilder::AddUnwound(PendingSample& pending, std::vector<AnalyzedFrame>& out) {
  const perfdata::Sample& sample = pending.sample;
  std::optional<unwind::UnwindInput> input = UnwindInputOf(sample, pending.arch, pending.endian);
  if (!input || Full(pending, out)) return;
  input->maps = pending.user.unwind.get();
  input->code_mask = pending.mask.insn;
  input->max_frames = options_.max_frames - (out.size() - pending.first_frame);
  unwound_.clear();
  pending.user_end = unwinder_.Unwind(*input, unwound_);
  const size_t first = out.size();
  Unwound& last = LastOf(sample.tid);
  const size_t shared = SharedFrames(pending, last, out);
  for (size_t i = 0; i + shared < unwound_.size(); ++i) {
    AddFrame(pending, unwound_[i].address, unwound_[i].origin, CpuMode::kUser, out);
  }
  if (shared > 0) {
    const size_t from = last.first + last.count - shared;
    out.resize(out.size() + shared);
    std::copy_n(&out[from], shared, &out[out.size() - shared]);
  }
  last = {.tid = sample.tid,
          .arch = pending.arch,
          .version = pending.user.space->version(),
          .mask = pending.mask.insn,
          .first = first,
          .count = unwound_.size()};
  if (*pending.user_end == unwind::StackEnd::kDumpExhausted && !user_chain_.empty()) {
    last.count = 0;
    SpliceChain(pending, first, out);
  }
}

// How many of the outermost frames in unwound_ are those of `last`, to be made of the same maps. Of
// code that a JIT compiler made, the same address may be another function later.
size_t ChainBuilder::SharedFrames(const PendingSample& pending, const Unwound& last,
                                  const std::vector<AnalyzedFrame>& out) const {
  if (last.tid != pending.sample.tid || last.arch != pending.arch || pending.jit != nullptr ||
      last.version != pending.user.space->version() || last.mask != pending.mask.insn) {
    return 0;
  }
  const size_t most = std::min(last.count, unwound_.size());
  size_t shared = 0;
  while (shared < most) {
    const unwind::Frame& frame = unwound_[unwound_.size() - 1 - shared];
    const AnalyzedFrame& before = out[last.first + last.count - 1 - shared];
    if (before.address != frame.address || before.origin != frame.origin) break;
    ++shared;
  }
  return shared;
}

// A stack that the dump cut off goes on with the kernel's own chain. `first`: of the unwound
// frames.
void ChainBuilder::SpliceChain(const PendingSample& pending, size_t first,
                               std::vector<AnalyzedFrame>& out) {
  unwound_addresses_.clear();
  for (size_t i = first; i < out.size(); ++i) {
    unwound_addresses_.push_back(out[i].address.avma.value);
  }
  const auto splice = FindSplice(unwound_addresses_, user_chain_);
  if (!splice) return;
  out.resize(first + splice->keep);
  for (size_t i = splice->from; i < user_chain_.size() && !Full(pending, out); ++i) {
    AddFrame(pending, {Avma(user_chain_[i]), CodeAddressKind::kReturnAddress},
             FrameOrigin::kKernelChain, CpuMode::kUser, out);
  }
}

void ChainBuilder::AddFrame(const PendingSample& pending, CodeAddress address, FrameOrigin origin,
                            CpuMode mode, std::vector<AnalyzedFrame>& out) {
  AnalyzedFrame& frame = out.emplace_back();
  if (pending.arch == unwind::Arch::kAarch64) {
    // Frame pointers lead older kernels to addresses as they are signed; so do branch records.
    address.avma.value = StripCode(address.avma.value, pending.mask.insn);
  }
  frame.address = address;
  frame.origin = origin;
  frame.kernel = IsKernelMode(mode);
  const MapsAtTime* maps = MapsFor(pending, mode);
  if (maps == nullptr || maps->space == nullptr) return;
  const uint64_t lookup = address.LookupAddress().value;
  const bool placed = last_place_.Holds(maps->space->version(), lookup) || FindPlace(*maps, lookup);
  if (options_.jit_code && pending.jit != nullptr && mode == CpuMode::kUser &&
      (!placed || last_place_.jit) && FindJitCode(pending, lookup, frame)) {
    return;
  }
  if (!placed) return;
  frame.module = last_place_.module;
  frame.offset = FileOffset(address.avma.value - last_place_.offset_bias);
  frame.svma = Svma(address.avma.value - last_place_.bias);
}

bool ChainBuilder::FindJitCode(const PendingSample& pending, uint64_t lookup,
                               AnalyzedFrame& frame) {
  const session::JitCode* code = pending.jit->dump.Find(Avma(lookup), pending.jit_time);
  if (code == nullptr) return false;
  frame.module = pending.jit->module;
  frame.svma = code->SvmaOf(frame.address.avma);
  frame.offset = FileOffset(frame.svma.value);
  return true;
}

bool ChainBuilder::FindPlace(const MapsAtTime& maps, uint64_t lookup) {
  const session::AddressSpace::Entry* entry = maps.space->Find(Avma(lookup));
  if (entry == nullptr) return false;
  const auto index = static_cast<size_t>(entry - maps.space->entries().data());
  CHECK(index < maps.unwind->mappings.size());
  last_place_.version = maps.space->version();
  last_place_.start = entry->start;
  last_place_.end = entry->end;
  last_place_.module = entry->value.module;
  last_place_.offset_bias = entry->start - entry->value.offset.value;
  last_place_.bias = maps.unwind->mappings[index].bias;
  last_place_.jit = entry->value.jit;
  return true;
}

}  // namespace stackreel::analyze
