#include "dwarf/line_table.h"

#include <algorithm>
#include <span>
#include <utility>

#include "dwarf/line_program.h"

namespace stackreel::dwarf {

LineTable LineTable::Read(const DebugInfo& info, const Unit& unit, uint64_t offset,
                          uint64_t* rows_left) {
  LineTable table;
  table.comp_dir_ = info.TextOf(unit, unit.comp_dir);
  LineProgram program(info, unit, rows_left, table);
  table.damaged_ = !program.Run(offset);
  table.rows_.shrink_to_fit();
  table.paths_.resize(table.files_.size());
  std::vector<FlatIntervals::Interval> intervals;
  intervals.reserve(table.sequences_.size());
  for (const Sequence& sequence : table.sequences_) {
    const auto index = static_cast<uint32_t>(intervals.size());
    intervals.push_back({.lo = sequence.lo, .hi = sequence.hi, .value = index});
  }
  table.sequence_at_ = FlatIntervals(std::move(intervals));
  return table;
}

const LineRow* LineTable::Find(uint64_t svma) const {
  const uint32_t index = sequence_at_.Find(svma);
  if (index == FlatIntervals::kNone) return nullptr;
  const Sequence& sequence = sequences_[index];
  const std::span<const LineRow> rows =
      std::span(rows_).subspan(sequence.first_row, sequence.row_count);
  const auto after =
      std::upper_bound(rows.begin(), rows.end(), svma - sequence.lo,
                       [](uint64_t offset, const LineRow& row) { return offset < row.offset; });
  return after == rows.begin() ? nullptr : &*std::prev(after);
}

std::string LineTable::JoinPath(const File& file) const {
  if (file.name.starts_with('/')) return std::string(file.name);
  // Directory 0 is the compilation directory: written down in version 5, implied before.
  std::string_view directory;
  if (version_ >= 5) {
    if (file.directory < directories_.size()) directory = directories_[file.directory];
  } else if (file.directory != 0 && file.directory - 1 < directories_.size()) {
    directory = directories_[file.directory - 1];
  }
  std::string path;
  for (const std::string_view part :
       {directory.starts_with('/') ? std::string_view() : comp_dir_, directory, file.name}) {
    if (part.empty()) continue;
    if (!path.empty() && !path.ends_with('/')) path += '/';
    path += part;
  }
  return path;
}

std::string_view LineTable::FilePath(uint64_t file) {
  const uint64_t index = version_ >= 5 ? file : file - 1;
  if (index >= files_.size()) return {};
  if (paths_[index] == nullptr) paths_[index] = &joined_.emplace_back(JoinPath(files_[index]));
  return *paths_[index];
}

}  // namespace stackreel::dwarf
