// The traps of unwinding, one a test. Both paths (fast, and with all registers) must agree in each.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "unwind/fake_process.h"
#include "unwind/unwind.h"

namespace stackreel::unwind {
namespace {

using dwarf::CfaCode;
using x86_64::kPerfBx;
using x86_64::kPerfR8;

constexpr uint64_t kGarbage = 0x123456789;

// Leaf at 0x2000 (CFA sp + 8), called from Middle at 0x2100 (32 bytes of locals), called from Root
// at 0x2200, whose return address is undefined.
struct Plain : FakeProcess {
  Plain() {
    Function(0x2000, 0x40);
    Function(0x2100, 0x40, CfaCode().DefCfaOffset(40));
    Function(0x2200, 0x40, CfaCode().Undefined(16));
    SetPc(0x2010);
    Stack({Call(0x2110), 1, 2, 3, 4, Call(0x2210), 5});
  }
};

TEST(Unwinder, FollowsCfiToTheRoot) {
  Plain p;
  EXPECT_EQ(p.Text(), "2010 2110r 2210r root");
  const auto result = p.Unwind();
  EXPECT_EQ(result.frames[0].origin, FrameOrigin::kSampled);
  EXPECT_EQ(result.frames[1].origin, FrameOrigin::kCfi);
}

TEST(Unwinder, AppendsToWhatIsThere) {
  Plain p;
  p.Build();
  std::vector<Frame> frames(2);
  p.unwinder.Unwind(p.input, frames);
  EXPECT_EQ(frames.size(), 5u);
}

// A call that does not return is the function's last instruction: the return address belongs to the
// next function.
TEST(Unwinder, ReturnAddressesAreLookedUpAtTheCall) {
  FakeProcess p;
  p.Function(0x2000, 0x40);
  p.Function(0x2100, 0x40, CfaCode().DefCfaOffset(24));  // ends with the call
  p.Function(0x2140, 0x40, CfaCode().DefCfaOffset(80));
  p.Function(0x2200, 0x40, CfaCode().Undefined(16));
  p.SetPc(0x2000);
  p.Stack({p.Call(0x2140), 1, 2, p.Call(0x2210)});
  EXPECT_EQ(p.Text(), "2000 2140r 2210r root");
}

// The same address as a sampled pc belongs to the function that begins there.
TEST(Unwinder, TheSampledPcIsLookedUpExactly) {
  FakeProcess p;
  p.Function(0x2100, 0x40, CfaCode().DefCfaOffset(24));
  p.Function(0x2140, 0x40);
  p.Function(0x2200, 0x40, CfaCode().Undefined(16));
  p.SetPc(0x2140);
  p.Stack({p.Call(0x2210), 1, 2, 3});
  EXPECT_EQ(p.Text(), "2140 2210r root");
}

// One pc, once as a return address and once as a sampled pc: two rules in the cache.
TEST(Unwinder, TheCacheTellsExactFromReturnAddresses) {
  FakeProcess p;
  p.Function(0x2100, 0x40, CfaCode().DefCfaOffset(24));
  p.Function(0x2140, 0x40);
  p.Function(0x2200, 0x40, CfaCode().Undefined(16));
  p.SetPc(0x2140);
  p.Stack({p.Call(0x2140), 1, 2, p.Call(0x2210)});
  EXPECT_EQ(p.Text(), "2140 2140r 2210r root");
}

TEST(Unwinder, AReturnAddressOfNullIsTheRoot) {
  FakeProcess p;
  p.Function(0x2000, 0x40);
  p.SetPc(0x2000);
  p.Stack({0});
  EXPECT_EQ(p.Text(), "2000 root");
}

TEST(Unwinder, NeverAFrameOfMinusOne) {
  FakeProcess p;
  p.Function(0x2000, 0x40);
  p.SetPc(0x2000);
  p.Stack({UINT64_MAX});
  EXPECT_EQ(p.Text(), "2000 no mapping");
}

// _start's undefined return address is stated behind its first instruction.
TEST(Unwinder, StartAtItsFirstInstructionIsTheRoot) {
  FakeProcess p;
  p.Function(0x1000, 0x40, CfaCode().Advance(4).Undefined(16));
  p.SetPc(0x1000);
  p.Stack({1, p.sp + 100});  // argc, argv
  EXPECT_EQ(p.Text(), "1000 root");
  p.SetPc(0x1004);
  EXPECT_EQ(p.Text(), "1004 root");
}

TEST(Unwinder, StartWithoutCfiIsTheRoot) {
  FakeProcess p;
  p.Function(0x2000, 0x40);
  p.SetPc(0x2000);
  p.Stack({p.Call(0x1020), 7});
  EXPECT_EQ(p.Text(), "2000 1020r root");
}

TEST(Unwinder, FramePointerRules) {
  FakeProcess p;
  // push %rbp; mov %rsp,%rbp; … : CFA = rbp + 16.
  const CfaCode code = CfaCode().DefCfa(6, 16).Offset(6, 2);
  p.Function(0x2000, 0x40, code);
  p.Function(0x2100, 0x40, code);
  p.Function(0x2200, 0x40, CfaCode().Undefined(16));
  p.SetPc(0x2010);
  p.SetFp(p.WordAt(2));
  p.Stack({7, 7, p.WordAt(5), p.Call(0x2110), 7, 0, p.Call(0x2210), 7});
  EXPECT_EQ(p.Text(), "2010 2110r 2210r root");
}

// A callee that does not touch rbp leaves it to its caller, which needs it.
TEST(Unwinder, FramePointerIsCarriedThroughOtherFrames) {
  FakeProcess p;
  p.Function(0x2000, 0x40);
  p.Function(0x2100, 0x40, CfaCode().DefCfa(6, 16).Offset(6, 2));
  p.Function(0x2200, 0x40, CfaCode().Undefined(16));
  p.SetPc(0x2010);
  p.SetFp(p.WordAt(3));
  p.Stack({p.Call(0x2110), 7, 7, 0, p.Call(0x2210)});
  EXPECT_EQ(p.Text(), "2010 2110r 2210r root");
}

// Compilers do not say that an epilogue has popped a register: its slot is below sp already and so
// not dumped, but the register holds the value again.
TEST(Unwinder, PoppedRegistersAreInTheRegister) {
  FakeProcess p;
  p.Function(0x2000, 0x40, CfaCode().DefCfaOffset(16).Offset(6, 4));  // saved at CFA - 32 = sp - 16
  p.Function(0x2100, 0x40, CfaCode().DefCfa(6, 16).Offset(6, 2));
  p.Function(0x2200, 0x40, CfaCode().Undefined(16));
  p.SetPc(0x2010);
  p.SetFp(p.WordAt(3));
  p.Stack({7, p.Call(0x2110), 7, 0, p.Call(0x2210)});
  EXPECT_EQ(p.Text(), "2010 2110r 2210r root");
}

// A leaf may use the 128 bytes below sp; its return address is at sp all the same.
TEST(Unwinder, LeafWithRedZone) {
  FakeProcess p;
  p.Function(0x2000, 0x40, CfaCode().Offset(3, 5));  // rbx saved at CFA - 40, below sp
  p.Function(0x2200, 0x40, CfaCode().Undefined(16));
  p.SetPc(0x2010);
  p.registers.Set(kPerfBx, 0x99);
  p.Stack({p.Call(0x2210), 7});
  EXPECT_EQ(p.Text(), "2010 2210r root");
}

TEST(Unwinder, LargeFrames) {
  FakeProcess p;
  p.Function(0x2000, 0x40, CfaCode().DefCfaOffset(33392));
  p.Function(0x2200, 0x40, CfaCode().Undefined(16));
  p.SetPc(0x2010);
  p.Word(33392 / 8 - 1, p.Call(0x2210));
  EXPECT_EQ(p.Text(), "2010 2210r root");
}

TEST(Unwinder, TheLastWordOfTheDumpCounts) {
  FakeProcess p;
  p.Function(0x2000, 0x40, CfaCode().DefCfaOffset(24));
  p.Function(0x2200, 0x40, CfaCode().Undefined(16));
  p.SetPc(0x2010);
  p.Stack({1, 2, p.Call(0x2210)});
  EXPECT_EQ(p.Text(), "2010 2210r root");
}

TEST(Unwinder, ACutStackIsExhausted) {
  Plain p;
  p.Stack({p.Call(0x2110), 1, 2});
  p.input.stack_was_cut = true;
  EXPECT_EQ(p.Text(), "2010 2110r dump exhausted");
  p.input.stack_was_cut = false;  // this is all there was: the CFA is not on it
  EXPECT_EQ(p.Text(), "2010 2110r bad CFA");
}

TEST(Unwinder, WithoutADumpNothingCanBeRead) {
  Plain p;
  p.Stack({});
  EXPECT_EQ(p.Text(), "2010 dump exhausted");
}

TEST(Unwinder, TheCfaMustGrow) {
  FakeProcess p;
  p.Function(0x2000, 0x40);
  p.Function(0x2100, 0x40, CfaCode().DefCfa(6, 16));
  p.SetPc(0x2010);
  p.SetFp(p.WordAt(0) - 64);  // its CFA lies below
  p.Stack({p.Call(0x2110), 1, 2, 3});
  EXPECT_EQ(p.Text(), "2010 2110r bad CFA");
}

TEST(Unwinder, ACfaThatStaysIsNoAdvance) {
  FakeProcess p;
  p.Function(0x2000, 0x40, CfaCode().DefCfaOffset(0).Op(0x11).Uleb(16).Sleb(0));
  p.SetPc(0x2010);
  p.Stack({p.Call(0x2010), 1, 2, 3});
  EXPECT_EQ(p.Text(), "2010 no advance");
}

TEST(Unwinder, AReturnAddressInDataIsNoFrame) {
  FakeProcess p;
  p.Function(0x2000, 0x40);
  p.SetPc(0x2010);
  p.Stack({p.At(FakeProcess::kEhFrame + 8), 1});
  EXPECT_EQ(p.Text(), "2010 no mapping");
  p.Stack({kGarbage, 1});
  EXPECT_EQ(p.Text(), "2010 no mapping");
}

TEST(Unwinder, FramesAreLimited) {
  FakeProcess p;
  p.Function(0x2000, 0x40);
  p.SetPc(0x2010);
  p.Stack(std::vector<uint64_t>(100, p.Call(0x2010)));
  p.input.max_frames = 10;
  const auto result = p.Unwind();
  EXPECT_EQ(result.end, StackEnd::kLimit);
  EXPECT_EQ(result.frames.size(), 10u);
  p.input.max_frames = 0;
  EXPECT_EQ(p.Text(), " frame limit");
}

TEST(Unwinder, RegistersMustBeThere) {
  Plain p;
  p.registers = Registers();
  p.registers.Set(x86_64::kPerfIp, p.At(0x2010));
  p.Build();
  std::vector<Frame> frames;
  EXPECT_EQ(p.unwinder.Unwind(p.input, frames), StackEnd::kNoRegisters);
  EXPECT_TRUE(frames.empty());
}

TEST(Unwinder, OtherArchitecturesAreSaidSo) {
  Plain p;
  p.Build();
  p.input.arch = Arch::kOther;
  std::vector<Frame> frames;
  EXPECT_EQ(p.unwinder.Unwind(p.input, frames), StackEnd::kUnsupported);
}

TEST(Unwinder, TheCpuIsTheRecordingsAndTheTasks) {
  EXPECT_EQ(ArchOf(0, kRegsAbi64), Arch::kX86_64);
  EXPECT_EQ(ArchOf(EM_X86_64, kRegsAbi64), Arch::kX86_64);
  EXPECT_EQ(ArchOf(EM_X86_64, kRegsAbi32), Arch::kX86);
  EXPECT_EQ(ArchOf(EM_386, kRegsAbi32), Arch::kX86);
  EXPECT_EQ(ArchOf(EM_AARCH64, kRegsAbi64), Arch::kAarch64);
  EXPECT_EQ(ArchOf(EM_AARCH64, kRegsAbi32), Arch::kOther);
  EXPECT_EQ(ArchOf(EM_ARM, kRegsAbi32), Arch::kOther);
  EXPECT_EQ(ArchOf(EM_PPC64, kRegsAbi64), Arch::kOther);
  constexpr uint64_t kVectorsFollow = 4;
  EXPECT_EQ(ArchOf(EM_X86_64, kRegsAbi32 | kVectorsFollow), Arch::kX86);
  EXPECT_EQ(ArchOf(EM_AARCH64, kRegsAbi64 | kVectorsFollow), Arch::kAarch64);
}

TEST(Unwinder, WithoutMapsThereIsTheSampledPcOnly) {
  Plain p;
  p.Build();
  p.input.maps = nullptr;
  std::vector<Frame> frames;
  EXPECT_EQ(p.unwinder.Unwind(p.input, frames), StackEnd::kNoMapping);
  EXPECT_EQ(frames.size(), 1u);
}

// ---- rules that need more registers ----

TEST(Unwinder, ARuleWithAnotherRegisterStartsAnew) {
  FakeProcess p;
  p.Function(0x2000, 0x40, CfaCode().DefCfaOffset(24).Offset(3, 3));  // rbx saved
  p.Function(0x2100, 0x40, CfaCode().DefCfa(3, 16));                  // CFA = rbx + 16
  p.Function(0x2200, 0x40, CfaCode().Undefined(16));
  p.SetPc(0x2010);
  p.Stack({p.WordAt(4), 1, p.Call(0x2110), 2, 3, p.Call(0x2210), 4});
  EXPECT_EQ(p.Text(), "2010 2110r 2210r root");
  EXPECT_EQ(p.unwinder.counters().Get("unwind.restart_full"), 2u);  // and from the cache
}

TEST(Unwinder, ARegisterThatIsNotKnownEndsIt) {
  FakeProcess p;
  p.Function(0x2000, 0x40);
  p.Function(0x2100, 0x40, CfaCode().DefCfa(3, 16));
  p.SetPc(0x2010);
  p.Stack({p.Call(0x2110), 2, 3});
  EXPECT_EQ(p.Text(), "2010 2110r bad CFI");
}

TEST(Unwinder, ReturnAddressInARegister) {
  FakeProcess p;
  p.Function(0x2000, 0x40, CfaCode().Register(16, 12));
  p.Function(0x2200, 0x40, CfaCode().Undefined(16));
  p.SetPc(0x2010);
  p.registers.Set(kPerfR8 + 4, p.Call(0x2210));
  p.Stack({1, 2});
  EXPECT_EQ(p.Text(), "2010 2210r root");
}

// vfork: "pop %rdi; syscall" with the return address in rdi until it is pushed again.
TEST(Unwinder, APoppedReturnAddressInARegister) {
  FakeProcess p;
  p.Function(0x2000, 0x40, CfaCode().DefCfaOffset(0).Register(16, 12));
  p.Function(0x2100, 0x40, CfaCode().DefCfaOffset(16));
  p.Function(0x2200, 0x40, CfaCode().Undefined(16));
  p.SetPc(0x2010);
  p.registers.Set(kPerfR8 + 4, p.Call(0x2110));
  p.Stack({1, p.Call(0x2210), 2});
  EXPECT_EQ(p.Text(), "2010 2110r 2210r root");
}

TEST(Unwinder, UndefinedFramePointerIsNotUsed) {
  FakeProcess p;
  p.Function(0x2000, 0x40, CfaCode().Undefined(6));
  p.Function(0x2100, 0x40, CfaCode().DefCfa(6, 16));
  p.SetPc(0x2010);
  p.SetFp(p.WordAt(1));
  p.Stack({p.Call(0x2110), 2, 3});
  EXPECT_EQ(p.Text(), "2010 2110r bad CFI");
}

// lea 8(%rsp),%r10; and $-64,%rsp; push -8(%r10); push %rbp; mov %rsp,%rbp; push %r10: the CFA is
// at rbp - 8, and rbp at rbp.
TEST(Unwinder, RealignedStack) {
  FakeProcess p;
  p.Function(0x2000, 0x40, CfaCode().DefCfaExpression({0x76, 0x78, 0x06}).Expression(6, {0x76, 0}));
  p.Function(0x2100, 0x40, CfaCode().DefCfa(6, 16).Offset(6, 2));
  p.Function(0x2200, 0x40, CfaCode().Undefined(16));
  p.SetPc(0x2010);
  p.SetFp(p.WordAt(2));
  //       0  1: r10     2: rbp       3  4: RA of 2000     5: CFA  6: rbp  7: RA
  p.Stack({7, p.WordAt(5), p.WordAt(6), 7, p.Call(0x2110), 7, 0, p.Call(0x2210), 7});
  EXPECT_EQ(p.Text(), "2010 2110r 2210r root");
  EXPECT_EQ(p.unwinder.counters().Get("unwind.restart_full"), 0u);
}

TEST(Unwinder, DereferencedCfaWithAddend) {
  FakeProcess p;
  p.Function(0x2000, 0x40, CfaCode().DefCfaExpression({0x77, 0x08, 0x06, 0x23, 0x10}));
  p.Function(0x2200, 0x40, CfaCode().Undefined(16));
  p.SetPc(0x2010);
  p.Stack({7, p.WordAt(2), 7, p.Call(0x2210), 7});
  EXPECT_EQ(p.Text(), "2010 2210r root");
}

TEST(Unwinder, GeneralExpressions) {
  FakeProcess p;
  // CFA = rsp + 8 + 2 * 8; rbp = its value + 0 (val_expression: CFA - 8, dereferenced by hand).
  p.Function(0x2000, 0x40,
             CfaCode()
                 .DefCfaExpression({0x77, 0x08, 0x32, 0x38, 0x1e, 0x22})
                 .Op(0x16)
                 .Uleb(6)
                 .Block({0x48, 0x1c, 0x06}));
  p.Function(0x2100, 0x40, CfaCode().DefCfa(6, 16));
  p.Function(0x2200, 0x40, CfaCode().Undefined(16));
  p.SetPc(0x2010);
  p.Stack({p.WordAt(3), 7, p.Call(0x2110), 7, p.Call(0x2210)});
  EXPECT_EQ(p.Text(), "2010 2110r 2210r root");
}

TEST(Unwinder, ExpressionsReadReadOnlyBytesOfFiles) {
  FakeProcess p;
  // CFA = rsp + the byte at svma 0x3000.
  p.Function(
      0x2000, 0x40,
      CfaCode().DefCfaExpression({0x77, 0, 0x03, 0x00, 0x30, 0, 0, 0, 0, 0, 0, 0x94, 1, 0x22}));
  p.Function(0x2200, 0x40, CfaCode().Undefined(16));
  p.Code(0x3000, {24});
  p.SetPc(0x2010);
  p.Stack({7, 7, p.Call(0x2210)});
  EXPECT_EQ(p.Text(), "2010 2210r root");
}

// A PLT entry pushes midway: jmp *GOT (6 bytes); push $n (5); jmp PLT0.
TEST(Unwinder, PltEntries) {
  FakeProcess p;
  p.Function(0x2000, 0x400,
             CfaCode().DefCfaExpression(
                 {0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22}));
  p.Function(0x2800, 0x40, CfaCode().Undefined(16));
  p.SetPc(0x2040);
  p.Stack({p.Call(0x2810), 7});
  EXPECT_EQ(p.Text(), "2040 2810r root");
  p.SetPc(0x204a);
  EXPECT_EQ(p.Text(), "204a 2810r root");
  p.SetPc(0x204b);
  p.Stack({3, p.Call(0x2810), 7});
  EXPECT_EQ(p.Text(), "204b 2810r root");
  EXPECT_EQ(p.unwinder.counters().Get("unwind.restart_full"), 0u);
}

TEST(Unwinder, BadCfiEndsIt) {
  FakeProcess p;
  p.Function(0x2000, 0x40, CfaCode().Op(0x3f));
  p.SetPc(0x2010);
  p.Stack({p.Call(0x2210), 7});
  EXPECT_EQ(p.Text(), "2010 bad CFI");
  EXPECT_EQ(p.unwinder.counters().Get("unwind.bad_cfi"), 1u);
}

// ---- signal frames ----

constexpr uint64_t kContextPc = 168, kContextSp = 160, kContextBp = 120;

// Handler at 0x2000, returning to a trampoline at 0x3000; the interrupted function at 0x2100.
struct Signal : FakeProcess {
  Signal() {
    Function(0x2000, 0x40);
    Function(0x2100, 0x40, CfaCode().DefCfa(6, 16).Offset(6, 2));
    Function(0x2200, 0x40, CfaCode().Undefined(16));
    SetPc(0x2010);
    // 0: the handler's return address; 1: the trampoline's sp, where the ucontext is; far above the
    // interrupted stack.
    Word(0, At(0x3000));
    Word(1 + kContextBp / 8, WordAt(42));
    Word(1 + kContextSp / 8, WordAt(40));
    Word(1 + kContextPc / 8, At(0x2100));  // its first instruction: not a return address
    Word(42, 0);
    Word(43, Call(0x2210));
    Word(44, 7);
  }
  // As in glibc: an FDE that begins one byte before, so that the return address - 1 is in it.
  void AddTrampolineCfi() {
    const auto place = [](int64_t offset) {
      return std::pair{static_cast<uint8_t>((offset & 0x7f) | 0x80),
                       static_cast<uint8_t>(offset >> 7)};
    };
    const auto [sp_low, sp_high] = place(kContextSp);
    const auto [bp_low, bp_high] = place(kContextBp);
    const auto [pc_low, pc_high] = place(kContextPc);
    CfaCode code;
    code.DefCfaExpression({0x77, sp_low, sp_high, 0x06});
    code.Expression(7, {0x77, sp_low, sp_high});
    code.Expression(6, {0x77, bp_low, bp_high});
    code.Expression(16, {0x77, pc_low, pc_high});
    Function(0x2fff, 10, code, /*signal_frame=*/true);
  }
};

TEST(Unwinder, SignalFrameByCfi) {
  Signal p;
  p.AddTrampolineCfi();
  EXPECT_EQ(p.Text(), "2010 3000rs 2100 2210r root");
  EXPECT_EQ(p.unwinder.counters().Get("unwind.restart_full"), 0u);
}

TEST(Unwinder, SignalFrameByItsCode) {
  Signal p;
  p.Code(0x3000, {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05});
  EXPECT_EQ(p.Text(), "2010 3000rs 2100 2210r root");
}

// The byte before a trampoline may be another function's, with CFI of its own.
TEST(Unwinder, SignalFrameByItsCodeBehindAFunctionWithCfi) {
  Signal p;
  p.Function(0x2fc0, 0x40);
  p.Code(0x3000, {0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05});
  EXPECT_EQ(p.Text(), "2010 3000rs 2100 2210r root");
}

TEST(Unwinder, InsideATrampoline) {
  for (const uint64_t pc : {0x3000, 0x3007, 0x3009}) {
    Signal p;
    p.Code(0x3000, {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05});
    p.SetPc(pc);
    p.SetSp(p.WordAt(1));
    Signal shifted;
    std::vector<uint64_t> words;
    for (uint64_t i = 1; i < 46; ++i) {
      uint64_t value = 0;
      shifted.Build();
      if (shifted.input.stack.Read64(shifted.WordAt(i), value)) words.push_back(value);
    }
    p.Stack(words);
    char want[64];
    std::snprintf(want, sizeof want, "%llxs 2100 2210r root", static_cast<unsigned long long>(pc));
    EXPECT_EQ(p.Text(), want);
  }
}

// A handler on its own stack: the interrupted stack is elsewhere and was not dumped.
TEST(Unwinder, AlternateSignalStack) {
  for (const int64_t distance : {-0x100000, 0x100000}) {
    Signal p;
    p.AddTrampolineCfi();
    p.Word(1 + kContextSp / 8, p.sp + static_cast<uint64_t>(distance));
    p.Word(1 + kContextBp / 8, p.sp + static_cast<uint64_t>(distance) + 64);
    EXPECT_EQ(p.Text(), "2010 3000rs 2100 bad CFA");
  }
}

// The interrupted frame may lie below the handler's, on a stack that is in the dump all the same.
TEST(Unwinder, TheStackMayGoDownAtASignalFrame) {
  Signal p;
  p.AddTrampolineCfi();
  // The handler's frame is moved up behind the interrupted one.
  p.Stack({});
  p.Word(0, 7);
  p.Word(1, 7);
  p.Word(2, 0);  // saved rbp
  p.Word(3, p.Call(0x2210));
  p.Word(10, p.At(0x3000));
  p.Word(11 + kContextBp / 8, p.WordAt(2));
  p.Word(11 + kContextSp / 8, p.WordAt(0));
  p.Word(11 + kContextPc / 8, p.At(0x2110));
  p.Function(0x2300, 0x40, CfaCode().DefCfaOffset(88));
  p.SetPc(0x2310);
  EXPECT_EQ(p.Text(), "2310 3000rs 2110 2210r root");
}

TEST(Unwinder, ASignalFrameThatLeadsToItselfIsNoAdvance) {
  Signal p;
  p.AddTrampolineCfi();
  p.Word(1 + kContextSp / 8, p.WordAt(1));
  p.Word(1 + kContextPc / 8, p.At(0x3000));
  const auto result = p.Unwind();
  EXPECT_EQ(result.end, StackEnd::kNoAdvance);
  EXPECT_LE(result.frames.size(), 3u);
}

// ---- without CFI ----

TEST(Unwinder, FramePointerChainIsFollowedWithChecks) {
  FakeProcess p;
  p.Function(0x2200, 0x40, CfaCode().Undefined(16));
  p.SetPc(0x3010);
  p.Code(0x3010, {0xf4});  // hlt: the code cannot be followed
  p.Code(0x3110, {0xf4});
  p.SetFp(p.WordAt(2));
  p.Stack({7, 7, p.WordAt(5), p.Call(0x3110), 7, p.WordAt(8), p.Call(0x2210), 7, 7});
  EXPECT_EQ(p.Text(), "3010 3110r:fp 2210r:fp root");
}

TEST(Unwinder, FramePointerChainEndsAtNull) {
  FakeProcess p;
  p.known_file = false;  // as in JIT memory
  p.SetPc(0x3010);
  p.SetFp(p.WordAt(0));
  p.Stack({0, p.At(0x3110), 7});
  EXPECT_EQ(p.Text(), "3010 3110r:fp root");
}

TEST(Unwinder, FramePointerChainRefusals) {
  const auto text = [](auto change) {
    FakeProcess p;
    p.SetPc(0x3010);
    p.Code(0x3010, {0xf4});
    p.SetFp(p.WordAt(2));
    p.Stack({7, 7, p.WordAt(5), p.Call(0x3110), 7, 0, 0});
    p.Code(0x3110, {0xf4});
    change(p);
    return p.Text();
  };
  EXPECT_EQ(text([](FakeProcess&) {}), "3010 3110r:fp root");
  EXPECT_EQ(text([](FakeProcess& p) { p.SetFp(p.WordAt(2) + 1); }), "3010 no CFI");  // alignment
  EXPECT_EQ(text([](FakeProcess& p) { p.SetFp(p.sp - 16); }), "3010 no CFI");        // below sp
  EXPECT_EQ(text([](FakeProcess& p) { p.SetFp(p.WordAt(7)); }), "3010 no CFI");      // not dumped
  EXPECT_EQ(text([](FakeProcess& p) { p.Word(2, p.WordAt(2)); }), "3010 no CFI");    // no growth
  EXPECT_EQ(text([](FakeProcess& p) { p.Word(2, p.WordAt(1)); }), "3010 no CFI");
  EXPECT_EQ(text([](FakeProcess& p) { p.Word(3, p.At(0x3210)); }), "3010 no CFI");  // no call
  EXPECT_EQ(text([](FakeProcess& p) { p.Word(3, p.At(0x8010)); }), "3010 no CFI");  // data
  EXPECT_EQ(text([](FakeProcess& p) { p.registers.valid &= ~(1u << x86_64::kPerfBp); }),
            "3010 no CFI");
}

TEST(Unwinder, CfiGoesOnBehindFramesWithoutIt) {
  FakeProcess p;
  p.known_file = true;
  p.Function(0x2100, 0x40, CfaCode().DefCfaOffset(32));
  p.Function(0x2200, 0x40, CfaCode().Undefined(16));
  p.SetPc(0x3010);
  p.Code(0x3010, {0xf4});
  p.SetFp(p.WordAt(1));
  p.Stack({7, p.WordAt(90), p.Call(0x2110), 7, 7, 7, p.Call(0x2210), 7});
  EXPECT_EQ(p.Text(), "3010 2110r:fp 2210r root");
}

TEST(Unwinder, CodeWithoutCfiIsScanned) {
  FakeProcess p;
  p.Function(0x2200, 0x40, CfaCode().Undefined(16));
  // _init: sub $8,%rsp; mov 0(%rip),%rax; test %rax,%rax; je +2; call *%rax; add $8,%rsp; ret
  p.Code(0x3000, {0x48, 0x83, 0xec, 0x08, 0x48, 0x8b, 0x05, 0,    0,    0,    0,   0x48,
                  0x85, 0xc0, 0x74, 0x02, 0xff, 0xd0, 0x48, 0x83, 0xc4, 0x08, 0xc3});
  p.SetPc(0x3000);
  p.Stack({p.Call(0x2210), 7});
  EXPECT_EQ(p.Text(), "3000 2210r:fp root");
  p.SetPc(0x3004);
  p.Stack({7, p.Call(0x2210), 7});
  EXPECT_EQ(p.Text(), "3004 2210r:fp root");
  p.SetPc(0x3016);
  p.Stack({p.Call(0x2210), 7});
  EXPECT_EQ(p.Text(), "3016 2210r:fp root");
  p.Stack({7, 7});  // no return address there
  EXPECT_EQ(p.Text(), "3016 no CFI");
}

// Hand-written code with CFI that forgets a push.
TEST(Unwinder, WrongCfiOfTheInnermostFunctionIsSeenByItsCode) {
  FakeProcess p;
  p.Function(0x2000, 0x40);
  p.Function(0x2200, 0x40, CfaCode().Undefined(16));
  p.Code(0x2010, {0x5f, 0xc3});  // pop %rdi; ret
  p.SetPc(0x2010);
  p.Stack({kGarbage, p.Call(0x2210), 7});
  EXPECT_EQ(p.Text(), "2010 2210r:fp root");
}

TEST(Unwinder, APcInNoMappingMayHaveAFramePointer) {
  FakeProcess p;
  p.Function(0x2200, 0x40, CfaCode().Undefined(16));
  p.registers.Set(x86_64::kPerfIp, kGarbage);
  p.SetFp(p.WordAt(0));
  p.Stack({p.WordAt(9), p.Call(0x2210), 7});
  const auto result = p.Unwind();
  EXPECT_EQ(result.end, StackEnd::kRoot);
  EXPECT_EQ(result.frames.size(), 2u);
  p.SetFp(1);
  EXPECT_EQ(p.Unwind().end, StackEnd::kNoMapping);
}

// ---- maps ----

TEST(Unwinder, NewMapsDropOldRules) {
  Plain p;
  p.Build();
  std::vector<Frame> frames;
  EXPECT_EQ(p.unwinder.Unwind(p.input, frames), StackEnd::kRoot);
  EXPECT_EQ(frames.size(), 3u);
  // The same addresses, now of a file with other frames.
  FakeProcess other;
  other.Function(0x2000, 0x40, CfaCode().Undefined(16));
  other.Build();
  p.input.maps = &other.maps;
  frames.clear();
  EXPECT_EQ(p.unwinder.Unwind(p.input, frames), StackEnd::kRoot);
  EXPECT_EQ(frames.size(), 1u);
}

TEST(Unwinder, RulesOfOneModuleHoldInNewVersionsOfMaps) {
  Plain p;
  p.Build();
  std::vector<Frame> before, frames;
  EXPECT_EQ(p.unwinder.Unwind(p.input, before), StackEnd::kRoot);
  UnwindMaps next = p.maps;
  next.version = uint64_t{1} << 50;
  p.input.maps = &next;
  EXPECT_EQ(p.unwinder.Unwind(p.input, frames), StackEnd::kRoot);
  ASSERT_EQ(frames.size(), 3u);
  ASSERT_EQ(before.size(), frames.size());
  for (size_t i = 0; i < frames.size(); ++i) {
    EXPECT_EQ(frames[i].address.avma, before[i].address.avma) << i;
  }
}

// Segments whose vaddr - offset differ have mappings with a bias each.
TEST(Unwinder, SeveralSegmentsWithTheirOwnBias) {
  Plain p;
  p.Build();
  UnwindMapping moved = p.maps.mappings[0];
  UnwindMaps maps;
  maps.version = uint64_t{1} << 51;
  UnwindMapping first = moved;
  first.end = p.bias + 0x2100;
  UnwindMapping second = moved;
  second.start = p.bias + 0x2100 + 0x10000;
  second.end = p.bias + 0x5000 + 0x10000;
  second.bias = p.bias + 0x10000;
  maps.mappings = {first, second};
  p.Stack({p.At(0x2110) + 0x10000, 1, 2, 3, 4, p.At(0x2210) + 0x10000, 5});
  p.Build();
  p.maps = maps;
  p.maps.mappings[0].module = p.maps.mappings[1].module = moved.module;
  // Build made a new module: use that of now.
  Plain fresh;
  fresh.Build();
  for (UnwindMapping& mapping : p.maps.mappings) mapping.module = fresh.maps.mappings[0].module;
  std::vector<Frame> frames;
  EXPECT_EQ(p.unwinder.Unwind(p.input, frames), StackEnd::kRoot);
  EXPECT_EQ(frames.size(), 3u);
}

// ---- 32-bit tasks ----

TEST(Unwinder, ThirtyTwoBitTasks) {
  FakeProcess p(Arch::kX86);
  // CFA = ebp + 8, ebp at CFA - 8; ebx (DWARF 3, perf 1) is the CFA's base in the next.
  p.Function(0x2000, 0x40, CfaCode().DefCfa(5, 8).Offset(5, 2).Offset(3, 3));
  p.Function(0x2100, 0x40, CfaCode().DefCfa(3, 8));
  p.Function(0x2200, 0x40, CfaCode().Undefined(8));
  p.SetPc(0x2010);
  p.SetFp(p.WordAt(2));
  //       0  1: ebx       2: ebp 3: RA            4  5: RA
  p.Stack({7, p.WordAt(4), 9, p.Call(0x2110), 7, p.Call(0x2210)});
  EXPECT_EQ(p.Text(), "2010 2110r 2210r root");
}

TEST(Unwinder, ThirtyTwoBitSignalFrames) {
  // At the trampoline's sp: sig, &info, &uc, siginfo (128); uc_flags, uc_link, uc_stack (12).
  constexpr uint64_t kContext = 12 + 128 + 20;
  FakeProcess p(Arch::kX86);
  p.Function(0x2000, 0x40);
  p.Function(0x2100, 0x40, CfaCode().DefCfa(5, 8).Offset(5, 2));
  p.Function(0x2200, 0x40, CfaCode().Undefined(8));
  p.Code(0x3000, {0xb8, 0xad, 0, 0, 0, 0xcd, 0x80});
  p.SetPc(0x2010);
  p.Word(0, p.At(0x3000));
  p.Word(1 + (kContext + 24) / 4, p.WordAt(82));
  p.Word(1 + (kContext + 28) / 4, p.WordAt(80));
  p.Word(1 + (kContext + 56) / 4, p.At(0x2110));
  p.Word(82, 0);
  p.Word(83, p.Call(0x2210));
  EXPECT_EQ(p.Text(), "2010 3000rs 2110 2210r root");
}

TEST(Unwinder, ThirtyTwoBitOldSignalFrames) {
  FakeProcess p(Arch::kX86);
  p.Function(0x2000, 0x40);
  p.Function(0x2200, 0x40, CfaCode().Undefined(8));
  p.Code(0x3000, {0x58, 0xb8, 0x77, 0, 0, 0, 0xcd, 0x80});
  p.SetPc(0x2010);
  p.Word(0, p.At(0x3000));
  p.Word(1, 11);  // the signal's number
  p.Word(2 + 28 / 4, p.WordAt(30));
  p.Word(2 + 56 / 4, p.At(0x2220));
  p.Word(40, 0);
  EXPECT_EQ(p.Text(), "2010 3000rs 2220 root");
}

// ---- modules ----

TEST(UnwindModule, SerialsDiffer) {
  const auto a = UnwindModule::Make(nullptr, nullptr);
  const auto b = UnwindModule::Make(nullptr, nullptr);
  EXPECT_NE(a->serial(), b->serial());
  EXPECT_TRUE(a->BytesAt(Svma(0x1000)).empty());
}

TEST(UnwindMaps, Find) {
  UnwindMaps maps;
  UnwindMapping a, b;
  a.start = 0x1000;
  a.end = 0x2000;
  b.start = 0x3000;
  b.end = 0x4000;
  maps.mappings = {a, b};
  EXPECT_EQ(maps.Find(0xfff), nullptr);
  EXPECT_EQ(maps.Find(0x1000)->start, 0x1000u);
  EXPECT_EQ(maps.Find(0x2000), nullptr);
  EXPECT_EQ(maps.Find(0x3fff)->start, 0x3000u);
  EXPECT_EQ(maps.Find(0x4000), nullptr);
}

}  // namespace
}  // namespace stackreel::unwind
