#include "dwarf/cfi.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <unordered_map>
#include <utility>

#include "dwarf/frame_entry.h"
#include "dwarf/frame_header.h"

namespace stackreel::dwarf {
namespace {

constexpr size_t kMaxRowsAtOnce = 10'000;

struct Problems {
  uint64_t bad_cie = 0;
  uint64_t bad_fde = 0;
};

// Calls visit(fde, offset) for each FDE of a section that can be read, in the section's order.
template <typename Visit>
Problems ForEachFde(const FrameSections& sections, const FrameSection& section, Visit visit) {
  Problems problems;
  std::unordered_map<uint64_t, Result<Cie>> cies;
  uint64_t offset = 0;
  while (offset < section.bytes.size()) {
    const auto entry = ReadFrameEntry(sections, section, offset);
    if (!entry) {  // where the next one begins is not known
      if (section.bytes.size() - offset >= 4) ++problems.bad_fde;
      break;
    }
    offset = entry->end;
    if (entry->terminator || entry->is_cie) continue;
    auto [it, fresh] = cies.try_emplace(entry->cie_offset);
    if (fresh) {
      it->second = ReadCie(sections, section, entry->cie_offset);
      if (!it->second) ++problems.bad_cie;
    }
    if (!it->second) continue;
    const auto fde = ReadFde(sections, section, *entry, *it->second);
    if (!fde) {
      ++problems.bad_fde;
    } else if (!IsDeleted(*fde, sections.is_64bit)) {
      visit(*fde, entry->offset);
    }
  }
  return problems;
}

// Where the FDEs of one section are, sorted by start; made by the first who asks.
class LinearIndex {
 public:
  std::optional<uint64_t> Find(const FrameSections& sections, const FrameSection& section,
                               Svma svma) {
    if (section.bytes.empty()) return std::nullopt;
    Build(sections, section);
    auto it = std::upper_bound(entries_.begin(), entries_.end(), svma.value,
                               [](uint64_t value, const Entry& e) { return value < e.start; });
    if (it == entries_.begin()) return std::nullopt;
    --it;
    if (svma.value >= it->end) return std::nullopt;
    return it->offset;
  }
  // What was bad, 0 until the index was made.
  [[nodiscard]] Problems problems() const {
    return stage_.load(std::memory_order_acquire) == kDone ? problems_ : Problems{};
  }

 private:
  struct Entry {
    uint64_t start, end, offset;
  };
  enum Stage : uint32_t { kNotBegun, kBuilding, kDone };

  // An atomic stands for a once-flag: below the line "system" of layers.txt there is no <mutex>.
  void Build(const FrameSections& sections, const FrameSection& section) {
    if (stage_.load(std::memory_order_acquire) == kDone) return;
    uint32_t expected = kNotBegun;
    if (!stage_.compare_exchange_strong(expected, kBuilding)) {
      while (stage_.load(std::memory_order_acquire) != kDone) stage_.wait(kBuilding);
      return;
    }
    problems_ = ForEachFde(sections, section, [&](const Fde& fde, uint64_t offset) {
      entries_.push_back({fde.start.value, fde.end.value, offset});
    });
    std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
      return std::pair(a.start, a.end) < std::pair(b.start, b.end);
    });
    stage_.store(kDone, std::memory_order_release);
    stage_.notify_all();
  }

  std::vector<Entry> entries_;
  Problems problems_;
  std::atomic<uint32_t> stage_{kNotBegun};
};

}  // namespace

std::optional<Svma> EhFrameAddress(const FrameSections& sections) {
  const auto header = FrameHeader::Parse(sections);
  if (!header) return std::nullopt;
  return header->eh_frame();
}

struct FrameTable::State {
  FrameSections sections;
  std::optional<FrameHeader> header;
  bool header_is_damaged = false;
  // Whether the header's table was seen to be sorted: asked for once it failed to find something.
  enum Order : uint8_t { kUnknown, kSorted, kUnsorted };
  std::atomic<uint8_t> order{kUnknown};
  LinearIndex eh_index;
  LinearIndex debug_index;
  std::atomic<uint64_t> bad_header{0};
  std::atomic<uint64_t> bad_fde{0};

  [[nodiscard]] bool HeaderIsSorted() {
    uint8_t known = order.load(std::memory_order_relaxed);
    if (known == kUnknown) {
      known = header->IsSorted() ? kSorted : kUnsorted;
      if (order.exchange(known) == kUnknown && known == kUnsorted) ++bad_header;
    }
    return known == kSorted;
  }
  std::optional<Fde> FindByHeader(Svma svma, bool& trusted);
  std::optional<Fde> FindByIndex(LinearIndex& index, const FrameSection& section, Svma svma);
};

// `trusted` is false if the header led nowhere, so that the index has to be asked.
std::optional<Fde> FrameTable::State::FindByHeader(Svma svma, bool& trusted) {
  trusted = true;
  const FrameSection section = EhFrameOf(sections);
  if (const auto place = header->Find(svma)) {
    const uint64_t offset = *place - section.svma;
    auto fde = ReadFdeAt(sections, section, offset);
    if (!fde || fde->start > svma) {
      trusted = false;
      ++bad_header;
      return std::nullopt;
    }
    if (svma < fde->end) return *std::move(fde);
  }
  trusted = HeaderIsSorted();
  return std::nullopt;
}

std::optional<Fde> FrameTable::State::FindByIndex(LinearIndex& index, const FrameSection& section,
                                                  Svma svma) {
  const auto offset = index.Find(sections, section, svma);
  if (!offset) return std::nullopt;
  auto fde = ReadFdeAt(sections, section, *offset);
  if (!fde) return std::nullopt;
  return *std::move(fde);
}

FrameTable::FrameTable(const FrameSections& sections) : state_(std::make_unique<State>()) {
  state_->sections = sections;
  auto header = FrameHeader::Parse(sections);
  if (header) {
    state_->header = *header;
  } else if (header.error().kind == ErrorKind::kDamaged) {
    ++state_->bad_header;
  }
}
FrameTable::~FrameTable() = default;
FrameTable::FrameTable(FrameTable&&) noexcept = default;
FrameTable& FrameTable::operator=(FrameTable&&) noexcept = default;

std::optional<Fde> FrameTable::FindFde(Svma svma) const {
  State& state = *state_;
  bool trusted = false;
  if (state.header) {
    if (auto fde = state.FindByHeader(svma, trusted)) return fde;
  }
  if (!trusted) {
    if (auto fde = state.FindByIndex(state.eh_index, EhFrameOf(state.sections), svma)) return fde;
  }
  return state.FindByIndex(state.debug_index, DebugFrameOf(state.sections), svma);
}

RowCursor FrameTable::Rows(const Fde& fde) const { return {fde, state_->sections}; }

Result<Row> FrameTable::FindRow(Svma svma, bool* signal_frame) const {
  const auto fde = FindFde(svma);
  if (!fde) return Fail(ErrorKind::kNotFound, fmt::format("no CFI for {:#x}", svma.value));
  if (signal_frame != nullptr) *signal_frame = fde->cie.signal_frame;
  RowCursor cursor = Rows(*fde);
  while (true) {
    TRY_ASSIGN(const bool more, cursor.Next());
    if (!more) return Fail(ErrorKind::kDamaged, fmt::format("no CFI row for {:#x}", svma.value));
    if (svma < cursor.row().end) return cursor.row();
  }
}

Result<std::vector<Row>> FrameTable::ReadRows(const Fde& fde) const {
  std::vector<Row> rows;
  RowCursor cursor = Rows(fde);
  while (true) {
    TRY_ASSIGN(const bool more, cursor.Next());
    if (!more) return rows;
    if (rows.size() == kMaxRowsAtOnce) {
      return Fail(ErrorKind::kUnsupported,
                  fmt::format("more than {} CFI rows in one function", kMaxRowsAtOnce));
    }
    rows.push_back(cursor.row());
  }
}

std::vector<Fde> FrameTable::AllFdes() const {
  std::vector<Fde> fdes;
  const auto keep = [&](const Fde& fde, uint64_t) { fdes.push_back(fde); };
  const FrameSections& sections = state_->sections;
  ForEachFde(sections, EhFrameOf(sections), keep);
  ForEachFde(sections, DebugFrameOf(sections), keep);
  std::stable_sort(fdes.begin(), fdes.end(),
                   [](const Fde& a, const Fde& b) { return a.start < b.start; });
  return fdes;
}

Counters FrameTable::counters() const {
  Problems problems = state_->eh_index.problems();
  const Problems debug = state_->debug_index.problems();
  Counters counters;
  counters.Add("cfi.bad_cie", problems.bad_cie + debug.bad_cie);
  counters.Add("cfi.bad_fde", problems.bad_fde + debug.bad_fde);
  counters.Add("cfi.bad_header", state_->bad_header);
  return counters;
}

}  // namespace stackreel::dwarf
