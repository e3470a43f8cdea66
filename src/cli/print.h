// Formatted output that does not throw where a file refuses bytes, as fmt::print does.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>

namespace stackreel::cli {

// What could not be written shows in ferror(file): Program::Run asks it of standard output. Of
// standard error nobody could be told.
template <typename... Args>
void Print(FILE* file, fmt::format_string<Args...> format, Args&&... args) {
  const std::string text = fmt::format(format, std::forward<Args>(args)...);
  std::fwrite(text.data(), 1, text.size(), file);
}

}  // namespace stackreel::cli
