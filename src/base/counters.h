// Named counts of what was lost or bad, so that nothing goes silently.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace stackreel {

// Names are lower-case words, dotted from general to special: "perfdata.unknown_record",
// "unwind.no_cfi". Each is explained in docs/counters.md. Not for use by several threads at once.
class Counters {
 public:
  void Add(std::string_view name, uint64_t n = 1) {
    if (n == 0) return;
    auto it = values_.find(name);
    if (it == values_.end()) it = values_.emplace(std::string(name), 0).first;
    it->second += n;
  }
  [[nodiscard]] uint64_t Get(std::string_view name) const {
    auto it = values_.find(name);
    return it == values_.end() ? 0 : it->second;
  }
  void Merge(const Counters& other) {
    for (const auto& [name, n] : other.values_) Add(name, n);
  }
  [[nodiscard]] const std::map<std::string, uint64_t, std::less<>>& values() const {
    return values_;
  }

 private:
  std::map<std::string, uint64_t, std::less<>> values_;
};

}  // namespace stackreel
