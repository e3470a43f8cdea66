#include "dwarf/line_program.h"

#include <algorithm>

#include "dwarf/constants.h"

namespace stackreel::dwarf {

// Header (6.2.4):
//   length, u16 version, [5: u8 address size, u8 segment selector size], header length,
//   u8 minimum instruction length, [4: u8 maximum operations], u8 default is_stmt, s8 line base,
//   u8 line range, u8 opcode base, u8 operand counts[opcode base - 1], directories, files
bool LineProgram::ReadHeader(uint64_t offset) {
  ByteReader reader(info_.line(), info_.sections().endian);
  reader.Seek(offset);
  uint64_t length = reader.U32();
  if (length == 0xffffffff) {
    encoding_.dwarf64 = true;
    length = reader.U64();
  }
  if (!reader.ok() || length > reader.remaining()) return false;
  const uint64_t end = reader.offset() + length;
  reader = ByteReader(info_.line().first(end), info_.sections().endian);
  reader.Seek(end - length);
  encoding_.version = reader.U16();
  if (encoding_.version < 2 || encoding_.version > 5) return false;
  encoding_.address_size = unit_.encoding.address_size;
  if (encoding_.version >= 5) {
    encoding_.address_size = reader.U8();
    reader.Skip(1);
  }
  const uint64_t header_length = ReadSized(reader, encoding_.offset_size());
  if (!reader.ok() || header_length > reader.remaining()) return false;
  program_ = reader;
  program_.Skip(header_length);
  minimum_instruction_length_ = reader.U8();
  if (encoding_.version >= 4) maximum_operations_ = std::max<uint8_t>(reader.U8(), 1);
  reader.Skip(1);  // whether rows begin as statements: every row tells where its code came from
  line_base_ = reader.S8();
  line_range_ = reader.U8();
  opcode_base_ = reader.U8();
  if (opcode_base_ == 0) return false;
  for (unsigned i = 1; i < opcode_base_; ++i) operand_counts_[i] = reader.U8();
  table_.version_ = encoding_.version;
  return reader.ok() && ReadNames(reader);
}

bool LineProgram::ReadNames(ByteReader& reader) {
  if (encoding_.version >= 5) return ReadEntries(reader, false) && ReadEntries(reader, true);
  while (true) {
    const std::string_view directory = reader.CString();
    if (!reader.ok()) return false;
    if (directory.empty()) break;
    table_.directories_.push_back(directory);
  }
  while (true) {
    LineTable::File file;
    file.name = reader.CString();
    if (!reader.ok()) return false;
    if (file.name.empty()) break;
    file.directory = reader.Uleb128();
    reader.Uleb128();  // time
    reader.Uleb128();  // size
    table_.files_.push_back(file);
  }
  return reader.ok();
}

// Version 5: u8 count of formats, { uleb128 content, form }, uleb128 count of entries, entries.
bool LineProgram::ReadEntries(ByteReader& reader, bool files) {
  std::vector<EntryFormat> formats(reader.U8());
  for (EntryFormat& format : formats) {
    format.content = reader.Uleb128();
    format.form = reader.Uleb128();
    if (format.form > UINT16_MAX) return false;
  }
  const uint64_t count = reader.Uleb128();
  for (uint64_t i = 0; i < count; ++i) {
    const size_t start = reader.offset();
    LineTable::File file;
    for (const EntryFormat& format : formats) {
      FormValue value;
      if (!ReadForm(reader, static_cast<uint16_t>(format.form), 0, encoding_, &value)) return false;
      if (format.content == kLnctPath) file.name = info_.TextOf(unit_, value);
      if (format.content == kLnctDirectoryIndex) file.directory = value.number;
    }
    if (!reader.ok() || reader.offset() == start) return false;
    if (files) {
      table_.files_.push_back(file);
    } else {
      table_.directories_.push_back(file.name);
    }
  }
  return reader.ok();
}

bool LineProgram::Run(uint64_t offset) {
  if (!ReadHeader(offset)) return false;
  while (!program_.AtEnd()) {
    const uint8_t opcode = program_.U8();
    bool good = true;
    if (opcode >= opcode_base_) {
      good = RunSpecial(opcode);
    } else if (opcode == kLnsExtended) {
      good = RunExtended();
    } else {
      good = RunStandard(opcode);
    }
    if (!good || !program_.ok()) return false;
  }
  return sequence_.empty();  // else the last one never ended
}

void LineProgram::Advance(uint64_t operations) {
  if (maximum_operations_ == 1) {
    registers_.address += minimum_instruction_length_ * operations;
    return;
  }
  const uint64_t index = registers_.op_index + operations;
  registers_.address += minimum_instruction_length_ * (index / maximum_operations_);
  registers_.op_index = index % maximum_operations_;
}

bool LineProgram::RunSpecial(uint8_t opcode) {
  if (line_range_ == 0) return false;
  const unsigned adjusted = static_cast<unsigned>(opcode) - opcode_base_;
  Advance(adjusted / line_range_);
  registers_.line += static_cast<uint64_t>(int64_t{line_base_} + adjusted % line_range_);
  return AddRow();
}

bool LineProgram::RunStandard(uint8_t opcode) {
  switch (opcode) {
    case kLnsCopy:
      return AddRow();
    case kLnsAdvancePc:
      Advance(program_.Uleb128());
      return true;
    case kLnsAdvanceLine:
      registers_.line += static_cast<uint64_t>(program_.Sleb128());
      return true;
    case kLnsSetFile:
      registers_.file = program_.Uleb128();
      return true;
    case kLnsSetColumn:
      registers_.column = program_.Uleb128();
      return true;
    case kLnsConstAddPc:
      if (line_range_ == 0) return false;
      Advance((255U - opcode_base_) / line_range_);
      return true;
    case kLnsFixedAdvancePc:
      registers_.address += program_.U16();
      registers_.op_index = 0;
      return true;
    default:  // those without effect here, and those that are not known
      for (unsigned i = 0; i < operand_counts_[opcode]; ++i) program_.Uleb128();
      return true;
  }
}

bool LineProgram::RunExtended() {
  const uint64_t length = program_.Uleb128();
  if (!program_.ok() || length > program_.remaining()) return false;
  if (length == 0) return true;
  ByteReader operands(program_.Bytes(length), info_.sections().endian);
  switch (operands.U8()) {
    case kLneEndSequence:
      EndSequence();
      return true;
    case kLneSetAddress:
      registers_.address =
          ReadSized(operands, static_cast<unsigned>(std::min<uint64_t>(operands.remaining(), 255)));
      registers_.op_index = 0;
      return operands.ok();
    case kLneDefineFile: {
      LineTable::File file;
      file.name = operands.CString();
      file.directory = operands.Uleb128();
      table_.files_.push_back(file);
      return operands.ok();
    }
    default:
      return true;
  }
}

bool LineProgram::AddRow() {
  if (rows_left_ == 0) return false;
  --rows_left_;
  const auto narrow = [](uint64_t n) {
    return static_cast<uint32_t>(std::min<uint64_t>(n, UINT32_MAX));
  };
  AddressRow row;
  row.address = registers_.address;
  row.row.line = static_cast<uint32_t>(registers_.line);
  row.row.file = narrow(registers_.file);
  row.row.column = narrow(registers_.column);
  // Of several rows at one address the last one counts.
  if (!sequence_.empty() && sequence_.back().address == row.address) {
    sequence_.back() = row;
  } else {
    sequence_.push_back(row);
  }
  return true;
}

void LineProgram::EndSequence() {
  const uint64_t hi = registers_.address;
  registers_ = Registers{};
  const auto by_address = [](const AddressRow& a, const AddressRow& b) {
    return a.address < b.address;
  };
  if (!std::is_sorted(sequence_.begin(), sequence_.end(), by_address)) {
    std::stable_sort(sequence_.begin(), sequence_.end(), by_address);
  }
  LineTable::Sequence sequence;
  if (!sequence_.empty()) sequence.lo = sequence_.front().address;
  sequence.hi = hi;
  sequence.first_row = table_.rows_.size();
  if (sequence.lo < hi && hi - sequence.lo <= UINT32_MAX && info_.file().MayHoldCode(sequence.lo)) {
    for (const AddressRow& from : sequence_) {
      if (from.address >= hi) break;
      LineRow row = from.row;
      row.offset = static_cast<uint32_t>(from.address - sequence.lo);
      if (table_.rows_.size() > sequence.first_row) {
        LineRow& last = table_.rows_.back();
        if (last.offset == row.offset) {
          last = row;
          continue;
        }
        if (last.line == row.line && last.file == row.file && last.column == row.column) continue;
      }
      table_.rows_.push_back(row);
    }
    sequence.row_count = table_.rows_.size() - sequence.first_row;
    table_.sequences_.push_back(sequence);
  }
  sequence_.clear();
}

}  // namespace stackreel::dwarf
