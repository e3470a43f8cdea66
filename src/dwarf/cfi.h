// Call-frame information: .eh_frame (LSB Core, 10.6) and .debug_frame (DWARF 5, section 6.4).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/address.h"
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
  uint16_t other = 0;   // kRegister
  int64_t offset = 0;   // kOffset, kValOffset
  ByteView expression;  // points into the section
  bool stated = false;  // false: no instruction named this register
};

struct CfaRule {
  bool is_expression = false;
  uint16_t reg = 0;
  int64_t offset = 0;
  ByteView expression;
};

// How many DWARF register numbers are tracked: x86-64 uses 0-16; arm64 0-34.
inline constexpr unsigned kMaxRegisters = 35;

// One row of the table that a function's CFI stands for.
struct Row {
  Svma start, end;
  CfaRule cfa;
  std::array<RegisterRule, kMaxRegisters> registers;
  uint32_t args_size = 0;
};

struct Cie {
  uint64_t code_align = 1;
  int64_t data_align = 1;
  uint16_t return_address_register = 0;
  bool signal_frame = false;  // augmentation 'S'
  bool b_key = false;         // 'B' (arm64)
  bool mte_tagged = false;    // 'G' (arm64)
  uint8_t fde_encoding = 0;   // DW_EH_PE_*
  uint8_t address_size = 8;
  ByteView instructions;
};

struct Fde {
  Svma start, end;
  Cie cie;
  ByteView instructions;
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
  // Every row of an FDE, in order, covering [fde.start, fde.end). Bounded by instruction count.
  [[nodiscard]] Result<std::vector<Row>> ReadRows(const Fde& fde) const;
  // Every FDE, sorted by start; for tools and tests.
  [[nodiscard]] std::vector<Fde> AllFdes() const;
  // "cfi.bad_cie", "cfi.bad_fde", "cfi.bad_header": what could not be used.
  [[nodiscard]] Counters counters() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stackreel::dwarf
