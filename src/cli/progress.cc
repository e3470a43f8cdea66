#include "cli/progress.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <memory>

#include "cli/print.h"

namespace stackreel::cli {
namespace {

using Clock = std::chrono::steady_clock;

class Line {
 public:
  explicit Line(std::string what) : what_(std::move(what)) {}
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;
  ~Line() {
    if (shown_) Print(stderr, "\r\x1b[K");
  }

  void Show(uint64_t done, uint64_t total) {
    const Clock::time_point now = Clock::now();
    if (now - start_ < std::chrono::seconds(1)) return;
    if (now - last_ < std::chrono::milliseconds(100)) return;
    last_ = now;
    shown_ = true;
    const double seconds = std::chrono::duration<double>(now - start_).count();
    const double rate = static_cast<double>(done) / seconds;
    constexpr double kMb = 1e6;
    std::string text = fmt::format("{}: {:.1f} MB, {:.1f} MB/s", what_,
                                   static_cast<double>(done) / kMb, rate / kMb);
    if (total > done && rate > 0) {
      text += fmt::format(", {:.0f} %, {:.0f} s left",
                          100.0 * static_cast<double>(done) / static_cast<double>(total),
                          static_cast<double>(total - done) / rate);
    }
    Print(stderr, "\r{}\x1b[K", text);
    std::fflush(stderr);
  }

 private:
  std::string what_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_;
  bool shown_ = false;
};

}  // namespace

std::function<void(uint64_t, uint64_t)> ProgressLine(const std::string& what) {
  auto line = std::make_shared<Line>(what);
  return [line](uint64_t done, uint64_t total) { line->Show(done, total); };
}

}  // namespace stackreel::cli
