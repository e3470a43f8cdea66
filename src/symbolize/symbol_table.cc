#include "symbolize/symbol_table.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "symbolize/kallsyms.h"
#include "symbolize/symbol_table_builder.h"

namespace stackreel::symbolize {

namespace {

constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

// Sorts by start, keeping the order of equal ones: by 11 bits at a time, lowest first (Knuth, TAOCP
// 5.2.5). Symbol tables are in the order of hash chains, which is none, and large.
void SortByStart(std::span<SymbolEntry> entries) {
  if (std::ranges::is_sorted(entries, {}, &SymbolEntry::start)) return;
  constexpr unsigned kBits = 11;
  constexpr size_t kDigits = size_t{1} << kBits;
  constexpr size_t kFew = 256;  // where counting digits costs more than it saves
  if (entries.size() < kFew) {
    std::ranges::stable_sort(entries, {}, &SymbolEntry::start);
    return;
  }
  struct Key {
    uint64_t start;
    size_t index;
  };
  std::vector<Key> keys(entries.size());
  std::vector<Key> next(entries.size());
  uint64_t bits_used = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    keys[i] = {entries[i].start, i};
    bits_used |= entries[i].start ^ entries[0].start;
  }
  for (unsigned shift = 0; shift < 64; shift += kBits) {
    if (((bits_used >> shift) & (kDigits - 1)) == 0) continue;
    std::array<size_t, kDigits> places = {};
    const auto digit = [shift](const Key& key) { return (key.start >> shift) & (kDigits - 1); };
    for (const Key& key : keys) ++places[digit(key)];
    size_t place = 0;
    for (size_t& count : places) place += std::exchange(count, place);
    for (const Key& key : keys) next[places[digit(key)]++] = key;
    keys.swap(next);
  }
  const std::vector<SymbolEntry> unsorted(entries.begin(), entries.end());
  for (size_t i = 0; i < keys.size(); ++i) entries[i] = unsorted[keys[i].index];
}

// Entries of one address that only their names can choose among, at the end of a table.
class Run {
 public:
  explicit Run(std::vector<SymbolEntry>& table) : table_(table) {}
  void StartWith(const SymbolEntry& entry) {
    first_ = table_.size();
    table_.push_back(entry);
  }
  void Replace(SymbolEntry entry) {
    table_.resize(first_);
    table_.push_back(entry);
  }
  void Offer(const SymbolEntry& entry) {
    switch (PreferenceOf(table_[first_], entry)) {
      case Preference::kFirst:
        return;
      case Preference::kSecond:
        Replace(entry);
        return;
      case Preference::kByName:
        table_.push_back(entry);
        // Which it is must not change where it ends.
        if (entry.end != table_[first_].end || entry.sized != table_[first_].sized) {
          Replace(PreferredByName(std::span(table_).subspan(first_)));
        }
        return;
    }
  }

 private:
  std::vector<SymbolEntry>& table_;
  size_t first_ = 0;
};

}  // namespace

uint64_t EndOfPageAfter(uint64_t address) {
  constexpr uint64_t kPage = 4096;
  return (address + kPage - 1) / kPage * kPage + kPage;
}

Preference PreferenceOf(const SymbolEntry& a, const SymbolEntry& b) {
  const auto prefer_second_if = [](bool second) {
    return second ? Preference::kSecond : Preference::kFirst;
  };
  const bool a_empty = a.end == a.start;
  const bool b_empty = b.end == b.start;
  if (a_empty != b_empty) return prefer_second_if(a_empty);
  const bool a_weak = a.binding == STB_WEAK;
  const bool b_weak = b.binding == STB_WEAK;
  if (a_weak != b_weak) return prefer_second_if(a_weak);
  const bool a_global = a.binding == STB_GLOBAL;
  const bool b_global = b.binding == STB_GLOBAL;
  if (a_global != b_global) return prefer_second_if(b_global);
  return Preference::kByName;
}

// The one with fewer underscores in front, then the longest; perf looks at names demangled.
const SymbolEntry& PreferredByName(std::span<const SymbolEntry> entries) {
  const SymbolEntry* best = &entries.front();
  if (entries.size() == 1) return *best;
  const auto rank = [](const SymbolEntry& entry) {
    const std::string name = Demangle(entry.Name());
    const size_t underscores = std::min(name.find_first_not_of('_'), name.size());
    return std::pair(underscores, std::numeric_limits<size_t>::max() - name.size());
  };
  auto best_rank = rank(*best);
  for (const SymbolEntry& entry : entries.subspan(1)) {
    if (entry.Name() == best->Name()) continue;  // .symtab and .dynsym have most symbols twice
    const auto entry_rank = rank(entry);
    if (entry_rank >= best_rank) continue;
    best = &entry;
    best_rank = entry_rank;
  }
  return *best;
}

void SymbolTableBuilder::Settle(AtOneAddress choice) {
  if (settled_ == entries_.size()) return;
  SortByStart(std::span(entries_).subspan(settled_));
  std::ranges::inplace_merge(entries_, entries_.begin() + static_cast<std::ptrdiff_t>(settled_), {},
                             &SymbolEntry::start);
  std::vector<SymbolEntry> table;
  table.reserve(entries_.size());
  Run run(table);
  for (size_t i = 0; i < entries_.size(); ++i) {
    SymbolEntry& symbol = entries_[i];
    if (symbol.end == symbol.start) {
      symbol.end = i + 1 == entries_.size() ? EndOfPageAfter(symbol.start) : entries_[i + 1].start;
    }
    if (table.empty() || table.back().start != symbol.start) {
      run.StartWith(symbol);
    } else if (choice == AtOneAddress::kLast) {
      run.Replace(symbol);
    } else {
      run.Offer(symbol);
    }
  }
  entries_ = std::move(table);
  settled_ = entries_.size();
}

std::string_view SymbolTableBuilder::NameAt(uint64_t svma) const {
  const auto run = std::ranges::equal_range(entries_, svma, {}, &SymbolEntry::start);
  return run.empty() ? std::string_view() : PreferredByName(run).Name();
}

SymbolTable SymbolTableBuilder::Build() && {
  SymbolTable table;
  table.made_names_ = std::move(made_names_);
  table.entries_ = std::move(entries_);
  const std::vector<SymbolEntry>& entries = table.entries_;
  const auto begins_run = [&entries](size_t i) {
    return i == 0 || entries[i].start != entries[i - 1].start;
  };
  bool overlap = false;
  uint64_t reach = 0;
  for (size_t i = 0; i < entries.size() && !overlap; ++i) {
    overlap = begins_run(i) && entries[i].start < reach;
    reach = std::max(reach, entries[i].end);
  }
  if (!overlap) return table;
  std::vector<uint32_t> open;
  table.enclosing_.reserve(entries.size());
  for (uint32_t i = 0; i < entries.size(); ++i) {
    if (begins_run(i)) {
      while (!open.empty() && entries[open.back()].end <= entries[i].start) open.pop_back();
      table.enclosing_.push_back(open.empty() ? kNone : open.back());
      open.push_back(i);
    } else {
      table.enclosing_.push_back(table.enclosing_.back());
    }
  }
  return table;
}

SymbolTable::SymbolTable() = default;
SymbolTable::~SymbolTable() = default;
SymbolTable::SymbolTable(SymbolTable&&) noexcept = default;
SymbolTable& SymbolTable::operator=(SymbolTable&&) noexcept = default;

bool SymbolTable::empty() const { return kallsyms_ ? kallsyms_->empty() : entries_.empty(); }

size_t SymbolTable::size() const { return kallsyms_ ? AllOfKallsyms().size() : entries_.size(); }

SymbolRange SymbolTable::At(size_t i) const {
  if (kallsyms_) return AllOfKallsyms().At(i);
  return {Svma(entries_[i].start), Svma(entries_[i].end), entries_[i].Name()};
}

std::optional<SymbolRange> SymbolTable::Find(Svma svma) const {
  if (kallsyms_) {
    const KallsymsSearch::Found found = kallsyms_->Find(svma);
    return found.in_order ? found.symbol : AllOfKallsyms().Find(svma);
  }
  const auto after = std::ranges::upper_bound(entries_, svma.value, {}, &SymbolEntry::start);
  if (after == entries_.begin()) return std::nullopt;
  uint32_t found = kNone;
  auto i = static_cast<uint32_t>(after - entries_.begin() - 1);
  while (i != kNone) {
    if (svma.value < entries_[i].end) {
      if (found == kNone || entries_[i].sized) found = i;
      if (entries_[i].sized) break;
    }
    i = enclosing_.empty() ? kNone : enclosing_[i];
  }
  if (found == kNone) return std::nullopt;
  const uint64_t start = entries_[found].start;
  const auto run = std::ranges::equal_range(entries_, start, {}, &SymbolEntry::start);
  return SymbolRange{Svma(start), Svma(entries_[found].end), PreferredByName(run).Name()};
}

}  // namespace stackreel::symbolize
