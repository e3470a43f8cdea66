// Names of symbols with versions: open@@GLIBC_2.2.5, as .symtab has them.
#pragma once

#include <string_view>

namespace stackreel::symbolize {

// `name` up to its version, "@VERSION" or "@@VERSION" (the default one). A stub's "@plt" is none.
[[nodiscard]] inline std::string_view WithoutVersion(std::string_view name) {
  const size_t at = name.find('@');
  if (at == 0 || at == std::string_view::npos || name.substr(at) == "@plt") return name;
  return name.substr(0, at);
}

}  // namespace stackreel::symbolize
