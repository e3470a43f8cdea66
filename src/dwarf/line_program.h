// Runs one line number program into a LineTable.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/byte_reader.h"
#include "dwarf/line_table.h"

namespace stackreel::dwarf {

class LineProgram {
 public:
  LineProgram(const DebugInfo& info, const Unit& unit, uint64_t* rows_left, LineTable& table)
      : info_(info), unit_(unit), rows_left_(*rows_left), table_(table) {}

  // False if the program at `offset` is damaged; the table has what was read before.
  bool Run(uint64_t offset);

 private:
  // The state machine's registers, as far as they matter for where code came from (6.2.2).
  struct Registers {
    uint64_t address = 0;
    uint64_t op_index = 0;
    uint64_t file = 1;
    uint64_t line = 1;
    uint64_t column = 0;
  };
  struct AddressRow {
    uint64_t address = 0;
    LineRow row;
  };
  // What a directory or file entry of version 5 is made of.
  struct EntryFormat {
    uint64_t content = 0;
    uint64_t form = 0;
  };

  bool ReadHeader(uint64_t offset);
  bool ReadNames(ByteReader& reader);
  bool ReadEntries(ByteReader& reader, bool files);
  bool RunStandard(uint8_t opcode);
  bool RunExtended();
  bool RunSpecial(uint8_t opcode);
  void Advance(uint64_t operations);
  bool AddRow();
  void EndSequence();

  const DebugInfo& info_;
  const Unit& unit_;
  uint64_t& rows_left_;
  LineTable& table_;

  Encoding encoding_;
  ByteReader program_;
  uint8_t minimum_instruction_length_ = 1;
  uint8_t maximum_operations_ = 1;
  int8_t line_base_ = 0;
  uint8_t line_range_ = 0;
  uint8_t opcode_base_ = 0;
  std::array<uint8_t, 256> operand_counts_ = {};
  Registers registers_;
  std::vector<AddressRow> sequence_;
};

}  // namespace stackreel::dwarf
