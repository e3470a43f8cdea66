// From ids, as a file has them, to rows of a table.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace stackreel::tracedata {

// Ids of 28 bits. Each id takes memory for 4096 of them at most, whatever it is.
class IdRows {
 public:
  // nothing: the id was not added.
  [[nodiscard]] std::optional<uint32_t> Find(uint32_t id) const {
    const size_t page = id >> kPageBits;
    if (page >= pages_.size() || pages_[page] == nullptr) return std::nullopt;
    const uint32_t row = pages_[page][id & (kPage - 1)];
    if (row == 0) return std::nullopt;
    return row - 1;
  }
  void Set(uint32_t id, uint32_t row) {
    const size_t page = id >> kPageBits;
    if (page >= pages_.size()) pages_.resize(page + 1);
    if (pages_[page] == nullptr) pages_[page] = std::make_unique<uint32_t[]>(kPage);
    pages_[page][id & (kPage - 1)] = row + 1;
  }

 private:
  static constexpr uint32_t kPageBits = 12;
  static constexpr uint32_t kPage = 1 << kPageBits;
  std::vector<std::unique_ptr<uint32_t[]>> pages_;
};

}  // namespace stackreel::tracedata
