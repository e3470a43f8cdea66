// Pieces of text that the views of a trace are made of, put together without a format string: they
// are made millions of times.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/error.h"
#include "base/io.h"
#include "tracedata/call_event.h"

namespace stackreel::views {

// Text on its way to a sink, passed on in large pieces.
class TextStream {
 public:
  explicit TextStream(ByteSink& sink) : sink_(sink) { text_.reserve(kPiece + 4096); }
  // Append here.
  std::string& text() { return text_; }
  // To be called after each line or so.
  Status Pass() { return text_.size() < kPiece ? Status() : Flush(); }
  Status Flush() {
    const Status status = sink_.Write(AsBytes(text_));
    text_.clear();
    return status;
  }

 private:
  static constexpr size_t kPiece = size_t{256} << 10;
  ByteSink& sink_;
  std::string text_;
};

// A number, right-aligned in `width` columns.
void AppendNumber(std::string& out, uint64_t value, size_t width = 0, char fill = ' ');
// Ten columns: "   0.123 us", " 257.987 us", "   1.535 ms", "   2.000  s", "  61.500  m".
void AppendDuration(std::string& out, uint64_t nanoseconds);
// "13097.046535343", seconds and nanoseconds, in `width` columns.
void AppendSeconds(std::string& out, uint64_t nanoseconds, size_t width = 0);

}  // namespace stackreel::views
