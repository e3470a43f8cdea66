// The traps of code without call frame information, or with wrong one, one a test.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "unwind/fake_process.h"
#include "unwind/unwind.h"

namespace stackreel::unwind {
namespace {

using dwarf::CfaCode;

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
  const auto no_growth = [](size_t word) {
    return [word](FakeProcess& p) {
      p.known_file = false;
      p.Word(2, p.WordAt(word));
    };
  };
  EXPECT_EQ(text(no_growth(2)), "3010 no CFI");
  EXPECT_EQ(text(no_growth(1)), "3010 no CFI");
  EXPECT_EQ(text([](FakeProcess& p) { p.Word(3, p.At(0x3210)); }), "3010 no CFI");  // no call
  EXPECT_EQ(text([](FakeProcess& p) { p.Word(3, p.At(0x8010)); }), "3010 no CFI");  // data
  EXPECT_EQ(text([](FakeProcess& p) { p.registers.valid &= ~(1u << x86_64::kPerfBp); }),
            "3010 no CFI");
}

// A JIT's code, called by what was compiled with -fomit-frame-pointer, as its entry mostly is.
TEST(Unwinder, TheCallerOfAFrameWithAFramePointerNeedsNone) {
  FakeProcess p;
  p.Function(0x2100, 0x40, CfaCode().DefCfaOffset(32).Offset(6, 2));
  p.Function(0x2200, 0x40, CfaCode().DefCfa(6, 16).Offset(6, 2));
  p.Function(0x2300, 0x40, CfaCode().Undefined(16));
  p.SetPc(0x3010);
  p.Code(0x3010, {0xf4});
  p.SetFp(p.WordAt(1));
  // What 2110 has in rbp is on the heap; it saved the one that 2210 needs.
  for (const uint64_t in_rbp : {uint64_t{0x1234}, kGarbage}) {
    p.Stack(
        {7, in_rbp, p.Call(0x2110), 7, 7, p.WordAt(8), p.Call(0x2210), 7, 7, p.Call(0x2310), 7});
    EXPECT_EQ(p.Text(), "3010 2110r:fp 2210r 2310r root");
  }
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

}  // namespace
}  // namespace stackreel::unwind
