// Verification kind (e): texts that a level hides.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "anonymize/level.h"
#include "base/bytes.h"
#include "perfdata/features.h"
#include "perfdata/record.h"

namespace stackreel::anonymize {

// Whether it may be a name: what has control characters, or one byte only, comes of damage, and
// numbers look like it.
bool IsText(std::string_view name);

// Gathers the texts of IN that may not stand in OUT: from kIdentity on the host's name, the names
// in /home/NAME and /Users/NAME, the words of the command line that are neither options nor names
// of commands, and the paths of control groups. Left out is what stands in OUT by right: words of
// every machine (public_names.h), numbers, events, and what is part of a binary's path besides. So
// are texts of fewer than 4 characters: they would be found everywhere. At kAddresses nothing is.
class DenyList {
 public:
  explicit DenyList(Level level) : level_(level) {}
  void AddRecord(const perfdata::Record& record);
  // After all records.
  void AddFeatures(const perfdata::Features& features);
  void Add(std::string_view text);
  [[nodiscard]] const std::set<std::string>& texts() const { return texts_; }

 private:
  void AddHomeOf(std::string_view path);
  void AddPath(const std::string& path);
  void AddCgroup(std::string_view path);
  void AddArguments(const std::vector<std::string>& words);

  Level level_;
  std::set<std::string> texts_, paths_;
};

// Finds any of several texts, as a whole word: with no letter or digit beside it.
class TextSearch {
 public:
  explicit TextSearch(const std::set<std::string>& texts);
  [[nodiscard]] bool empty() const { return texts_.empty(); }
  void Find(ByteView bytes,
            const std::function<void(size_t offset, std::string_view text)>& found) const;

 private:
  static size_t SlotOf(const uint8_t* bytes) {
    return (bytes[0] | size_t{bytes[1]} << 8) ^ (size_t{bytes[2]} << 4);
  }
  std::vector<std::string> texts_;
  std::vector<bool> may_begin_;  // by the first three bytes
};

}  // namespace stackreel::anonymize
