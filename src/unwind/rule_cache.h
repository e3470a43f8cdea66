// pc → rule, for the stacks of one thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "unwind/counts.h"
#include "unwind/pc_cache.h"
#include "unwind/rule_table.h"
#include "unwind/unwind.h"

namespace stackreel::unwind {

template <class Rule>
class RuleCache {
 public:
  // Before the look-ups of each stack; `maps` must stay until the next call.
  void Begin(const UnwindMaps& maps) {
    // More different rules than any set of real binaries has: the cache starts anew.
    constexpr size_t kMaxRules = size_t{1} << 18;
    if (rules_.size() > kMaxRules) {
      rules_.clear();
      cache_.Clear();
    }
    tag_ = cache_.TagOf(maps.version);
    maps_ = &maps;
    last_mapping_ = nullptr;
  }

  // The rule at `pc`; `exact`: pc is an instruction's address, not a return address. It holds until
  // the next call. What was not seen before is asked of make(mapping): null where pc is not in
  // executable memory.
  template <class Make>
  const Rule& Find(uint64_t pc, bool exact, Counts& counts, Make make) {
    const PcCache::Entry* entry = cache_.Find(pc, tag_ | static_cast<uint32_t>(exact));
    if (entry != nullptr) return rules_[entry->rule];
    return rules_[Miss(pc, exact, counts, make)];
  }

 private:
  template <class Make>
  uint32_t Miss(uint64_t pc, bool exact, Counts& counts, Make make) {
    ++counts.cache_misses;
    const uint64_t lookup = exact ? pc : pc - 1;
    if (last_mapping_ == nullptr || lookup < last_mapping_->start || lookup >= last_mapping_->end) {
      last_mapping_ = maps_->FindCode(pc, exact);
    }
    const UnwindMapping* mapping = last_mapping_;
    const uint32_t tag = tag_ | static_cast<uint32_t>(exact);
    PcCache::Origin origin;
    if (mapping != nullptr && mapping->module != nullptr) {
      origin = {mapping->module->serial(), mapping->bias};
      if (const auto* known = cache_.TakeOver(pc, tag, origin); known != nullptr) {
        return known->rule;
      }
    }
    const uint32_t rule = rules_.Intern(make(mapping));
    cache_.Insert({pc, tag, rule}, origin);
    return rule;
  }

  PcCache cache_;
  RuleTable<Rule> rules_;
  uint32_t tag_ = 0;
  const UnwindMaps* maps_ = nullptr;
  const UnwindMapping* last_mapping_ = nullptr;
};

// What a full unwinder keeps the rule of a pc by.
struct RuleKey {
  uint32_t module_serial = 0;
  bool exact = false;
  uint64_t svma = 0;
  friend bool operator==(const RuleKey&, const RuleKey&) = default;
};
struct RuleKeyHash {
  size_t operator()(const RuleKey& key) const noexcept {
    return (key.svma * 2 + static_cast<uint64_t>(key.exact)) * 0x9e3779b97f4a7c15 ^
           key.module_serial;
  }
};

}  // namespace stackreel::unwind
