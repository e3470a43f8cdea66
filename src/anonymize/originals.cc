#include "anonymize/originals.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <variant>

#include "anonymize/build.h"  // PseudonymsOf, which is told to the world
#include "session/limits.h"

namespace stackreel::anonymize {
namespace {

using perfdata::CpuMode;

constexpr uint64_t kUpperHalf = uint64_t{1} << 63;
// No process has memory from here to the kernel's half: what is said to lie there is damage, and
// the bytes of small numbers, read the other way round, look like it.
constexpr uint64_t kUserEnd = uint64_t{1} << 57;
constexpr uint64_t kLowest = 65536;
constexpr uint64_t kFixedTop = 0xffffffffff000000;

bool IsOfKernel(CpuMode mode, uint32_t pid) {
  return mode == CpuMode::kKernel || mode == CpuMode::kGuestKernel ||
         (mode != CpuMode::kGuestUser && pid == UINT32_MAX);
}

// Where a kernel's mapping begins that perf tells of from lower down: at the huge page of its
// symbol.
uint64_t StartOf(const SeenMapping& mapping, bool is_64_bit) {
  constexpr uint64_t kImageAlignment = uint64_t{2} << 20;
  const bool starts_below = is_64_bit ? mapping.addr < kUpperHalf : mapping.addr == 0;
  if (!mapping.kernel || !starts_below) return mapping.addr;
  return mapping.kernel_image ? mapping.pgoff & ~(kImageAlignment - 1) : 0;
}

}  // namespace

void AddressRanges::Join() {
  std::ranges::sort(ranges_);
  std::vector<Range> joined;
  for (const Range& range : ranges_) {
    if (joined.empty() || range.start > joined.back().end) {
      joined.push_back(range);
    } else {
      joined.back().end = std::max(joined.back().end, range.end);
    }
  }
  ranges_ = std::move(joined);
  around_ = {};
  if (!ranges_.empty()) around_ = {ranges_.front().start, ranges_.back().end};
  std::ranges::fill(pages_, UINT64_MAX);
}

bool AddressRanges::HasOfNewPage(uint64_t address) const {
  const auto after = std::ranges::upper_bound(ranges_, address, {}, &Range::start);
  if (after == ranges_.begin()) return false;
  const Range& range = *std::prev(after);
  if (address >= range.end) return false;
  const uint64_t start = address & ~(kSmallestPage - 1);
  if (range.start <= start && range.end - start >= kSmallestPage) {
    pages_[start / kSmallestPage % kPages] = start / kSmallestPage;
  }
  return true;
}

bool MapsBeyondMemory(const perfdata::Record& record) {
  const auto mode = static_cast<CpuMode>(record.misc & perfdata::kMiscCpuModeMask);
  const auto reaches = [mode](const auto& mmap) {
    return !IsOfKernel(mode, mmap.pid) && session::ReachesBeyondMemory(mmap.addr, mmap.len);
  };
  if (const auto* mmap = std::get_if<perfdata::Mmap>(&record.body)) return reaches(*mmap);
  const auto* mmap2 = std::get_if<perfdata::Mmap2>(&record.body);
  return mmap2 != nullptr && reaches(*mmap2);
}

void SeenMappings::Add(const perfdata::Record& record, uint64_t file_offset) {
  const auto mode = static_cast<CpuMode>(record.misc & perfdata::kMiscCpuModeMask);
  SeenMapping seen;
  seen.file_offset = file_offset;
  std::string_view name;
  const auto take = [&](const auto& mmap) {
    seen.addr = mmap.addr;
    seen.len = mmap.len;
    seen.pgoff = mmap.pgoff;
    seen.pid = mmap.pid;
    name = mmap.filename;
    seen.kernel = IsOfKernel(mode, mmap.pid);
    seen.kernel_image = seen.kernel && (name.starts_with("[kernel.kallsyms") ||
                                        name.starts_with("[guest.kernel.kallsyms"));
    seen.anonymous =
        !seen.kernel && (name.empty() || name.starts_with("//") || name.starts_with("["));
  };
  has_deferred_chains_ =
      has_deferred_chains_ || std::holds_alternative<perfdata::CallchainDeferred>(record.body);
  if (const auto* mmap = std::get_if<perfdata::Mmap>(&record.body)) {
    take(*mmap);
  } else if (const auto* mmap2 = std::get_if<perfdata::Mmap2>(&record.body)) {
    take(*mmap2);
  } else if (const auto* symbol = std::get_if<perfdata::Ksymbol>(&record.body)) {
    seen.addr = symbol->addr;
    seen.len = symbol->len;
    seen.pid = UINT32_MAX;
    name = symbol->name;
    seen.kernel = seen.symbol = true;
    constexpr uint16_t kUnregister = 1;
    seen.unregistered = (symbol->flags & kUnregister) != 0;
  } else {
    return;
  }
  seen.name = names_.Intern(name);
  const bool is_impossible = !seen.kernel && session::ReachesBeyondMemory(seen.addr, seen.len);
  (is_impossible ? impossible_ : all_).push_back(seen);
}

bool SeenMappings::Is64Bit(const std::string& arch) const {
  if (arch.find("64") != std::string::npos || arch == "s390x" || arch == "alpha") return true;
  bool wide = false, narrow = false;
  for (const SeenMapping& mapping : all_) {
    if (mapping.unregistered) continue;
    const uint64_t address = mapping.addr | (mapping.kernel_image ? mapping.pgoff : 0);
    wide = wide || address >= k4GB;
    narrow = narrow || (address != 0 && address < k4GB);
  }
  return wide || (arch.empty() && !narrow);
}

// Of arm64 readers know by the highest mapping which bits of an address are no signature's, so the
// transform makes no address that needs more.
AddressWidth SeenMappings::Width(const perfdata::Features& features) const {
  AddressWidth width;
  width.is_64_bit = Is64Bit(features.arch);
  width.has_signatures = features.arch == "aarch64";
  if (!width.is_64_bit || !width.has_signatures) return width;
  constexpr unsigned kUsual = 48, kLeast = 36, kMost = 56;
  uint64_t end = 0;
  for (const SeenMapping& mapping : all_) {
    if (mapping.kernel || mapping.addr >= kUpperHalf || mapping.len == 0) continue;
    end = std::max(end, mapping.addr + std::min(mapping.len, UINT64_MAX - mapping.addr));
  }
  const auto bits = static_cast<unsigned>(std::bit_width(end - 1));
  width.user_bits = end == 0 ? kUsual : std::clamp(bits, kLeast, kMost);
  return width;
}

void OriginalValues::Add(uint64_t start, uint64_t end) {
  if (start < kUpperHalf && end > kUserEnd) {
    end = std::min(end, kUserEnd);
    if (start >= end) return;
  }
  start &= ~(kSmallestPage - 1);
  end = ((end - 1) | (kSmallestPage - 1)) + 1;
  if (end == 0 || end > kFixedTop) end = kFixedTop;
  const uint64_t low_start = std::max(start, kLowest), low_end = std::min(end, k4GB);
  if (low_start < low_end) low_.Add(low_start, low_end);
  start = std::max(start, k4GB);
  if (start < end && width_.is_64_bit) ranges_.Add(start, end);
}

// The first and the last page.
void OriginalValues::AddEnds(uint64_t start, uint64_t end) {
  Add(start, start + 1);
  Add(end - 1, end);
}

OriginalValues::OriginalValues(const SeenMappings& in, const AddressWidth& width)
    : in_(&in), width_(width) {
  // Two letters and two zeros look like a multiple of 64 KB.
  constexpr uint64_t kLeastStart = uint64_t{16} << 20, kInText = 65536;
  for (const SeenMapping& mapping : in.all()) {
    const uint64_t start = StartOf(mapping, width.is_64_bit);
    const uint64_t end = mapping.addr + std::min(mapping.len, UINT64_MAX - mapping.addr);
    if (start == 0 || start >= end) continue;
    if (start >= kLeastStart && start < k4GB && start % kInText != 0) low_starts_.insert(start);
    // A module that is too large is none.
    const bool is_module = mapping.kernel && !mapping.kernel_image;
    const uint64_t size = is_module ? mapping.len : end - start;
    if (size <= k4GB) {
      Add(start, end);
    } else if (mapping.kernel_image) {
      Add(start, start + k4GB);
    } else {
      AddEnds(start, end);
    }
  }
  for (const SeenMapping& mapping : in.impossible()) {
    AddEnds(mapping.addr, mapping.addr + std::min(mapping.len, UINT64_MAX - mapping.addr));
  }
  ranges_.Join();
  low_.Join();
  for (const AddressRanges::Range& range : low_.all()) low_bytes_ += range.end - range.start;
  for (const AddressRanges::Range& range : ranges_.all()) {
    filter_.AddRange(range.start, range.end);
  }
}

void OriginalValues::AddMoves(const SeenMappings& in, const SeenMappings& out) {
  if (in.all().size() != out.all().size()) return;
  const AllowedPlaces places(out, width_);
  for (size_t i = 0; i < in.all().size(); ++i) {
    const uint64_t start = StartOf(in.all()[i], width_.is_64_bit);
    // What became nothing did not move.
    if (start == 0 || out.all()[i].addr == 0 || (start >= kUserEnd && start < kUpperHalf)) continue;
    // What is the address of something that did move tells nothing.
    for (const uint64_t move : {out.all()[i].addr - start, start - out.all()[i].addr}) {
      if (move < k4GB || places.Has(move) || HasAddress(move)) continue;
      moves_.insert(move);
      filter_.Add(move);
    }
  }
}

std::string OriginalValues::Describe(uint64_t value) const {
  if (in_ != nullptr) {
    for (const SeenMapping& mapping : in_->all()) {
      const uint64_t start = StartOf(mapping, width_.is_64_bit) & ~(kSmallestPage - 1);
      if (start == 0 || value < start) continue;
      const uint64_t end = mapping.addr + std::min(mapping.len, UINT64_MAX - mapping.addr);
      if (value >= end && (value - start) / kSmallestPage > (end - start) / kSmallestPage) continue;
      const std::string_view name = in_->NameOf(mapping);
      return fmt::format("{}{}", name.empty() ? "memory" : name,
                         mapping.kernel ? "" : fmt::format(" of process {}", mapping.pid));
    }
  }
  return "a mapping";
}

AllowedPlaces::AllowedPlaces(const SeenMappings& out, const AddressWidth& width) {
  for (const bool kernel : {false, true}) {
    const Span pseudonyms = PseudonymsOf(width, kernel);
    ranges_.Add(pseudonyms.start, pseudonyms.end);
  }
  for (const SeenMapping& mapping : out.all()) {
    if (mapping.IsOfUnknownPlace()) continue;
    const uint64_t end = mapping.addr + std::min(mapping.len, UINT64_MAX - 1 - mapping.addr);
    ranges_.Add(mapping.addr, end + 1);
  }
  ranges_.Join();
}

}  // namespace stackreel::anonymize
