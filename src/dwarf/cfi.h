// Call-frame information: .eh_frame (LSB Core, 10.6) and .debug_frame (DWARF 5, section 6.4).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/address.h"
#include "base/byte_reader.h"
#include "base/bytes.h"
#include "base/counters.h"
#include "base/error.h"

namespace stackreel::dwarf {

// Where a register of the caller is found, given this frame's CFA.
enum class RuleKind : uint8_t {
  kUndefined,      // not recoverable; for the return address: this is the outermost frame
  kSameValue,      // not changed (also: nothing said)
  kOffset,         // saved at CFA + offset
  kValOffset,      // is CFA + offset
  kRegister,       // in another register
  kExpression,     // saved at the address the expression gives
  kValExpression,  // is the expression's value
};

struct RegisterRule {
  RuleKind kind = RuleKind::kSameValue;
  bool stated = false;  // false: no instruction named this register
  uint16_t other = 0;   // kRegister
  int64_t offset = 0;   // kOffset, kValOffset
  ByteView expression;  // points into the section
};

struct CfaRule {
  bool is_expression = false;
  uint16_t reg = 0;
  int64_t offset = 0;
  ByteView expression;
};

// How many DWARF register numbers are tracked: x86-64 uses 0-16; arm64 0-34.
// arm64's 34, RA_SIGN_STATE, is no register: its rule's `offset` is the state (0 not signed, 1 with
// SP, 2 with SP and PC).
inline constexpr unsigned kMaxRegisters = 35;
inline constexpr unsigned kAarch64RaSignState = 34;

// One row of the table that a function's CFI stands for.
struct Row {
  Svma start, end;
  CfaRule cfa;
  std::array<RegisterRule, kMaxRegisters> registers;
  uint32_t args_size = 0;  // DW_CFA_GNU_args_size: bytes of arguments pushed; not part of the CFA
};

struct Cie {
  uint64_t code_align = 1;
  int64_t data_align = 1;
  uint16_t return_address_register = 0;
  bool signal_frame = false;           // augmentation 'S'
  bool b_key = false;                  // 'B' (arm64)
  bool mte_tagged = false;             // 'G' (arm64)
  bool has_augmentation_data = false;  // 'z'
  uint8_t fde_encoding = 0;            // DW_EH_PE_*
  uint8_t address_size = 8;
  ByteView instructions;
};

struct Fde {
  Svma start, end;
  Cie cie;
  ByteView instructions;
  bool in_debug_frame = false;  // else in .eh_frame
};

// The sections CFI lies in, as found in one ELF file; views must outlive the FrameTable.
struct FrameSections {
  ByteView eh_frame;
  Svma eh_frame_svma;
  ByteView eh_frame_hdr;
  Svma eh_frame_hdr_svma;
  ByteView debug_frame;
  Svma text_svma;  // base of DW_EH_PE_textrel
  Svma data_svma;  // base of DW_EH_PE_datarel outside the header (the GOT)
  Endian endian = Endian::kLittle;
  bool is_64bit = true;
  uint16_t machine = 62;  // EM_*: which vendor instructions 0x2d and the like are
  // The file's bytes that are loaded at a svma, for DW_EH_PE_indirect; may be empty.
  std::function<ByteView(Svma)> loaded_bytes;
};

// Where .eh_frame is, as .eh_frame_hdr says: for files without a section table.
std::optional<Svma> EhFrameAddress(const FrameSections& sections);

// Steps through the rows of one FDE. Holds views into the sections of the FrameTable it is from.
class RowCursor {
 public:
  // To the next row, in order of address, without empty ones; false behind the last. The rows cover
  // [fde.start, fde.end). kDamaged: a bad instruction (rows before it were good).
  Result<bool> Next();
  // The current row, until Next is called again.
  [[nodiscard]] const Row& row() const { return row_; }

 private:
  friend class FrameTable;
  RowCursor(const Fde& fde, const FrameSections& sections);
  // Executes one instruction.
  Status Step();
  Status StepExtended(uint8_t opcode);
  Status StepRegister(uint8_t opcode);
  Status StepVendor(uint8_t opcode);
  Status AdvanceTo(uint64_t location);
  Status Restore(uint64_t reg);
  Status SetCfaRegister(uint64_t reg);
  void SetRule(uint64_t reg, RuleKind kind, int64_t offset, ByteView expression = {});
  ByteView Block();
  Result<uint64_t> SetLocOperand();

  const FrameSections* sections_;
  Fde fde_;
  ByteReader reader_;
  Status initial_status_;
  Row row_;
  std::array<RegisterRule, kMaxRegisters> initial_;  // what the CIE says: DW_CFA_restore
  std::vector<Row> remembered_;
  uint64_t location_ = 0;
  bool done_ = false;
};

// All CFI of one module. Finding is lazy: through .eh_frame_hdr's table where it is usable, else
// through an index made on first need. Const use from several threads at once is safe.
class FrameTable {
 public:
  explicit FrameTable(const FrameSections& sections);
  ~FrameTable();
  FrameTable(FrameTable&&) noexcept;
  FrameTable& operator=(FrameTable&&) noexcept;

  // The FDE whose range holds `svma`: .eh_frame first, then .debug_frame. Nothing if none does.
  [[nodiscard]] std::optional<Fde> FindFde(Svma svma) const;
  // The row in force at `svma`. kNotFound: no FDE. kDamaged: its instructions are bad.
  [[nodiscard]] Result<Row> FindRow(Svma svma, bool* signal_frame = nullptr) const;
  // The rows of an FDE of this table, which must outlive the cursor.
  [[nodiscard]] RowCursor Rows(const Fde& fde) const;
  // All rows of an FDE at once; kUnsupported if they are more than 10,000.
  [[nodiscard]] Result<std::vector<Row>> ReadRows(const Fde& fde) const;
  // Every FDE of both sections, sorted by start; those the linker deleted (start 0 or at the top of
  // the address space) and empty ones left out. For tools and tests.
  [[nodiscard]] std::vector<Fde> AllFdes() const;
  // "cfi.bad_cie", "cfi.bad_fde", "cfi.bad_header": what could not be used.
  [[nodiscard]] Counters counters() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stackreel::dwarf
