// The traps of unwinding on arm64, one a test. Both paths must agree in each.
#include <gtest/gtest.h>

#include <string>

#include "unwind/aarch64/trampoline.h"
#include "unwind/fake_process.h"

namespace stackreel::unwind {
namespace {

using dwarf::CfaCode;

constexpr uint64_t kMask = 0x007f000000000000;  // 48-bit addresses
constexpr uint64_t kCode = 0x002a000000000000;  // some authentication code
constexpr uint8_t kNegateRaState = 0x2d;
constexpr uint8_t kFp = 29, kLr = 30, kSp = 31;

// stp x29, x30, [sp, #-16 * `pairs`]!; mov x29, sp
CfaCode Record(uint64_t pairs) {
  return CfaCode().DefCfaOffset(16 * pairs).Offset(kFp, 2 * pairs).Offset(kLr, 2 * pairs - 1);
}
CfaCode SignedRecord(uint64_t pairs) {
  CfaCode code;
  code.Op(kNegateRaState);
  return code.DefCfaOffset(16 * pairs).Offset(kFp, 2 * pairs).Offset(kLr, 2 * pairs - 1);
}

struct Arm : FakeProcess {
  Arm() : FakeProcess(Arch::kAarch64) { input.code_mask = kMask; }
};

// Leaf at 0x2000 (no frame), called from Middle at 0x2100 (32 bytes), called from Root at 0x2200,
// whose return address is undefined. All sign, as the code bits say.
struct Signed : Arm {
  Signed() {
    Function(0x2000, 0x40);
    Function(0x2100, 0x40, SignedRecord(2));
    Function(0x2200, 0x40, CfaCode().Undefined(kLr));
    SetPc(0x2010);
    SetLr(Call(0x2110) | kCode);
    SetFp(sp);
    Stack({sp + 32, Call(0x2210) | kCode, 3, 4, 0, 0});
  }
};

uint64_t Unannounced(const FakeProcess& p) {
  return p.unwinder.counters().Get("unwind.code_unannounced");
}

TEST(Aarch64Unwinder, StripsSignedReturnAddresses) {
  Signed p;
  EXPECT_EQ(p.Text(), "2010 2110r 2210r root");
}

// The mask is what makes the difference: without it the chain is lost, as perf loses it.
TEST(Aarch64Unwinder, WithoutAMaskTheChainIsLost) {
  Signed p;
  p.input.code_mask = 0;
  EXPECT_EQ(p.Text(), "2010 no mapping");
}

TEST(Aarch64Unwinder, StripsTheSampledPc) {
  Signed p;
  p.registers.Set(32, p.At(0x2010) | kCode);
  EXPECT_EQ(p.Text(), "2010 2110r 2210r root");
}

// Branch protection is per binary, and keys can be off: CFI that says "signed" promises no bits.
TEST(Aarch64Unwinder, TakesPlainAddressesWhereCfiSaysSigned) {
  Signed p;
  p.SetLr(p.Call(0x2110));
  p.Word(1, p.Call(0x2210));
  EXPECT_EQ(p.Text(), "2010 2110r 2210r root");
  EXPECT_EQ(Unannounced(p), 0u);
}

TEST(Aarch64Unwinder, CountsCodesThatCfiDoesNotAnnounce) {
  Arm p;
  p.Function(0x2000, 0x40, Record(1));
  p.Function(0x2200, 0x40, CfaCode().Undefined(kLr));
  p.SetPc(0x2010);
  p.Stack({p.sp + 32, p.Call(0x2210) | kCode});
  EXPECT_EQ(p.Text(), "2010 2210r root");
  EXPECT_GT(Unannounced(p), 0u);
}

TEST(Aarch64Unwinder, TagsOfTheTopByteAreNoPartOfCode) {
  Signed p;
  p.SetLr(p.Call(0x2110) | kCode | uint64_t{0x5a} << 56);
  EXPECT_EQ(p.Text(), "2010 2110r 2210r root");
}

// Only the innermost function, or one a signal interrupted, may still have its return address in
// lr. Elsewhere a call has overwritten it.
TEST(Aarch64Unwinder, AnOmittedLrIsALeafOnlyAtTheTop) {
  Arm p;
  p.Function(0x2000, 0x40);
  p.Function(0x2100, 0x40);  // says nothing of lr, and has called
  p.SetPc(0x2000);
  p.SetLr(p.Call(0x2110));
  p.Stack({0, 0});
  EXPECT_EQ(p.Text(), "2000 2110r no advance");
}

TEST(Aarch64Unwinder, CfaByX29) {
  Arm p;
  p.Function(0x2000, 0x40, CfaCode().DefCfa(kFp, 16).Offset(kFp, 2).Offset(kLr, 1));
  p.Function(0x2200, 0x40, CfaCode().Undefined(kLr));
  p.SetPc(0x2010);
  p.SetFp(p.sp + 24);
  p.Stack({1, 2, 3, 0, p.Call(0x2210) | kCode});
  EXPECT_EQ(p.Text(), "2010 2210r root");
}

// A frame left by its record gives no sp. CFI says where in the next frame the record is.
TEST(Aarch64Unwinder, GoesOnWithCfiBehindAFrameRecord) {
  Arm p;
  p.Function(0x2100, 0x40, SignedRecord(2));
  p.Function(0x2200, 0x40, CfaCode().Undefined(kLr));
  p.Instruction(0x3000, 0);  // no CFI, nothing to scan
  p.SetPc(0x3000);
  p.SetFp(p.sp + 16);
  // A word that is no record of ours lies between the frames.
  p.Stack({1, 2, p.sp + 40, p.Call(0x2110) | kCode, 9, p.sp + 72, p.Call(0x2210) | kCode, 3, 4});
  EXPECT_EQ(p.Text(), "3000 2110r:fp 2210r root");
}

TEST(Aarch64Unwinder, FollowsFrameRecordsToTheEnd) {
  Arm p;
  p.known_file = false;
  p.SetPc(0x3000);
  p.SetFp(p.sp);
  p.Stack({p.sp + 16, p.At(0x2110) | kCode, p.sp + 32, p.At(0x2210), 0, p.At(0x2310)});
  EXPECT_EQ(p.Text(), "3000 2110r:fp 2210r:fp 2310r:fp root");
}

TEST(Aarch64Unwinder, RecursionByFrameRecordsIsNoLoop) {
  Arm p;
  p.known_file = false;
  p.SetPc(0x3000);
  p.SetFp(p.sp);
  p.Stack({p.sp + 16, p.At(0x2110), p.sp + 32, p.At(0x2110), 0, p.At(0x2110)});
  EXPECT_EQ(p.Text(), "3000 2110r:fp 2110r:fp 2110r:fp root");
}

TEST(Aarch64Unwinder, FrameRecordsThatGoDownAreNone) {
  Arm p;
  p.known_file = false;
  p.SetPc(0x3000);
  p.SetFp(p.sp + 16);
  p.Stack({0, 0, p.sp, p.At(0x2110)});
  EXPECT_EQ(p.Text(), "3000 no CFI");
}

TEST(Aarch64Unwinder, AFunctionWithoutCfiIsLeftByLr) {
  Arm p;
  p.Function(0x2200, 0x40, CfaCode().Undefined(kLr));
  p.Instruction(0x3004, 0xd65f03c0);  // ret
  p.SetPc(0x3000);
  p.SetLr(p.Call(0x2210) | kCode);
  p.Stack({1, 2});
  EXPECT_EQ(p.Text(), "3000 2210r:lr root");
}

// Code of which nothing is known may have moved sp: what CFI finds by it must be a return address.
TEST(Aarch64Unwinder, SpBehindUnknownCodeIsAGuess) {
  Arm p;
  p.Function(0x2100, 0x40, CfaCode().DefCfaOffset(16).Offset(kLr, 1));
  p.Function(0x2200, 0x40, CfaCode().Undefined(kLr));
  p.SetPc(FakeProcess::kUnknownCode);
  p.SetLr(p.Call(0x2110));
  p.Stack({1, p.Call(0x2210)});
  EXPECT_EQ(p.Text(), "a000 2110r:lr 2210r root");
  p.Stack({1, p.At(0x2300), 7, p.Call(0x2210)});
  EXPECT_EQ(p.Text(), "a000 2110r:lr no CFI");
}

TEST(Aarch64Unwinder, ACallThroughABadPointerIsLeftByLr) {
  Arm p;
  p.Function(0x2200, 0x40, CfaCode().Undefined(kLr));
  p.registers.Set(32, 0x1000);  // in no mapping
  p.SetLr(p.Call(0x2210));
  p.Stack({1, 2});
  const auto result = p.Unwind();
  ASSERT_EQ(result.frames.size(), 2u);
  EXPECT_EQ(result.frames[1].address.avma.value, p.At(0x2210));
  EXPECT_TRUE(result.paths_agree);
}

// A scan that leads to no return address gives way to the frame record.
TEST(Aarch64Unwinder, AGuessIsChecked) {
  Arm p;
  p.Function(0x2200, 0x40, CfaCode().Undefined(kLr));
  p.Instruction(0x3000, 0xf84107fe);  // ldr x30, [sp], #16
  p.Instruction(0x3004, 0xd65f03c0);  // ret
  p.SetPc(0x3000);
  p.SetFp(p.sp + 16);
  p.Stack({7, 8, 0, p.Call(0x2210)});
  EXPECT_EQ(p.Text(), "3000 2210r:fp root");
}

// The handler at 0x2000 returns to the trampoline at 0x3100; the signal came to a leaf at 0x2100
// before its first instruction; that was called by Root.
struct Interrupted : Arm {
  explicit Interrupted(bool code_known = true, uint64_t unknown = kUnknownCode + 0x7bc) {
    const uint64_t trampoline = code_known ? 0x3100 : unknown;
    Function(0x2000, 0x40, SignedRecord(1));
    Function(0x2100, 0x40);
    Function(0x2200, 0x40, CfaCode().Undefined(kLr));
    if (code_known) {
      Instruction(0x3100, 0xd2801168);  // mov x8, #139
      Instruction(0x3104, 0xd4000001);  // svc #0
    }
    SetPc(0x2010);
    const uint64_t frame = sp + 16;
    std::vector<uint64_t> words(2 + (aarch64::kSavedX0 + 34 * 8) / 8 + 8);
    words[0] = sp + 16 + 1024;
    words[1] = At(trampoline) | kCode;
    const auto saved = [&](int32_t offset) -> uint64_t& {
      return words[(frame - sp + static_cast<uint64_t>(offset)) / 8];
    };
    saved(aarch64::kSavedSp) = frame + 0x400;
    saved(aarch64::kSavedPc) = At(0x2100);
    saved(aarch64::kSavedLr) = Call(0x2210) | kCode;
    saved(128 + 176 + 288) = uint64_t{0x210} << 32 | 0x46508001;  // fpsimd_context
    words.resize(2 + 0x400 / 8 + 2);
    Stack(words);
  }
};

TEST(Aarch64Unwinder, SignalFramesByTheTrampolinesCode) {
  Interrupted p;
  EXPECT_EQ(p.Text(), "2010 3100rs 2100 2210r root");
}

// CFI of vDSOs before 5.8: CFA = x29, x29 and x30 of the record: the interrupted pc is in neither.
TEST(Aarch64Unwinder, SignalFramesIgnoreTheTrampolinesCfi) {
  Interrupted p;
  p.Function(0x30fc, 0x0c, CfaCode().DefCfa(kFp, 0).Offset(kFp, 0).Offset(kLr, 0),
             /*signal_frame=*/true);
  EXPECT_EQ(p.Text(), "2010 3100rs 2100 2210r root");
}

// perf keeps no vDSO: the signal frame is known by what lies in it.
TEST(Aarch64Unwinder, SignalFramesWithoutTheVdsosCode) {
  Interrupted p(false);
  EXPECT_EQ(p.Text(), "2010 a7bcrs 2100 2210r root");
  p.Word(0, 1);                          // what the handler saved of x29: no frame record either
  p.Word(2 + (128 + 176 + 288) / 8, 0);  // no fpsimd_context: no signal frame
  EXPECT_EQ(p.Text(), "2010 a7bcr no CFI");
}

// The trampoline is the first thing in its mapping: what lies in front is no code.
TEST(Aarch64Unwinder, SignalTrampolinesThatBeginTheirMapping) {
  Interrupted p(false, FakeProcess::kUnknownCode);
  EXPECT_EQ(p.Text(), "2010 a000rs 2100 2210r root");
}

TEST(Aarch64Unwinder, ATruncatedStackSaysSo) {
  Arm p;
  p.Function(0x2000, 0x40, SignedRecord(2));
  p.SetPc(0x2010);
  p.Stack({1});
  p.input.stack_was_cut = true;
  EXPECT_EQ(p.Text(), "2010 dump exhausted");
}

TEST(Aarch64Unwinder, ExpressionsAndOtherRegistersTakeTheFullPath) {
  Arm p;
  p.Function(0x2000, 0x40, CfaCode().DefCfa(19, 32).Offset(kFp, 2).Offset(kLr, 1));
  p.Function(0x2100, 0x40, CfaCode().DefCfaExpression({0x70 + kSp, 16}).Offset(kLr, 1));
  p.Function(0x2200, 0x40, CfaCode().Undefined(kLr));
  p.SetPc(0x2010);
  p.registers.Set(19, p.sp);
  p.Stack({1, 2, p.sp, p.Call(0x2110) | kCode, 4, p.Call(0x2210) | kCode});
  EXPECT_EQ(p.Text(), "2010 2110r 2210r root");
  EXPECT_GT(p.unwinder.counters().Get("unwind.restart_full"), 0u);
}

TEST(Aarch64Unwinder, AReturnAddressKeptInAnotherRegister) {
  Arm p;
  p.Function(0x2000, 0x40, CfaCode().Register(kLr, 17));
  p.Function(0x2200, 0x40, CfaCode().Undefined(kLr));
  p.SetPc(0x2010);
  p.registers.Set(17, p.Call(0x2210) | kCode);
  p.Stack({1, 2});
  EXPECT_EQ(p.Text(), "2010 2210r root");
}

// glibc's _dl_runtime_resolve: lr at CFA + 8, where the PLT pushed it, and a CFA that lies below.
TEST(Aarch64Unwinder, ACfaBelowTheReturnAddressIsCorrected) {
  Arm p;
  CfaCode resolve;
  resolve.DefCfaOffset(32).Op(0x11).Uleb(kLr).Sleb(-1);  // offset_extended_sf
  p.Function(0x2000, 0x40, resolve);
  p.Function(0x2100, 0x40, SignedRecord(1));
  p.Function(0x2200, 0x40, CfaCode().Undefined(kLr));
  p.SetPc(0x2010);
  p.Stack({1, 2, 3, 4, 5, p.Call(0x2110), 7, p.Call(0x2210) | kCode});
  EXPECT_EQ(p.Text(), "2010 2110r 2210r root");
}

TEST(Aarch64Unwinder, ACfaBelowSpIsBad) {
  Arm p;
  p.Function(0x2000, 0x40, CfaCode().DefCfa(kFp, 16).Offset(kFp, 2).Offset(kLr, 1));
  p.SetPc(0x2010);
  p.SetFp(p.sp - 64);
  p.Stack({1, 2, 3, 4});
  EXPECT_EQ(p.Text(), "2010 bad CFA");
}

}  // namespace
}  // namespace stackreel::unwind
