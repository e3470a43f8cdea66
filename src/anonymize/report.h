// What became of each field of each kind of record: kept, changed or dropped, and how often.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "anonymize/level.h"
#include "base/counters.h"
#include "perfdata/schema.h"

namespace stackreel::anonymize {

// Why something was dropped that was not as its type says.
inline constexpr std::string_view kWhyDamaged = "damaged";

enum class Fate : uint8_t { kKept, kChanged, kDropped };

// Of the fields of one structure, in the order in which they are met.
class FieldTally {
 public:
  struct Entry {
    const perfdata::FieldInfo* field = nullptr;  // in a layout table, which stays
    uint64_t kept = 0, changed = 0, dropped = 0;
  };
  // A record begins: its first field comes next.
  void Begin() { next_ = 0; }
  void Add(const perfdata::FieldInfo& field, Fate fate) {
    if (next_ >= entries_.size() || entries_[next_].field != &field) Seek(field);
    Entry& entry = entries_[next_++];
    ++(fate == Fate::kKept ? entry.kept : fate == Fate::kChanged ? entry.changed : entry.dropped);
  }
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }

 private:
  void Seek(const perfdata::FieldInfo& field);

  std::vector<Entry> entries_;
  size_t next_ = 0;
};

class Report {
 public:
  // Of "MMAP2", "SAMPLE", "feature CMDLINE", …; stays where it is.
  FieldTally& Structure(std::string_view name) { return structures_[std::string(name)]; }
  // A record or feature that is not in the output at all, and why: "unknown", "payload", …
  void AddDropped(std::string_view structure, std::string_view why, uint64_t bytes);

  [[nodiscard]] const std::map<std::string, FieldTally>& structures() const { return structures_; }
  struct Dropped {
    uint64_t count = 0, bytes = 0;
  };
  // By structure and reason.
  [[nodiscard]] const std::map<std::pair<std::string, std::string>, Dropped>& dropped() const {
    return dropped_;
  }
  // What else is worth a word: "anonymize.outside_mappings", …
  Counters counters;

  // One line a field: structure, field, class, kept, changed, dropped.
  [[nodiscard]] std::string Text(Level level) const;
  // {"schema": "stackreel-anonymize-report", "version": 1, "level", "fields": [{"structure",
  // "field", "class", "kept", "changed", "dropped"}], "dropped": [{"structure", "why", "count",
  // "bytes"}], "counters": {…}}
  [[nodiscard]] std::string Json(Level level) const;

 private:
  std::map<std::string, FieldTally> structures_;
  std::map<std::pair<std::string, std::string>, Dropped> dropped_;
};

}  // namespace stackreel::anonymize
