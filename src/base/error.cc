#include "base/error.h"

#include <fmt/format.h>

namespace stackreel {

std::string Error::ToString() const {
  std::string out;
  if (!file.empty()) out += file + ": ";
  if (offset) out += fmt::format("offset {:#x}: ", *offset);
  return out + message;
}

}  // namespace stackreel
