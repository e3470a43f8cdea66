// svma → file, line and column, from a line number program.
// Follows DWARF 5, section 6.2, and its forms in versions 2 to 4.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dwarf/flat_intervals.h"
#include "dwarf/unit.h"

namespace stackreel::dwarf {

struct LineRow {
  uint32_t offset = 0;  // from the start of the sequence
  uint32_t line = 0;    // 0: the compiler says there is none
  uint32_t file = 0;    // for LineTable::FilePath
  uint32_t column = 0;
};

class LineTable {
 public:
  // Runs the program at `offset` of .debug_line, which belongs to `unit`. Each row it makes takes
  // one of `*rows_left`. What is read before damage is kept.
  static LineTable Read(const DebugInfo& info, const Unit& unit, uint64_t offset,
                        uint64_t* rows_left);

  [[nodiscard]] bool damaged() const { return damaged_; }
  // The last row at or before an address, in the sequence that covers it; null if none does.
  [[nodiscard]] const LineRow* Find(uint64_t svma) const;
  // A file's name with its directory, by its number in rows and in DW_AT_call_file; empty if there
  // is no such file. Lives as long as the table.
  [[nodiscard]] std::string_view FilePath(uint64_t file);
  // Calls f(lo, hi) for each sequence, a stretch of code without holes.
  template <typename F>
  void ForEachSequence(F f) const {
    for (const Sequence& sequence : sequences_) f(sequence.lo, sequence.hi);
  }

 private:
  friend class LineProgram;

  struct Sequence {
    uint64_t lo = 0;
    uint64_t hi = 0;
    size_t first_row = 0;
    size_t row_count = 0;
  };
  struct File {
    std::string_view name;
    uint64_t directory = 0;
  };

  [[nodiscard]] std::string JoinPath(const File& file) const;

  uint16_t version_ = 0;
  bool damaged_ = false;
  std::string_view comp_dir_;
  std::vector<std::string_view> directories_;
  std::vector<File> files_;
  std::vector<const std::string*> paths_;  // by index in files_; null: not joined yet
  std::deque<std::string> joined_;
  std::vector<LineRow> rows_;
  std::vector<Sequence> sequences_;
  FlatIntervals sequence_at_;
};

}  // namespace stackreel::dwarf
