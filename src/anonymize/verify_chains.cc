#include "anonymize/verify_chains.h"

#include <algorithm>

#include "perfdata/context_marker.h"
#include "session/limits.h"

namespace stackreel::anonymize {
namespace {

using perfdata::CpuMode;

constexpr uint64_t kInPage = 4095;

// A lookup address: of a return address the byte before, in the call.
uint64_t LookupOf(uint64_t address, CodeAddressKind kind) {
  return CodeAddress{Avma(address), kind}.LookupAddress().value;
}

// Walks a chain as the kernel makes it: [marker, ip, ip, …, marker, ip, …]. The first address
// behind a marker is where that context was interrupted, the others are return addresses; behind
// the deferred marker there is none. False if a marker is none that is known.
template <typename OnAddress>
bool WalkChain(const perfdata::U64Array& chain, const OnAddress& on_address) {
  CpuMode mode = CpuMode::kUser;
  auto kind = CodeAddressKind::kInstructionPointer;
  for (size_t i = 0; i < chain.size(); ++i) {
    const uint64_t entry = chain[i];
    if (entry < perfdata::kContextMax) {
      on_address(entry, mode, kind);
      kind = CodeAddressKind::kReturnAddress;
      continue;
    }
    const std::optional<CpuMode> next = perfdata::ModeOfMarker(entry);
    if (!next) return false;
    if (entry == perfdata::kContextUserDeferred) break;
    mode = *next;
    kind = CodeAddressKind::kInstructionPointer;
  }
  return true;
}

}  // namespace

ChainedSample ChainedSampleOf(const perfdata::Sample& sample, CpuMode mode) {
  ChainedSample chained;
  chained.mode = mode;
  if (sample.Has(perfdata::kSampleTid)) {
    chained.pid = sample.pid;
    chained.tid = sample.tid;
  }
  if (sample.Has(perfdata::kSampleIp)) chained.ip = sample.ip;
  chained.chain = sample.callchain;
  return chained;
}

ComparedFrame FrameAt(const session::Module* module, std::string_view name, uint64_t address,
                      uint64_t file_offset) {
  const uint64_t in_page = address & kInPage;
  if (module == nullptr) return {"", in_page, ""};
  if (module->is_kernel() && module->key.kind != session::ModuleKind::kKernelModule) {
    // Of several kernels, each has a start of its own. Old perf told of one from lower down.
    constexpr uint64_t kImageAlignment = uint64_t{2} << 20, kUpperHalf = uint64_t{1} << 63;
    const uint64_t symbol = module->reference_address;
    uint64_t start = address - file_offset;
    if (start == 0 || (start < kUpperHalf && symbol >= kUpperHalf)) {
      start = symbol & ~(kImageAlignment - 1);
    }
    if (start == 0) return {name, in_page, ""};
    // One that is said to reach to the end of memory does not: of what lies there it is not known
    // what it is.
    if (address > start && address - start >= session::MostKernelBytes(start)) {
      return {"", in_page, ""};
    }
    return {name, address - start, ""};
  }
  // What is no offset may be an address.
  const bool has_file = (module->key.kind == session::ModuleKind::kFile ||
                         module->key.kind == session::ModuleKind::kVdso || module->is_kernel()) &&
                        file_offset < session::kCodeOffsetEnd;
  return {name, has_file ? file_offset : in_page, ""};
}

ChainCheck::ChainCheck(const perfdata::Reader& in, const perfdata::Reader& out, Level level)
    : in_(in, ignored_),
      out_(out, ignored_),
      modules_(level >= Level::kIdentity),
      symbols_(level >= Level::kSymbols) {}

void ChainCheck::Apply(Side& side, const perfdata::TimedRecord& record) {
  const auto& events = side.reader.events().events();
  const uint32_t event = record.event.value_or(0);
  side.session.Apply(record,
                     {side.reader.endian(), event < events.size() ? &events[event].attr : nullptr});
  for (Task& task : tasks_) task.known = false;
}

const session::AddressSpace* ChainCheck::SpaceOf(Side& side, CpuMode mode, uint32_t pid) {
  switch (mode) {
    case CpuMode::kKernel:
      return side.session.kernel_maps().get();
    case CpuMode::kUser:
      return side.session.ProcessOf(pid).maps.get();
    case CpuMode::kGuestKernel:
      return side.session.guest_kernel_maps().get();
    case CpuMode::kGuestUser:
      return side.session.GuestProcessOf(pid).maps.get();
    case CpuMode::kUnknown:
    case CpuMode::kHypervisor:
      break;
  }
  return nullptr;
}

ChainCheck::Task& ChainCheck::TaskOf(const ChainedSample& in, const ChainedSample& out) {
  Task& task = tasks_[in.tid % kTasks];
  if (!task.known || task.in_pid != in.pid || task.in_tid != in.tid || task.out_pid != out.pid ||
      task.out_tid != out.tid) {
    // Threads that were seen keep their process known.
    in_.session.ThreadOf(in.pid, in.tid);
    out_.session.ThreadOf(out.pid, out.tid);
    task.known = true;
    task.in_pid = in.pid;
    task.in_tid = in.tid;
    task.out_pid = out.pid;
    task.out_tid = out.tid;
    task.user = {SpaceOf(in_, CpuMode::kUser, in.pid), SpaceOf(out_, CpuMode::kUser, out.pid)};
  }
  return task;
}

ChainCheck::Spaces ChainCheck::SpacesOf(CpuMode mode, const ChainedSample& in,
                                        const ChainedSample& out) {
  if (mode == CpuMode::kUser) return TaskOf(in, out).user;
  return {SpaceOf(in_, mode, in.pid), SpaceOf(out_, mode, out.pid)};
}

std::string_view ChainCheck::NameOf(Side& side, session::ModuleId id) {
  const auto [name, is_new] = side.names.try_emplace(id);
  if (is_new) name->second = side.session.modules()[id].name();
  return name->second;
}

ComparedFrame ChainCheck::FrameOf(Side& side, const session::AddressSpace::Entry* entry,
                                  uint64_t address) {
  if (entry == nullptr) return FrameAt(nullptr, "", address, 0);
  const uint64_t file_offset = address - (entry->start - entry->value.offset.value);
  const session::ModuleId id = entry->value.module;
  return FrameAt(&side.session.modules()[id], NameOf(side, id), address, file_offset);
}

// Whether the addresses are at the same place, of any page.
bool ChainCheck::LookUp(const Spaces& spaces, uint64_t in, uint64_t out, CodeAddressKind kind) {
  ++lookups_;
  const uint64_t in_lookup = LookupOf(in, kind), out_lookup = LookupOf(out, kind);
  const auto find = [](const session::AddressSpace* space, uint64_t lookup) {
    return space == nullptr ? nullptr : space->Find(Avma(lookup));
  };
  const auto *before = find(spaces.in, in_lookup), *after = find(spaces.out, out_lookup);
  const ComparedFrame was = FrameOf(in_, before, in), is = FrameOf(out_, after, out);
  if (was.offset != is.offset || !modules_.Same(was.module, is.module)) return false;
  // Other addresses of the page differ from these by the same in both, if the page lies in one
  // mapping whole.
  const auto holds_page = [](const session::AddressSpace::Entry* entry, uint64_t lookup) {
    const uint64_t start = lookup & ~kInPage;
    return entry != nullptr && entry->start <= start && start <= UINT64_MAX - kInPage &&
           entry->end > start + kInPage;
  };
  if (((in_lookup ^ out_lookup) & kInPage) == 0 && holds_page(before, in_lookup) &&
      holds_page(after, out_lookup)) {
    PageOf(spaces.in->version(), in_lookup) = {spaces.in->version(), spaces.out->version(),
                                               in_lookup >> kPageShift, out_lookup >> kPageShift};
  }
  return true;
}

inline bool ChainCheck::IsKnown(const Spaces& spaces, uint64_t in_lookup, uint64_t out_lookup) {
  if (spaces.in == nullptr || spaces.out == nullptr) return false;
  const SamePage& page = PageOf(spaces.in->version(), in_lookup);
  return page.in_page == in_lookup >> kPageShift && page.out_page == out_lookup >> kPageShift &&
         ((in_lookup ^ out_lookup) & kInPage) == 0 && page.in_version == spaces.in->version() &&
         page.out_version == spaces.out->version();
}

inline bool ChainCheck::IsSame(const Spaces& spaces, uint64_t in, uint64_t out,
                               CodeAddressKind kind) {
  return IsKnown(spaces, LookupOf(in, kind), LookupOf(out, kind)) || LookUp(spaces, in, out, kind);
}

// How many bytes at the end of both chains are return addresses that both last chains end with.
size_t ChainCheck::EqualTail(const SameChains& last, const ChainedSample& in,
                             const ChainedSample& out) {
  if (last.outer == 0) return 0;
  return std::min(
      {last.outer, last.in.EqualTo(in.chain.bytes()), last.out.EqualTo(out.chain.bytes())});
}

// Whether return addresses in these spaces are what they were in the last chains.
bool ChainCheck::GoesOnAs(const SameChains& last, const Spaces& spaces) {
  return spaces.in != nullptr && spaces.out != nullptr && spaces.in->version() == last.in_version &&
         spaces.out->version() == last.out_version;
}

// True where they are, seen quickly; false where all is to be looked at.
bool ChainCheck::AreSame(const ChainedSample& in, const ChainedSample& out) {
  if (in.chain.size() != out.chain.size() || in.ip.has_value() != out.ip.has_value()) return false;
  Task& task = TaskOf(in, out);
  SameChains& last = task.chains;
  const size_t equal = EqualTail(last, in, out);
  const size_t inner = in.chain.size() - equal / sizeof(uint64_t);
  Spaces spaces = task.user;
  auto kind = CodeAddressKind::kInstructionPointer;
  bool has_frames = false;
  size_t outer_from = 0;  // the entry from which on there are return addresses only
  uint64_t page = UINT64_MAX, distance = 0;  // of a page that is known to be the same in `spaces`
  for (size_t i = 0; i < in.chain.size(); ++i) {
    if (i == inner && kind == CodeAddressKind::kReturnAddress && GoesOnAs(last, spaces)) break;
    const uint64_t before = in.chain[i], after = out.chain[i];
    if (before < perfdata::kContextMax && after < perfdata::kContextMax) [[likely]] {
      const uint64_t in_lookup = LookupOf(before, kind), out_lookup = LookupOf(after, kind);
      if (in_lookup >> kPageShift != page || after - before != distance) {
        bool is_known = IsKnown(spaces, in_lookup, out_lookup);
        if (!is_known) {
          if (!LookUp(spaces, before, after, kind)) return false;
          is_known = IsKnown(spaces, in_lookup, out_lookup);
        }
        page = is_known ? in_lookup >> kPageShift : UINT64_MAX;
        distance = after - before;
      }
      if (kind == CodeAddressKind::kInstructionPointer) outer_from = i + 1;
      kind = CodeAddressKind::kReturnAddress;
      has_frames = true;
      continue;
    }
    page = UINT64_MAX;
    const std::optional<CpuMode> mode = perfdata::ModeOfMarker(before);
    if (before != after || !mode) return false;
    outer_from = in.chain.size();
    if (before == perfdata::kContextUserDeferred) break;
    spaces = SpacesOf(*mode, in, out);
    kind = CodeAddressKind::kInstructionPointer;
  }
  last.in.Keep(in.chain.bytes(), equal);
  last.out.Keep(out.chain.bytes(), equal);
  last.outer = 0;
  if (spaces.in != nullptr && spaces.out != nullptr) {
    last.outer = (in.chain.size() - outer_from) * sizeof(uint64_t);
    last.in_version = spaces.in->version();
    last.out_version = spaces.out->version();
  }
  if (has_frames || !in.ip) return true;
  if (in.mode != out.mode) return false;
  return IsSame(SpacesOf(in.mode, in, out), *in.ip, *out.ip, CodeAddressKind::kInstructionPointer);
}

std::vector<ComparedFrame> ChainCheck::FramesOf(Side& side, const ChainedSample& sample) {
  std::vector<ComparedFrame> frames;
  const auto add = [&](uint64_t address, CpuMode mode, CodeAddressKind kind) {
    const session::AddressSpace* space = SpaceOf(side, mode, sample.pid);
    frames.push_back(FrameOf(
        side, space == nullptr ? nullptr : space->Find(Avma(LookupOf(address, kind))), address));
  };
  if (!WalkChain(sample.chain, add)) frames.clear();
  if (frames.empty() && sample.ip) {
    add(*sample.ip, sample.mode, CodeAddressKind::kInstructionPointer);
  }
  return frames;
}

std::optional<std::string> ChainCheck::Difference(const ChainedSample& in,
                                                  const ChainedSample& out) {
  if (AreSame(in, out)) return std::nullopt;
  return DifferenceOf(FramesOf(in_, in), FramesOf(out_, out), modules_, symbols_);
}

}  // namespace stackreel::anonymize
