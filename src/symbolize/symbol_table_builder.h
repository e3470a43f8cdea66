// Gathers symbols from several tables, then makes one sorted SymbolTable of them.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "symbolize/symbol_table.h"

namespace stackreel::symbolize {

// A symbol of some table. Its name lives elsewhere; where that is an ELF file's string table it is
// not even measured before somebody asks for it.
struct SymbolEntry {
  static constexpr uint32_t kUntilNul = std::numeric_limits<uint32_t>::max();

  uint64_t start = 0;
  uint64_t end = 0;  // equal to start: size not known
  const char* name = nullptr;
  uint32_t name_size = 0;  // or kUntilNul
  uint8_t binding = 0;     // STB_*
  bool sized = false;      // `end` is the table's own; set by Add

  [[nodiscard]] std::string_view Name() const {
    return {name, name_size == kUntilNul ? std::strlen(name) : name_size};
  }
  void SetName(std::string_view text) {
    name = text.data();
    name_size = static_cast<uint32_t>(text.size());
  }
};

// Which of several symbols at one address stays.
enum class AtOneAddress : uint8_t {
  kPreferred,  // perf's choice
  kLast,       // the one added last: code that was replaced
};

class SymbolTableBuilder {
 public:
  // Its name must outlive the table.
  void Add(SymbolEntry entry) {
    entry.sized = entry.end != entry.start;
    entries_.push_back(entry);
  }
  // The same, for a name that is made up: the table keeps it.
  void AddNamed(SymbolEntry entry, std::string name) {
    entry.SetName(made_names_.emplace_back(std::move(name)));
    Add(entry);
  }
  void Reserve(size_t more) { entries_.reserve(entries_.size() + more); }
  [[nodiscard]] size_t size() const { return entries_.size(); }
  // The name of the symbol that starts at `svma`, once settled; empty if none does.
  [[nodiscard]] std::string_view NameAt(uint64_t svma) const;

  // Sorts what was added, ends what has no end, keeps one symbol an address, or those that only
  // their names can choose among. May be called again after more was added: what is there stays as
  // it is, as perf adds PLT stubs to a finished table.
  void Settle(AtOneAddress choice = AtOneAddress::kPreferred);
  SymbolTable Build() &&;

 private:
  std::vector<SymbolEntry> entries_;
  std::deque<std::string> made_names_;
  size_t settled_ = 0;  // this many entries, in front, are settled
};

// Where perf ends the last symbol of a table if it has no size.
uint64_t EndOfPageAfter(uint64_t address);

// What perf chooses by among symbols at one address, before it looks at their names.
enum class Preference : uint8_t { kFirst, kSecond, kByName };
Preference PreferenceOf(const SymbolEntry& a, const SymbolEntry& b);
// The entry that perf prefers by its name; the first of equals. At least one is given.
const SymbolEntry& PreferredByName(std::span<const SymbolEntry> entries);

}  // namespace stackreel::symbolize
