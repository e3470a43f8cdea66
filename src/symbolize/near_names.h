// Names that were perhaps meant.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stackreel::symbolize {

// Of `names` (as symbol tables have them) those nearest to what was typed, demangled: up to three,
// the nearest first. A name is near if it is the same but for case, contains what was typed, or is
// at most a third of it (or two letters) away in letters added, left out or changed. Signs of globs
// and regular expressions in `typed` do not count.
[[nodiscard]] std::vector<std::string> NearNames(std::string_view typed,
                                                 std::span<const std::string_view> names);

}  // namespace stackreel::symbolize
