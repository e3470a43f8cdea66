// Runs relocated code against the original, and compares what they did: registers, flags, memory,
// and where they went.
//   run_relocated                   a table of tricky instructions, and random ones
//   run_relocated FILE… [--limit=N] the beginnings of N functions of each ELF file
#include <Zydis/Zydis.h>
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "os/file.h"
#include "os/thread_pool.h"
#include "support/code_runner.h"
#include "tracer/module_code.h"
#include "x86/emit.h"
#include "x86/instruction.h"
#include "x86/prologue.h"
#include "x86/relocate.h"

namespace stackreel {
namespace {

using testing::CodeRunner;
using testing::Registers;
using testing::RunOutcome;

// Of a loop that ends, the copy takes a few times as long.
constexpr std::chrono::milliseconds kPatience{40};
constexpr auto kCopysPatience = 50 * kPatience;
constexpr uint64_t kAt = testing::kOriginalPage + 0x800;
constexpr uint64_t kCopyAt = testing::kCopyPage + 0x400;
constexpr size_t kStates = 4;
constexpr size_t kMaxShown = 20;

// What cannot be compared: it is not the same twice, leaves the process, or changes what the test
// itself stands on.
bool MayRun(ByteView code) {
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  while (!code.empty()) {
    ZydisDecodedInstruction instruction;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    if (!ZYAN_SUCCESS(
            ZydisDecoderDecodeFull(&decoder, code.data(), code.size(), &instruction, operands))) {
      return true;  // a literal among the copy's instructions is not asked for
    }
    const bool is_endbr64 = instruction.mnemonic == ZYDIS_MNEMONIC_ENDBR64;
    switch (is_endbr64 ? ZYDIS_CATEGORY_NOP : instruction.meta.category) {
      case ZYDIS_CATEGORY_SYSCALL:
      case ZYDIS_CATEGORY_INTERRUPT:
      case ZYDIS_CATEGORY_SYSTEM:
      case ZYDIS_CATEGORY_SEGOP:
      case ZYDIS_CATEGORY_RDRAND:
      case ZYDIS_CATEGORY_RDSEED:
      case ZYDIS_CATEGORY_RDWRFSGS:
      case ZYDIS_CATEGORY_XSAVE:
      case ZYDIS_CATEGORY_XSAVEOPT:
      case ZYDIS_CATEGORY_WAITPKG:
      case ZYDIS_CATEGORY_PKU:
      case ZYDIS_CATEGORY_SGX:
      case ZYDIS_CATEGORY_X87_ALU:
      case ZYDIS_CATEGORY_CET:
      case ZYDIS_CATEGORY_UINTR:
      case ZYDIS_CATEGORY_AMX_TILE:
        return false;
      default:
        break;
    }
    switch (instruction.mnemonic) {
      case ZYDIS_MNEMONIC_POPF:
      case ZYDIS_MNEMONIC_POPFD:
      case ZYDIS_MNEMONIC_POPFQ:
      case ZYDIS_MNEMONIC_CPUID:
      case ZYDIS_MNEMONIC_RDTSC:
      case ZYDIS_MNEMONIC_RDTSCP:
      case ZYDIS_MNEMONIC_RDPID:
      case ZYDIS_MNEMONIC_FXRSTOR:
      case ZYDIS_MNEMONIC_FXRSTOR64:
      case ZYDIS_MNEMONIC_FXSAVE:
      case ZYDIS_MNEMONIC_FXSAVE64:
      case ZYDIS_MNEMONIC_LDMXCSR:
      case ZYDIS_MNEMONIC_VLDMXCSR:
      case ZYDIS_MNEMONIC_XBEGIN:
      case ZYDIS_MNEMONIC_MONITORX:
      case ZYDIS_MNEMONIC_MWAITX:
        return false;
      default:
        break;
    }
    if (instruction.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR) return false;
    for (uint8_t i = 0; i < instruction.operand_count; ++i) {
      const ZydisDecodedOperand& operand = operands[i];
      if (operand.type == ZYDIS_OPERAND_TYPE_REGISTER &&
          ZydisRegisterGetClass(operand.reg.value) == ZYDIS_REGCLASS_SEGMENT &&
          (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0) {
        return false;
      }
      // This thread's own storage: to be read only.
      if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY && operand.mem.segment == ZYDIS_REGISTER_FS &&
          (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0) {
        return false;
      }
    }
    code = code.subspan(instruction.length);
  }
  return true;
}

Registers RegistersOf(size_t state, std::mt19937_64& random) {
  Registers registers;
  for (uint64_t& value : registers) {
    switch (state) {
      case 0:
        value = testing::kScratch + random() % 0x4000 / 8 * 8;
        break;
      case 1:
        value = random() % 4;
        break;
      case 2:
        value = random();
        break;
      default:
        value = random() % 2 == 0 ? testing::kScratch + random() % 0x4000 : random() % 256;
    }
  }
  if (state == 1) registers[1] = 0;  // for jrcxz
  registers[4] = testing::kStackTop - 0x100;
  if (state != 2) registers[5] = testing::kStackTop - 0x80;
  return registers;
}

class Comparison {
 public:
  // Relocates the first whole instructions of `code` that cover `at_least` bytes and runs them.
  void Compare(const std::string& name, ByteView code, size_t at_least) {
    const auto copy = x86::Relocate(code, Avma(kAt), Avma(kCopyAt), at_least);
    if (!copy) {
      ++refused_[std::string(NameOf(copy.error()))];
      return;
    }
    const ByteView piece = code.first(copy->map.original_length());
    if (!MayRun(piece)) {
      ++not_run_;
      return;
    }
    ++pieces_;
    for (size_t state = 0; state < kStates; ++state) {
      const Registers registers = RegistersOf(state, random_);
      const uint64_t flags = random_() & ~uint64_t{0x400};
      runner_.Clear();
      runner_.Place(testing::kOriginalPage, 0x800, piece);
      const RunOutcome original = runner_.Run(kAt, registers, flags, kPatience);
      ++ends_[End(original)];
      ++runs_;
      if (original.signal == SIGPROF) continue;  // a loop without end, or as good as
      PlaceCopy(*copy, piece.size());
      const RunOutcome relocated = runner_.Run(piece.size() >= x86::kJumpLength ? kAt : kCopyAt,
                                               registers, flags, kCopysPatience);
      const std::string difference = Difference(*copy, original, relocated);
      if (difference.empty()) continue;
      if (++failures_ <= kMaxShown) {
        fmt::print("{}: state {}: {}\n  original {:02x}\n  copy     {:02x}\n", name, state,
                   difference, fmt::join(piece, " "), fmt::join(copy->view(), " "));
      }
    }
  }

  [[nodiscard]] bool Report(const std::string& what) const {
    fmt::print("{}: {} pieces, {} runs, {} differ; {} not run", what, pieces_, runs_, failures_,
               not_run_);
    for (const auto& [reason, count] : refused_) fmt::print("; refused, {}: {}", reason, count);
    fmt::print("\n  ends:");
    for (const auto& [end, count] : ends_) fmt::print(" {} {};", end, count);
    fmt::print("\n");
    return failures_ == 0 && pieces_ > 0;
  }

 private:
  // As a patch does: a jump to the copy over the original, and one back behind the copy.
  void PlaceCopy(const x86::RelocatedCode& copy, size_t original_length) {
    runner_.Clear();
    if (original_length >= x86::kJumpLength) {
      runner_.Place(testing::kOriginalPage, 0x800, *x86::Jump(Avma(kAt), Avma(kCopyAt)));
    }
    runner_.Place(testing::kCopyPage, 0x400, copy.view());
    if (!copy.falls_through) return;
    const size_t length = copy.view().size();
    runner_.Place(testing::kCopyPage, 0x400 + length,
                  *x86::Jump(Avma(kCopyAt + length), Avma(kAt + original_length)));
  }

  std::string Difference(const x86::RelocatedCode& copy, const RunOutcome& original,
                         const RunOutcome& relocated) {
    if (original.signal != relocated.signal) {
      return fmt::format("ended by signal {}, the copy by {}", original.signal, relocated.signal);
    }
    uint64_t rip = relocated.rip;
    if (rip - kCopyAt < copy.view().size()) {
      // A fault in the copy: at an instruction whose original stands where that faulted.
      const auto from = copy.map.From(static_cast<uint8_t>(rip - kCopyAt));
      if (!from) return "";  // the jump of a copied call, which has pushed already
      rip = kAt + *from;
    }
    if (rip != original.rip) {
      return fmt::format("came to {:#x}, the copy to {:#x}", original.rip, rip);
    }
    // Where no data was at fault the address is that of the instruction.
    if (!original.by_fetch && original.address != relocated.address) {
      return fmt::format("fault at {:#x}, the copy's at {:#x}", original.address,
                         relocated.address);
    }
    for (size_t i = 0; i < original.registers.size(); ++i) {
      if (original.registers[i] != relocated.registers[i]) {
        return fmt::format("register {} is {:#x}, the copy's {:#x}", i, original.registers[i],
                           relocated.registers[i]);
      }
    }
    if (original.flags != relocated.flags) {
      return fmt::format("flags {:#x}, the copy's {:#x}", original.flags, relocated.flags);
    }
    if (original.vectors != relocated.vectors) return "vector registers differ";
    if (original.scratch != relocated.scratch) return "memory differs";
    if (original.pages != relocated.pages) return "memory elsewhere differs";
    return "";
  }

  static std::string End(const RunOutcome& outcome) {
    switch (outcome.signal) {
      case SIGTRAP:
        return "arrived";
      case SIGSEGV:
      case SIGBUS:
        return outcome.by_fetch ? "left" : "faulted";
      case SIGPROF:
        return "looped";
      case SIGILL:
        return "invalid";
      default:
        return fmt::format("signal {}", outcome.signal);
    }
  }

  CodeRunner runner_;
  std::mt19937_64 random_{1};
  uint64_t pieces_ = 0, runs_ = 0, failures_ = 0, not_run_ = 0;
  std::map<std::string, uint64_t> refused_, ends_;
};

struct Tricky {
  const char* name;
  std::vector<uint8_t> code;
};
const Tricky kTricky[] = {
    {"lea rip", {0x48, 0x8d, 0x05, 0x78, 0x56, 0x04, 0x00}},
    {"lea eip", {0x67, 0x48, 0x8d, 0x05, 0x78, 0x56, 0x04, 0x00}},
    {"lea eip, 32", {0x67, 0x8d, 0x0d, 0xf0, 0xff, 0xff, 0xff}},
    {"mov from rip", {0x48, 0x8b, 0x0d, 0x00, 0x00, 0x10, 0x00}},
    {"mov from eip", {0x67, 0x8b, 0x0d, 0x00, 0x00, 0x10, 0x40}},
    {"cmp rip, imm8", {0x80, 0x3d, 0x00, 0x00, 0x20, 0x00, 0x7f}},
    {"mov rip, imm32", {0xc7, 0x05, 0x00, 0x00, 0x20, 0x00, 1, 2, 3, 4}},
    {"add rip, imm16", {0x66, 0x81, 0x05, 0x00, 0x00, 0x20, 0x00, 1, 2}},
    {"push rip", {0xff, 0x35, 0x00, 0x00, 0x20, 0x00}},
    {"pop rip", {0x8f, 0x05, 0x00, 0x00, 0x20, 0x00}},
    {"xmm from rip", {0x0f, 0x10, 0x05, 0x00, 0x00, 0x20, 0x00}},
    {"pcmpestri rip", {0x66, 0x0f, 0x3a, 0x61, 0x05, 0x00, 0x00, 0x20, 0x00, 0x0c}},
    {"vmovups rip", {0xc5, 0xf8, 0x10, 0x05, 0x00, 0x00, 0x20, 0x00}},
    {"vpshufb rip", {0xc4, 0xe2, 0x79, 0x00, 0x05, 0x00, 0x00, 0x20, 0x00}},
    {"evex rip", {0x62, 0xf1, 0xfe, 0x08, 0x6f, 0x05, 0x00, 0x00, 0x20, 0x00}},
    {"evex rip, imm8", {0x62, 0xf3, 0x7d, 0x08, 0x25, 0x05, 0x00, 0x00, 0x20, 0x00, 0x96}},
    {"lock cmpxchg16b rip", {0xf0, 0x48, 0x0f, 0xc7, 0x0d, 0x00, 0x00, 0x20, 0x00}},
    {"call", {0xe8, 0x00, 0x01, 0x00, 0x00}},
    {"call, far off", {0x55, 0xe8, 0x00, 0x01, 0x00, 0x10}},
    {"call, behind", {0x55, 0xe8, 0x00, 0x01, 0x00, 0xf0}},
    {"call next", {0xe8, 0x00, 0x00, 0x00, 0x00}},
    {"call itself", {0xe8, 0xfb, 0xff, 0xff, 0xff}},
    {"rex.w call", {0x66, 0x66, 0x48, 0xe8, 0x00, 0x01, 0x00, 0x00}},
    {"call rax", {0x48, 0x83, 0xec, 0x08, 0xff, 0xd0}},
    {"call r11", {0x53, 0x90, 0x90, 0x41, 0xff, 0xd3}},
    {"notrack call rdx", {0x48, 0x89, 0xfa, 0x3e, 0xff, 0xd2}},
    {"call [rip]", {0xff, 0x15, 0x00, 0x00, 0x20, 0x00}},
    {"call [rax+8]", {0x50, 0x53, 0x90, 0x90, 0xff, 0x50, 0x08}},
    {"call [rbx+rcx*8]", {0x55, 0x90, 0x90, 0xff, 0x14, 0xcb}},
    {"call [rbp-8]", {0x90, 0x90, 0x90, 0xff, 0x55, 0xf8}},
    {"call [r12]", {0x90, 0x90, 0x90, 0x41, 0xff, 0x14, 0x24}},
    {"call [r13]", {0x90, 0x90, 0x90, 0x41, 0xff, 0x55, 0x00}},
    {"jmp short", {0xeb, 0x20, 0x90, 0x90, 0x90}},
    {"jmp next", {0x90, 0xeb, 0x00, 0x90, 0x90}},
    {"bnd jmp", {0xf2, 0xe9, 0x20, 0x00, 0x00, 0x00}},
    {"jmp [rip]", {0xff, 0x25, 0x00, 0x00, 0x20, 0x00}},
    {"notrack jmp rax", {0x31, 0xc0, 0x90, 0x3e, 0xff, 0xe0}},
    {"push; ret", {0x68, 0x00, 0x00, 0x40, 0x00, 0xc3}},
    {"test; je", {0x48, 0x85, 0xff, 0x74, 0x20}},
    {"test; je near", {0x85, 0xff, 0x0f, 0x84, 0x20, 0x01, 0x00, 0x00}},
    {"hinted jne", {0x48, 0x85, 0xff, 0x3e, 0x75, 0x80}},
    {"jrcxz", {0xe3, 0x20, 0x90, 0x90, 0x90}},
    {"jecxz", {0x67, 0xe3, 0x20, 0x90, 0x90}},
    {"jrcxz back", {0x90, 0x90, 0x90, 0xe3, 0x80}},
    {"loop", {0xe2, 0x20, 0x90, 0x90, 0x90}},
    {"loope", {0x48, 0x85, 0xff, 0xe1, 0x20}},
    {"loopne", {0x85, 0xff, 0x67, 0xe0, 0x20}},
    {"loop in place", {0xb9, 5, 0, 0, 0, 0xe2, 0xfe}},
    {"loop to start", {0x67, 0xe2, 0xfd, 0x90, 0x90}},
    {"two jrcxz", {0xe3, 0x02, 0xe3, 0x00, 0x90}},
    {"dec; jne dec", {0xff, 0xc0, 0x66, 0xff, 0xc9, 0x75, 0xfb}},
    {"jump back into the first 5 bytes", {0xfe, 0xc0, 0xfe, 0xc9, 0x75, 0xfc}},
    {"jump forward within", {0x74, 0x02, 0x74, 0x00, 0x90}},
    {"jump to start", {0xfe, 0xc9, 0x75, 0xfc, 0x90}},
    {"enter", {0xc8, 0x20, 0x00, 0x02, 0x90}},
    {"leave; ret 16", {0x90, 0x90, 0xc9, 0xc2, 0x10, 0x00}},
    {"rep movsb", {0x89, 0xf6, 0x90, 0xf3, 0xa4}},
    {"endbr64", {0xf3, 0x0f, 0x1e, 0xfa, 0x55}},
    {"pushf", {0x90, 0x90, 0x90, 0x90, 0x9c}},
    {"push rsp", {0x54, 0x48, 0x8b, 0x04, 0x24}},
    {"aligning the stack", {0x4c, 0x8d, 0x54, 0x24, 0x08, 0x48, 0x83, 0xe4, 0xe0}},
    {"static chain", {0x41, 0xff, 0x72, 0xf8, 0x55}},
    {"xlatb, cmc", {0xd7, 0xf5, 0xf9, 0x1b, 0xc0}},
    {"div", {0x31, 0xd2, 0x48, 0xf7, 0xf1}},
    {"ud2", {0x90, 0x90, 0x90, 0x0f, 0x0b}},
    {"moffs", {0x48, 0xa1, 0, 0, 0x10, 0, 0x10, 0x20, 0, 0}},
};

bool RunTable() {
  Comparison comparison;
  for (const Tricky& tricky : kTricky) {
    for (size_t at_least = 1; at_least <= x86::kMaxPatchLength; ++at_least) {
      comparison.Compare(tricky.name, tricky.code, at_least);
    }
  }
  return comparison.Report("tricky instructions");
}

bool RunRandom(size_t count) {
  Comparison comparison;
  std::mt19937_64 random(2);
  for (size_t i = 0; i < count; ++i) {
    std::array<uint8_t, 20> code = {};
    for (uint8_t& byte : code) byte = static_cast<uint8_t>(random());
    // The branches and operands that relocation is about are few among all opcodes.
    constexpr uint8_t kFirst[] = {0x70, 0x75, 0x7f, 0xe0, 0xe1, 0xe2, 0xe3, 0xe8, 0xe9, 0xeb, 0xff};
    if (i % 2 == 0) code[random() % 4] = kFirst[random() % std::size(kFirst)];
    comparison.Compare("random", code, 1 + random() % x86::kMaxPatchLength);
  }
  return comparison.Report("random instructions");
}

bool RunFile(const std::string& path, size_t limit, Executor& executor) {
  auto file = os::MapFile(path);
  if (!file) {
    fmt::print(stderr, "{}\n", file.error().ToString());
    return false;
  }
  const auto module = tracer::ModuleCode::Read(std::move(*file), nullptr, executor);
  if (!module) {
    fmt::print(stderr, "{}\n", module.error().ToString());
    return false;
  }
  Comparison comparison;
  const auto& functions = (*module)->functions();
  const size_t step = std::max<size_t>(1, functions.size() / std::max<size_t>(1, limit));
  for (size_t i = 0; i < functions.size(); i += step) {
    const auto& function = functions[i];
    const auto site = (*module)->ChooseSite(function, {});
    if (!site || site->piece_length == 0) continue;
    const size_t offset = site->address - function.start;
    const std::string name = fmt::format("{}: {:x} {}", path, function.start.value, function.name);
    comparison.Compare(name, function.code.subspan(offset),
                       std::min<size_t>(site->piece_length, x86::kMaxPatchLength));
  }
  return comparison.Report(path);
}

int Main(int argc, char** argv) {
  size_t limit = 2000;
  bool good = true;
  bool any = false;
  const auto executor = os::MakeThreadPool(0);
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    constexpr std::string_view kLimit = "--limit=";
    if (argument.starts_with(kLimit)) {
      limit = std::strtoull(argument.c_str() + kLimit.size(), nullptr, 10);
      continue;
    }
    any = true;
    good &= RunFile(argument, limit, *executor);
  }
  if (!any) {
    good &= RunTable();
    good &= RunRandom(limit);
  }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace stackreel

int main(int argc, char** argv) { return stackreel::Main(argc, argv); }
