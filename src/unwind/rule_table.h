// Rules that are equal, once: a module has tens to hundreds of different ones.
#pragma once

#include <bit>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace stackreel::unwind {

// `Rule` is trivially copyable, 16 bytes without padding, and comparable.
template <typename Rule>
class RuleTable {
 public:
  static_assert(sizeof(Rule) == 16);

  uint32_t Intern(const Rule& rule) {
    auto [it, fresh] = ids_.try_emplace(rule, static_cast<uint32_t>(rules_.size()));
    if (fresh) rules_.push_back(rule);
    return it->second;
  }
  [[nodiscard]] const Rule& operator[](uint32_t id) const { return rules_[id]; }
  [[nodiscard]] size_t size() const { return rules_.size(); }
  void clear() {
    rules_.clear();
    ids_.clear();
  }

 private:
  struct Hash {
    size_t operator()(const Rule& rule) const noexcept {
      struct Words {
        uint64_t low, high;
      };
      const auto words = std::bit_cast<Words>(rule);
      return (words.low * 0x9e3779b97f4a7c15) ^ (words.high * 0xc2b2ae3d27d4eb4f >> 7);
    }
  };
  std::vector<Rule> rules_;
  std::unordered_map<Rule, uint32_t, Hash> ids_;
};

}  // namespace stackreel::unwind
