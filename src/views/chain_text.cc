#include "views/chain_text.h"

#include <algorithm>
#include <utility>

namespace stackreel::views {

void ChainText::Add(const ChainFrameKey& key, std::string_view lines) {
  const size_t before = frames_.empty() ? 0 : frames_.back().size;
  const size_t size = before + lines.size();
  if (size > buffer_.size()) {
    std::string larger(2 * size, '\0');
    std::copy(buffer_.end() - static_cast<std::ptrdiff_t>(before), buffer_.end(),
              larger.end() - static_cast<std::ptrdiff_t>(before));
    buffer_ = std::move(larger);
  }
  std::copy(lines.begin(), lines.end(), buffer_.end() - static_cast<std::ptrdiff_t>(size));
  frames_.push_back({key, size});
}

}  // namespace stackreel::views
