// Gathers symbols from several tables, then makes one sorted SymbolTable of them.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "symbolize/symbol_table.h"

namespace stackreel::symbolize {

// A symbol of some table. `name` must live until Build.
struct SymbolCandidate {
  uint64_t start = 0;
  uint64_t end = 0;    // equal to start: size not known
  bool sized = false;  // `end` is the table's own; set by Add
  std::string_view name;
  uint8_t type = 0;     // STT_*
  uint8_t binding = 0;  // STB_*
};

// Where a symbol without a size ends.
enum class UnsizedEnd : uint8_t {
  kNextSymbol,
  // kallsyms: the gap between the kernel and a module is not the last symbol's.
  kNextSymbolOfSameModule,
};

// Which of several symbols at one address stays.
enum class AtOneAddress : uint8_t {
  kPreferred,  // perf's choice: see PrefersSecond
  kLast,       // the one added last: code that was replaced
};

class SymbolTableBuilder {
 public:
  void Add(SymbolCandidate candidate) {
    candidate.sized = candidate.end != candidate.start;
    candidates_.push_back(candidate);
  }
  // The same, for a name that is made up: the builder keeps it.
  void AddNamed(SymbolCandidate candidate, std::string name) {
    candidate.name = made_names_.emplace_back(std::move(name));
    Add(candidate);
  }
  [[nodiscard]] size_t size() const { return candidates_.size(); }
  // The name of the symbol that starts at `svma`, once settled; empty if none does.
  [[nodiscard]] std::string_view NameAt(uint64_t svma) const;

  // Sorts what was added, ends what has no end, keeps one symbol an address. May be called again
  // after more was added: what is there stays as it is, as perf adds PLT stubs to a finished table.
  void Settle(UnsizedEnd unsized, AtOneAddress choice = AtOneAddress::kPreferred);
  SymbolTable Build() &&;

 private:
  std::vector<SymbolCandidate> candidates_;
  std::deque<std::string> made_names_;
  size_t settled_ = 0;  // this many candidates, in front, are settled
};

// Where perf ends the last symbol of a table if it has no size.
uint64_t EndOfPageAfter(uint64_t address);

// True if perf prefers `b` to `a`, which stands before it at the same address.
bool PrefersSecond(const SymbolCandidate& a, const SymbolCandidate& b);

}  // namespace stackreel::symbolize
