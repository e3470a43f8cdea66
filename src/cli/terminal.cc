#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace stackreel::cli {

bool IsTerminal(int fd) { return isatty(fd) != 0; }

size_t TerminalWidth(int fd) {
  constexpr size_t kNarrowest = 40;
  constexpr size_t kUsual = 80;
  if (!IsTerminal(fd)) return 0;
  winsize size = {};
  if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUsual;
  return std::max<size_t>(size.ws_col, kNarrowest);
}

bool UseColor(ColorWhen when, int fd) {
  if (when != ColorWhen::kAuto) return when == ColorWhen::kAlways;
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return IsTerminal(fd) && (no_color == nullptr || *no_color == '\0') &&
         (term == nullptr || std::string_view(term) != "dumb");
}

}  // namespace stackreel::cli
