// A made-up process with one binary, a stack and registers: for tests and fuzz seeds.
#pragma once

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/byte_writer.h"
#include "dwarf/frame_builder.h"
#include "elf/elf_writer.h"
#include "elf/image.h"
#include "unwind/aarch64/full_unwinder.h"
#include "unwind/aarch64/registers.h"
#include "unwind/unwind.h"
#include "unwind/x86_64/full_unwinder.h"
#include "unwind/x86_64/registers.h"

namespace stackreel::unwind {

// The binary's code is at svma [0x1000, 0x5000), filled with nop; its entry is 0x1000. It is mapped
// at `bias`, the dumped stack begins at `kSp`.
class FakeProcess {
 public:
  static constexpr uint64_t kText = 0x1000, kTextEnd = 0x5000;
  static constexpr uint64_t kEhFrame = 0x8000;
  static constexpr uint64_t kUnknownCode = 0xa000;  // a page of code without a file

  explicit FakeProcess(Arch arch = Arch::kX86_64)
      : bias(arch == Arch::kX86 ? 0x56000000 : 0x7f5500000000),
        sp(arch == Arch::kX86 ? 0xff801000 : 0x7ffc00001000),
        arch_(arch),
        frames_(Svma(kEhFrame), true, Endian::kLittle, WordSize()),
        code_(kTextEnd - kText, 0x90) {
    if (arch == Arch::kAarch64) {
      for (uint64_t at = kText; at < kTextEnd; at += 4) Instruction(at, 0xd503201f);  // nop
    }
    SetSp(sp);
  }

  [[nodiscard]] unsigned WordSize() const { return arch_ == Arch::kX86 ? 4 : 8; }

  // A function's CFI. In the default CIE the return address is at CFA - word, CFA = sp + word; on
  // arm64 it is in the link register, CFA = sp.
  void Function(uint64_t start, uint64_t size, const dwarf::CfaCode& code = dwarf::CfaCode(),
                bool signal_frame = false) {
    dwarf::NewCie cie;
    if (signal_frame) cie.augmentation = "zRS";
    if (arch_ == Arch::kAarch64) {
      cie.code_align = 4;
      cie.return_address_register = aarch64::Cpu::kLr;
      cie.instructions = dwarf::CfaCode().DefCfa(aarch64::Cpu::kSp, 0);
    }
    if (arch_ == Arch::kX86) {
      cie.data_align = -4;
      cie.return_address_register = 8;
      cie.instructions = dwarf::CfaCode().DefCfa(4, 4).Offset(8, 1);
    }
    FunctionWithCie(cie, start, size, code);
  }
  void FunctionWithCie(const dwarf::NewCie& cie, uint64_t start, uint64_t size,
                       const dwarf::CfaCode& code) {
    frames_.AddFde(frames_.AddCie(cie), start, size, code);
  }
  void Code(uint64_t svma, std::initializer_list<uint8_t> bytes) {
    std::copy(bytes.begin(), bytes.end(),
              code_.begin() + static_cast<std::ptrdiff_t>(svma - kText));
  }
  void Instruction(uint64_t svma, uint32_t word) {
    Code(svma, {static_cast<uint8_t>(word), static_cast<uint8_t>(word >> 8),
                static_cast<uint8_t>(word >> 16), static_cast<uint8_t>(word >> 24)});
  }
  // A call instruction that returns to `svma`; gives the return address in the process.
  uint64_t Call(uint64_t svma) {
    if (arch_ == Arch::kAarch64) {
      Instruction(svma - 4, 0x94000000);  // bl
    } else {
      Code(svma - 5, {0xe8, 0, 0, 0, 0});
    }
    return At(svma);
  }
  [[nodiscard]] uint64_t At(uint64_t svma) const { return bias + svma; }

  // The stack's words from sp on.
  void Stack(std::vector<uint64_t> words) { words_ = std::move(words); }
  void Word(uint64_t index, uint64_t value) {
    if (words_.size() <= index) words_.resize(index + 1);
    words_[index] = value;
  }
  [[nodiscard]] uint64_t WordAt(uint64_t index) const { return sp + index * WordSize(); }
  void SetSp(uint64_t value) {
    sp = value;
    registers.Set(IsArm() ? unsigned{aarch64::Cpu::kSp} : x86_64::kPerfSp, value);
  }
  void SetPc(uint64_t svma) {
    registers.Set(IsArm() ? aarch64::kPerfPc : x86_64::kPerfIp, At(svma));
  }
  void SetFp(uint64_t value) {
    registers.Set(IsArm() ? unsigned{aarch64::Cpu::kFp} : x86_64::kPerfBp, value);
  }
  void SetLr(uint64_t value) { registers.Set(aarch64::Cpu::kLr, value); }

  struct Result {
    StackEnd end = StackEnd::kRoot;
    std::vector<Frame> frames;
    bool paths_agree = true;  // the fast path, and the one with all registers

    // "1010 2020r 3030r:fp": svmas; r: a return address; :fp: by the frame pointer; :lr: by the
    // link register of a leaf without CFI; s: signal.
    [[nodiscard]] std::string Text(uint64_t bias) const {
      std::string text;
      for (const Frame& frame : frames) {
        if (!text.empty()) text += ' ';
        char number[32];
        std::snprintf(number, sizeof number, "%llx",
                      static_cast<unsigned long long>(frame.address.avma.value - bias));
        text += number;
        if (frame.address.kind == CodeAddressKind::kReturnAddress) text += 'r';
        if (frame.signal) text += 's';
        if (frame.origin == FrameOrigin::kFramePointer) text += ":fp";
        if (frame.origin == FrameOrigin::kLeafLr) text += ":lr";
      }
      return text + " " + StackEndName(end);
    }
  };

  // Unwinds on both paths.
  Result Unwind() {
    Build();
    Result result;
    result.end = unwinder.Unwind(input, result.frames);
    std::vector<Frame> again;
    result.paths_agree = UnwindFull(again) == result.end && SameFrames(again, result.frames);
    std::vector<Frame> cached;
    result.paths_agree = result.paths_agree && unwinder.Unwind(input, cached) == result.end &&
                         SameFrames(cached, result.frames);
    return result;
  }
  std::string Text() {
    const Result result = Unwind();
    return result.Text(bias) + (result.paths_agree ? "" : " PATHS DIFFER");
  }

  // Makes file, maps and input of what was said; again if called again.
  void Build() {
    BuildFile();
    BuildStack();
    input.arch = arch_;
    input.registers = registers;
    input.stack = StackView(Avma(sp), stack_bytes_);
    input.maps = &maps;
  }

  static bool SameFrames(const std::vector<Frame>& a, const std::vector<Frame>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Frame& x, const Frame& y) {
      return x.address == y.address && x.origin == y.origin && x.signal == y.signal;
    });
  }
  StackEnd UnwindFull(std::vector<Frame>& out) {
    if (IsArm()) return aarch64::FullUnwinder(counts_).Unwind(input, out);
    if (arch_ == Arch::kX86) {
      return x86_64::FullUnwinder<x86_64::Cpu32>(counts_).Unwind(input, out);
    }
    return x86_64::FullUnwinder<x86_64::Cpu64>(counts_).Unwind(input, out);
  }

  uint64_t bias;
  uint64_t sp;
  Registers registers;
  UnwindInput input;  // stack_was_cut and max_frames may be set before Unwind
  UnwindMaps maps;
  bool known_file = true;  // false: mappings without a module
  Unwinder unwinder;

 private:
  [[nodiscard]] bool IsArm() const { return arch_ == Arch::kAarch64; }
  void BuildFile() {
    const bool is_64bit = arch_ != Arch::kX86;
    elf::ElfWriter writer(is_64bit ? elf::Class::k64 : elf::Class::k32, Endian::kLittle,
                          IsArm()    ? EM_AARCH64
                          : is_64bit ? EM_X86_64
                                     : EM_386);
    const uint32_t text = writer.Add(
        {.name = ".text", .flags = SHF_ALLOC | SHF_EXECINSTR, .addr = kText, .bytes = code_});
    const uint32_t eh_frame = writer.Add({.name = ".eh_frame",
                                          .flags = SHF_ALLOC,
                                          .addr = kEhFrame,
                                          .bytes = elf::ElfWriter::Copy(frames_.view())});
    writer.AddSegment(PT_LOAD, PF_R | PF_X, text);
    writer.AddSegment(PT_LOAD, PF_R, eh_frame);
    file_ = writer.Take();
    auto image = elf::Image::Parse(file_);
    image_.reset();
    if (image) image_ = *std::move(image);
    module_ = UnwindModule::Make(image_ ? &*image_ : nullptr, nullptr);
    maps.mappings.clear();
    UnwindMapping code;
    code.start = bias + kText;
    code.end = bias + kTextEnd;
    code.bias = bias;
    code.module = known_file ? module_.get() : nullptr;
    maps.mappings.push_back(code);
    UnwindMapping data = code;
    data.start = bias + kEhFrame;
    data.end = bias + kEhFrame + 0x1000;
    data.executable = false;
    maps.mappings.push_back(data);
    UnwindMapping unknown;
    unknown.start = bias + kUnknownCode;
    unknown.end = unknown.start + 0x1000;
    maps.mappings.push_back(unknown);
    static uint64_t version = 1;
    maps.version = ++version;
  }
  void BuildStack() {
    ByteWriter out(Endian::kLittle);
    for (const uint64_t word : words_) {
      if (WordSize() == 4) {
        out.U32(static_cast<uint32_t>(word));
      } else {
        out.U64(word);
      }
    }
    stack_bytes_ = out.Take();
  }

  Arch arch_;
  dwarf::FrameBuilder frames_;
  std::vector<uint8_t> code_;
  std::vector<uint64_t> words_;
  std::vector<uint8_t> file_;
  std::optional<elf::Image> image_;
  std::shared_ptr<const UnwindModule> module_;
  std::vector<uint8_t> stack_bytes_;
  Counts counts_;
};

// A word of a stack that is no address of anything.
inline constexpr uint64_t kGarbage = 0x123456789;

// Leaf at 0x2000 (CFA sp + 8), called from Middle at 0x2100 (32 bytes of locals), called from Root
// at 0x2200, whose return address is undefined.
struct Plain : FakeProcess {
  Plain() {
    Function(0x2000, 0x40);
    Function(0x2100, 0x40, dwarf::CfaCode().DefCfaOffset(40));
    Function(0x2200, 0x40, dwarf::CfaCode().Undefined(16));
    SetPc(0x2010);
    Stack({Call(0x2110), 1, 2, 3, 4, Call(0x2210), 5});
  }
};

}  // namespace stackreel::unwind
