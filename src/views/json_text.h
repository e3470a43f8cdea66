// JSON strings, for exports that are streamed.
#pragma once

#include <string>
#include <string_view>

namespace stackreel::views {

// Appends `text` with its quotes. Bytes that are no UTF-8 (names in recordings may be anything)
// become U+FFFD, so that the output is always valid.
void AppendJsonString(std::string& out, std::string_view text);

}  // namespace stackreel::views
