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

}  // namespace
}  // namespace stackreel::unwind
