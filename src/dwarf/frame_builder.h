// Writes .eh_frame, .debug_frame and .eh_frame_hdr: for tests and fuzz seeds.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "base/address.h"
#include "base/byte_writer.h"

namespace stackreel::dwarf {

// Call-frame instructions.
class CfaCode {
 public:
  explicit CfaCode(Endian endian = Endian::kLittle) : out_(endian) {}

  CfaCode& DefCfa(uint64_t reg, uint64_t offset) { return Op(0x0c).Uleb(reg).Uleb(offset); }
  CfaCode& DefCfaOffset(uint64_t offset) { return Op(0x0e).Uleb(offset); }
  CfaCode& DefCfaRegister(uint64_t reg) { return Op(0x0d).Uleb(reg); }
  CfaCode& DefCfaExpression(std::initializer_list<uint8_t> bytes) { return Op(0x0f).Block(bytes); }
  CfaCode& Expression(uint64_t reg, std::initializer_list<uint8_t> bytes) {
    return Op(0x10).Uleb(reg).Block(bytes);
  }
  // `factored` × data alignment is the place.
  CfaCode& Offset(uint8_t reg, uint64_t factored) {
    return Op(static_cast<uint8_t>(0x80 | reg)).Uleb(factored);
  }
  CfaCode& Restore(uint8_t reg) { return Op(static_cast<uint8_t>(0xc0 | reg)); }
  CfaCode& Undefined(uint64_t reg) { return Op(0x07).Uleb(reg); }
  CfaCode& SameValue(uint64_t reg) { return Op(0x08).Uleb(reg); }
  CfaCode& Register(uint64_t reg, uint64_t other) { return Op(0x09).Uleb(reg).Uleb(other); }
  CfaCode& Advance(uint8_t delta) { return Op(static_cast<uint8_t>(0x40 | delta)); }
  CfaCode& RememberState() { return Op(0x0a); }
  CfaCode& RestoreState() { return Op(0x0b); }

  // The parts, for what has no function here.
  CfaCode& Op(uint8_t opcode) {
    out_.U8(opcode);
    return *this;
  }
  CfaCode& Uleb(uint64_t value) {
    do {
      const uint8_t low = value & 0x7f;
      value >>= 7;
      out_.U8(static_cast<uint8_t>(low | (value != 0 ? 0x80 : 0)));
    } while (value != 0);
    return *this;
  }
  CfaCode& Sleb(int64_t value) {
    while (value < -64 || value > 63) {
      out_.U8(static_cast<uint8_t>((value & 0x7f) | 0x80));
      value >>= 7;
    }
    out_.U8(static_cast<uint8_t>(value & 0x7f));
    return *this;
  }
  CfaCode& U16(uint16_t value) {
    out_.U16(value);
    return *this;
  }
  CfaCode& U32(uint32_t value) {
    out_.U32(value);
    return *this;
  }
  CfaCode& U64(uint64_t value) {
    out_.U64(value);
    return *this;
  }
  CfaCode& Block(std::initializer_list<uint8_t> bytes) {
    Uleb(bytes.size());
    out_.Bytes({bytes.begin(), bytes.size()});
    return *this;
  }
  [[nodiscard]] ByteView view() const { return out_.view(); }

 private:
  ByteWriter out_;
};

struct NewCie {
  uint8_t version = 1;
  std::string augmentation = "zR";
  uint8_t fde_encoding = 0x1b;  // pcrel, sdata4; used if the augmentation has R
  uint64_t code_align = 1;
  int64_t data_align = -8;
  uint8_t return_address_register = 16;
  uint8_t address_size = 8;                     // version 4
  bool long_length = false;                     // 64-bit DWARF
  std::vector<uint8_t> augmentation_data = {};  // before R's byte, for letters before R
  // Default: CFA = rsp + 8, return address at CFA - 8.
  CfaCode instructions = CfaCode().DefCfa(7, 8).Offset(16, 1);
};

// One of the two sections.
class FrameBuilder {
 public:
  explicit FrameBuilder(Svma address, bool is_eh_frame = true, Endian endian = Endian::kLittle,
                        unsigned address_size = 8)
      : out_(endian), address_(address), is_eh_frame_(is_eh_frame), address_size_(address_size) {}

  // Gives the entry's offset.
  uint64_t AddCie(const NewCie& cie = {}) {
    cies_.push_back({out_.size(), cie});
    const uint64_t start = Begin(cie.long_length);
    const bool wide_id = cie.long_length && !is_eh_frame_;
    if (wide_id) {
      out_.U64(UINT64_MAX);
    } else {
      out_.U32(is_eh_frame_ ? 0 : UINT32_MAX);
    }
    out_.U8(cie.version);
    out_.Text(cie.augmentation);
    out_.U8(0);
    if (cie.version == 4) {
      out_.U8(cie.address_size);
      out_.U8(0);
    }
    CfaCode numbers(out_.endian());
    numbers.Uleb(cie.code_align).Sleb(cie.data_align);
    numbers.Op(cie.return_address_register);
    if (cie.augmentation.starts_with('z')) {
      std::vector<uint8_t> data = cie.augmentation_data;
      if (cie.augmentation.find('R') != std::string::npos) data.push_back(cie.fde_encoding);
      numbers.Uleb(data.size());
      out_.Bytes(numbers.view());
      out_.Bytes(data);
    } else {
      out_.Bytes(numbers.view());
    }
    out_.Bytes(cie.instructions.view());
    End(start, cie.long_length);
    return start;
  }

  // The range is written in the CIE's encoding; `raw_start` instead of it if given.
  uint64_t AddFde(uint64_t cie_offset, uint64_t start, uint64_t size,
                  const CfaCode& code = CfaCode(), bool long_length = false) {
    const uint64_t entry = Begin(long_length);
    const NewCie& cie = CieAt(cie_offset);
    if (is_eh_frame_) {
      out_.U32(static_cast<uint32_t>(out_.size() - cie_offset));
    } else if (long_length) {
      out_.U64(cie_offset);
    } else {
      out_.U32(static_cast<uint32_t>(cie_offset));
    }
    const bool has_encoding = cie.augmentation.find('R') != std::string::npos;
    const uint8_t encoding = has_encoding ? cie.fde_encoding : 0;
    Pointer(encoding, start);
    Pointer(encoding & 0x0f, size);
    if (cie.augmentation.starts_with('z')) out_.U8(0);
    out_.Bytes(code.view());
    End(entry, long_length);
    return entry;
  }
  void AddTerminator() { out_.U32(0); }
  void AddBytes(std::initializer_list<uint8_t> bytes) { out_.Bytes({bytes.begin(), bytes.size()}); }
  void set_data_base(Svma base) { data_base_ = base; }

  [[nodiscard]] ByteView view() const { return out_.view(); }
  [[nodiscard]] Svma AddressOf(uint64_t offset) const { return address_ + offset; }
  std::vector<uint8_t> Take() { return out_.Take(); }

 private:
  struct Known {
    uint64_t offset;
    NewCie cie;
  };
  const NewCie& CieAt(uint64_t offset) const {
    static const NewCie kDefault;
    for (const Known& known : cies_) {
      if (known.offset == offset) return known.cie;
    }
    return kDefault;
  }
  uint64_t Begin(bool long_length) {
    const uint64_t start = out_.size();
    out_.U32(long_length ? UINT32_MAX : 0);
    if (long_length) out_.U64(0);
    return start;
  }
  void End(uint64_t start, bool long_length) {
    const uint64_t head = long_length ? 12 : 4;
    while ((out_.size() - start) % address_size_ != 0) out_.U8(0);  // DW_CFA_nop
    const uint64_t length = out_.size() - start - head;
    if (long_length) {
      out_.PutAt(start + 4, length);
    } else {
      out_.PutAt(start, static_cast<uint32_t>(length));
    }
  }
  void Pointer(uint8_t encoding, uint64_t value) {
    const uint64_t place = address_.value + out_.size();
    switch (encoding & 0x70) {
      case 0x10:
        value -= place;
        break;
      case 0x30:
        value -= data_base_.value;
        break;
      case 0x50:
        while ((address_.value + out_.size()) % address_size_ != 0) out_.U8(0);
        encoding = 0;
        break;
      default:
        break;
    }
    switch (encoding & 0x0f) {
      case 0x02:
      case 0x0a:
        out_.U16(static_cast<uint16_t>(value));
        break;
      case 0x03:
      case 0x0b:
        out_.U32(static_cast<uint32_t>(value));
        break;
      case 0x01: {
        CfaCode uleb;
        out_.Bytes(uleb.Uleb(value).view());
        break;
      }
      case 0x09: {
        CfaCode sleb;
        out_.Bytes(sleb.Sleb(static_cast<int64_t>(value)).view());
        break;
      }
      case 0x00:
        if (address_size_ == 4) {
          out_.U32(static_cast<uint32_t>(value));
          break;
        }
        [[fallthrough]];
      default:
        out_.U64(value);
    }
  }

  ByteWriter out_;
  Svma address_;
  bool is_eh_frame_;
  unsigned address_size_;
  Svma data_base_;
  std::vector<Known> cies_;
};

// A table of {start, address of FDE} in the given order: data-relative, 4 bytes a field.
inline std::vector<uint8_t> MakeFrameHeader(Svma address, Svma eh_frame,
                                            const std::vector<std::pair<uint64_t, Svma>>& entries,
                                            Endian endian = Endian::kLittle) {
  ByteWriter out(endian);
  out.U8(1);
  out.U8(0x1b);  // eh_frame_ptr: pcrel, sdata4
  out.U8(0x03);  // fde_count: udata4
  out.U8(0x3b);  // table: datarel, sdata4
  out.U32(static_cast<uint32_t>(eh_frame.value - (address.value + 4)));
  out.U32(static_cast<uint32_t>(entries.size()));
  for (const auto& [start, fde] : entries) {
    out.U32(static_cast<uint32_t>(start - address.value));
    out.U32(static_cast<uint32_t>(fde.value - address.value));
  }
  return out.Take();
}

}  // namespace stackreel::dwarf
