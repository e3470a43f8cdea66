#include "symbolize/symbol_table.h"

#include <elf.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "symbolize/plt.h"
#include "symbolize/symbol_table_builder.h"

namespace stackreel::symbolize {

namespace {

constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
size_t LeadingUnderscores(std::string_view name) {
  return std::min(name.find_first_not_of('_'), name.size());
}

std::string_view ModuleOf(std::string_view name) {
  const size_t bracket = name.find('[');
  return bracket == std::string_view::npos ? std::string_view() : name.substr(bracket);
}

}  // namespace

uint64_t EndOfPageAfter(uint64_t address) {
  constexpr uint64_t kPage = 4096;
  return (address + kPage - 1) / kPage * kPage + kPage;
}

bool PrefersSecond(const SymbolCandidate& a, const SymbolCandidate& b) {
  const bool a_empty = a.end == a.start;
  const bool b_empty = b.end == b.start;
  if (a_empty != b_empty) return a_empty;
  const bool a_weak = a.binding == STB_WEAK;
  const bool b_weak = b.binding == STB_WEAK;
  if (a_weak != b_weak) return a_weak;
  const bool a_global = a.binding == STB_GLOBAL;
  const bool b_global = b.binding == STB_GLOBAL;
  if (a_global != b_global) return b_global;
  if (a.name == b.name) return false;  // .symtab and .dynsym have most symbols twice
  // perf compares names after demangling them.
  const std::string a_name = Demangle(a.name);
  const std::string b_name = Demangle(b.name);
  const size_t a_underscores = LeadingUnderscores(a_name);
  const size_t b_underscores = LeadingUnderscores(b_name);
  if (a_underscores != b_underscores) return b_underscores < a_underscores;
  return b_name.size() > a_name.size();
}

void SymbolTableBuilder::Settle(UnsizedEnd unsized, AtOneAddress choice) {
  const auto added = candidates_.begin() + static_cast<std::ptrdiff_t>(settled_);
  // kallsyms and most perf maps are sorted.
  if (!std::ranges::is_sorted(added, candidates_.end(), {}, &SymbolCandidate::start)) {
    std::ranges::stable_sort(added, candidates_.end(), {}, &SymbolCandidate::start);
  }
  std::ranges::inplace_merge(candidates_, added, {}, &SymbolCandidate::start);
  for (size_t i = 0; i < candidates_.size(); ++i) {
    SymbolCandidate& symbol = candidates_[i];
    if (symbol.end != symbol.start) continue;
    if (i + 1 == candidates_.size() ||
        (unsized == UnsizedEnd::kNextSymbolOfSameModule &&
         ModuleOf(symbol.name) != ModuleOf(candidates_[i + 1].name))) {
      symbol.end = EndOfPageAfter(symbol.start);
    } else {
      symbol.end = candidates_[i + 1].start;
    }
  }
  size_t kept = 0;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    if (kept == 0 || candidates_[kept - 1].start != candidates_[i].start) {
      candidates_[kept++] = candidates_[i];
    } else if (choice == AtOneAddress::kLast ||
               PrefersSecond(candidates_[kept - 1], candidates_[i])) {
      candidates_[kept - 1] = candidates_[i];
    }
  }
  candidates_.resize(kept);
  settled_ = kept;
}

std::string_view SymbolTableBuilder::NameAt(uint64_t svma) const {
  const auto it = std::ranges::lower_bound(candidates_, svma, {}, &SymbolCandidate::start);
  return it == candidates_.end() || it->start != svma ? std::string_view() : it->name;
}

SymbolTable SymbolTableBuilder::Build() && {
  SymbolTable table;
  size_t names_size = 0;
  for (const SymbolCandidate& symbol : candidates_) names_size += symbol.name.size();
  table.names_.reserve(names_size);
  table.symbols_.reserve(candidates_.size());
  bool overlap = false;
  uint64_t reach = 0;
  for (const SymbolCandidate& symbol : candidates_) {
    const char* name = table.names_.data() + table.names_.size();
    table.names_.insert(table.names_.end(), symbol.name.begin(), symbol.name.end());
    table.symbols_.push_back(
        {Svma(symbol.start), Svma(symbol.end), std::string_view(name, symbol.name.size())});
    overlap |= symbol.start < reach;
    reach = std::max(reach, symbol.end);
  }
  if (!overlap) return table;
  std::vector<uint32_t> open;
  table.enclosing_.reserve(table.symbols_.size());
  table.sized_.reserve(table.symbols_.size());
  for (uint32_t i = 0; i < table.symbols_.size(); ++i) {
    while (!open.empty() && table.symbols_[open.back()].end <= table.symbols_[i].start) {
      open.pop_back();
    }
    table.enclosing_.push_back(open.empty() ? kNone : open.back());
    table.sized_.push_back(candidates_[i].sized);
    open.push_back(i);
  }
  return table;
}

const SymbolRange* SymbolTable::Find(Svma svma) const {
  const auto after = std::ranges::upper_bound(symbols_, svma, {}, &SymbolRange::start);
  if (after == symbols_.begin()) return nullptr;
  auto i = static_cast<uint32_t>(after - symbols_.begin() - 1);
  if (enclosing_.empty()) return svma < symbols_[i].end ? &symbols_[i] : nullptr;
  const SymbolRange* unsized = nullptr;
  for (; i != kNone; i = enclosing_[i]) {
    if (svma >= symbols_[i].end) continue;
    if (sized_[i]) return &symbols_[i];
    if (unsized == nullptr) unsized = &symbols_[i];
  }
  return unsized;
}

}  // namespace stackreel::symbolize
