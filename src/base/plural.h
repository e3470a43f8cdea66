// Numbers of things, as people say them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stackreel {

// "1 call", "2 calls": of words whose plural has an s.
inline std::string Plural(uint64_t count, std::string_view what) {
  std::string text = std::to_string(count);
  text += ' ';
  text += what;
  if (count != 1) text += 's';
  return text;
}

// "1 call was", "2 calls were".
inline std::string PluralWere(uint64_t count, std::string_view what) {
  return Plural(count, what) + (count == 1 ? " was" : " were");
}

}  // namespace stackreel
