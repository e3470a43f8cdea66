// Gives equal strings one small number.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

namespace stackreel {

// Not for use by several threads at once. Views stay valid as long as the interner lives.
class StringInterner {
 public:
  using Id = uint32_t;

  // Id 0 is the empty string.
  StringInterner() { Intern(""); }
  StringInterner(const StringInterner&) = delete;
  StringInterner& operator=(const StringInterner&) = delete;
  // Moving leaves the views valid: the strings stay where they are.
  StringInterner(StringInterner&&) noexcept = default;
  StringInterner& operator=(StringInterner&&) noexcept = default;

  Id Intern(std::string_view text) {
    if (auto it = ids_.find(text); it != ids_.end()) return it->second;
    const std::string& stored = strings_.emplace_back(text);
    const Id id = static_cast<Id>(strings_.size() - 1);
    ids_.emplace(stored, id);
    return id;
  }
  [[nodiscard]] std::string_view Text(Id id) const { return strings_[id]; }
  [[nodiscard]] size_t size() const { return strings_.size(); }

 private:
  std::deque<std::string> strings_;
  std::unordered_map<std::string_view, Id> ids_;
};

}  // namespace stackreel
