// The text of a call chain, made anew only where it differs from that of the chain before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "session/module.h"
#include "symbolize/symbolizer.h"

namespace stackreel::views {

// All that a frame's lines depend on, but for the fields that are shown. Symbols are looked up once
// an address, and stay where they are.
struct ChainFrameKey {
  const symbolize::SymbolizedFrame* symbols = nullptr;
  uint64_t shown = 0;  // the address that is printed
  uint64_t svma = 0;
  session::ModuleId module = session::kNoModule;
  friend bool operator==(const ChainFrameKey&, const ChainFrameKey&) = default;
};

// Keeps the text of one chain, outermost frame first, in a buffer that is filled from its end: what
// is common to two chains lies behind what differs, and stays where it is.
//
//     | free | innermost … | outermost |
//            ^ text().begin()
class ChainText {
 public:
  // Begins a chain of which `fields` are shown. Its frames are then told from the outermost to the
  // innermost, those by Keep() first.
  void Begin(uint32_t fields) {
    if (fields != fields_) frames_.clear();
    fields_ = fields;
    kept_ = 0;
  }
  // True if the next frame is, as all before it, that of the chain before: its text is there.
  bool Keep(const ChainFrameKey& key) {
    if (kept_ == frames_.size() || frames_[kept_].key != key) return false;
    ++kept_;
    return true;
  }
  // The frames behind those that were kept are other ones.
  void Cut() { frames_.resize(kept_); }
  void Add(const ChainFrameKey& key, std::string_view lines);
  // Of the frames so far.
  [[nodiscard]] std::string_view text() const {
    const size_t size = frames_.empty() ? 0 : frames_.back().size;
    return std::string_view(buffer_).substr(buffer_.size() - size);
  }

 private:
  struct Frame {
    ChainFrameKey key;
    size_t size = 0;  // of the text from it outwards
  };
  uint32_t fields_ = 0;
  size_t kept_ = 0;
  std::vector<Frame> frames_;
  std::string buffer_;
};

}  // namespace stackreel::views
