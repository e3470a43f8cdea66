#include "anonymize/report.h"

#include <fmt/format.h>

#include <algorithm>

#include <nlohmann/json.hpp>

namespace stackreel::anonymize {

void FieldTally::Seek(const perfdata::FieldInfo& field) {
  const auto found = std::ranges::find(entries_, &field, &Entry::field);
  next_ = static_cast<size_t>(found - entries_.begin());
  if (found == entries_.end()) entries_.push_back({&field});
}

void Report::AddDropped(std::string_view structure, std::string_view why, uint64_t bytes) {
  Dropped& dropped = dropped_[{std::string(structure), std::string(why)}];
  ++dropped.count;
  dropped.bytes += bytes;
}

std::string Report::Text(Level level) const {
  std::string text =
      fmt::format("level: {}\n\n{:<22} {:<22} {:<20} {:>10} {:>10} {:>10}\n", LevelName(level),
                  "record", "field", "class", "kept", "changed", "dropped");
  for (const auto& [structure, tally] : structures_) {
    for (const FieldTally::Entry& entry : tally.entries()) {
      text += fmt::format("{:<22} {:<22} {:<20} {:>10} {:>10} {:>10}\n", structure,
                          entry.field->name, SensitivityName(entry.field->sensitivity), entry.kept,
                          entry.changed, entry.dropped);
    }
  }
  if (!dropped_.empty())
    text +=
        fmt::format("\n{:<22} {:<22} {:>10} {:>16}\n", "dropped whole", "why", "count", "bytes");
  for (const auto& [name, dropped] : dropped_) {
    text += fmt::format("{:<22} {:<22} {:>10} {:>16}\n", name.first, name.second, dropped.count,
                        dropped.bytes);
  }
  if (!counters.values().empty()) text += '\n';
  for (const auto& [name, count] : counters.values()) text += fmt::format("{}: {}\n", name, count);
  return text;
}

std::string Report::Json(Level level) const {
  nlohmann::ordered_json json = {{"schema", "stackreel-anonymize-report"},
                                 {"version", 1},
                                 {"level", LevelName(level)},
                                 {"fields", nlohmann::ordered_json::array()},
                                 {"dropped", nlohmann::ordered_json::array()},
                                 {"counters", nlohmann::ordered_json::object()}};
  for (const auto& [structure, tally] : structures_) {
    for (const FieldTally::Entry& entry : tally.entries()) {
      json["fields"].push_back({{"structure", structure},
                                {"field", entry.field->name},
                                {"class", SensitivityName(entry.field->sensitivity)},
                                {"kept", entry.kept},
                                {"changed", entry.changed},
                                {"dropped", entry.dropped}});
    }
  }
  for (const auto& [name, dropped] : dropped_) {
    json["dropped"].push_back({{"structure", name.first},
                               {"why", name.second},
                               {"count", dropped.count},
                               {"bytes", dropped.bytes}});
  }
  for (const auto& [name, count] : counters.values()) json["counters"][name] = count;
  return json.dump(1) + '\n';
}

}  // namespace stackreel::anonymize
