// Stacks of a process that is traced. Both paths (fast, and with all registers) must agree in each.
#include "unwind/detours.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "unwind/fake_process.h"

namespace stackreel::unwind {
namespace {

using dwarf::CfaCode;
using Kind = DetourRow::Kind;

constexpr uint64_t kStub = FakeProcess::kUnknownCode, kBack = kStub + 21;
constexpr uint64_t kAgent = FakeProcess::kUnknownCode + 0x800;
constexpr uint32_t kNumber = 7;

// As Plain, but Leaf is traced: its stub's return point stands where it was called from. Other, at
// 0x2300, has Middle's frame, and calls Leaf too.
struct Traced : FakeProcess {
  Traced() {
    Function(0x2000, 0x40);
    Function(0x2100, 0x40, CfaCode().DefCfaOffset(40));
    Function(0x2200, 0x40, CfaCode().Undefined(16));
    Function(0x2300, 0x40, CfaCode().DefCfaOffset(40));
    SetPc(0x2010);
    to_middle = Call(0x2110);
    to_other = Call(0x2310);
    to_root = Call(0x2210);
    CallTo(0x2210, 0x2100);
    Stack({At(kBack), 1, 2, 3, 4, to_root, 5});
    detours.SetAgent({At(kAgent), At(kAgent) + 0x100});
    detours.SetStubs({StubOf(kStub, 0x2000)});
    input.detours = &detours;
    input.ticks = 1000;
  }
  // call rel32 that returns to `svma`.
  void CallTo(uint64_t svma, uint64_t target) {
    const auto distance = static_cast<uint32_t>(target - svma);
    Code(svma - 5, {0xe8, static_cast<uint8_t>(distance), static_cast<uint8_t>(distance >> 8),
                    static_cast<uint8_t>(distance >> 16), static_cast<uint8_t>(distance >> 24)});
  }
  [[nodiscard]] Detour StubOf(uint64_t stub, uint64_t function) const {
    Detour detour;
    detour.begin = At(stub);
    detour.end = At(stub) + 64;
    detour.function = At(function);
    detour.return_point = At(stub) + 21;
    detour.number = kNumber;
    const auto row = [&](Kind kind, uint8_t offset, int8_t rsp, bool after_call = false,
                         uint64_t code = 0) {
      detour.rows.push_back(
          {.kind = kind, .after_call = after_call, .offset = offset, .sp = rsp, .code = code});
    };
    row(Kind::kPlace, 0, 0);
    row(Kind::kPlace, 5, 8);
    row(Kind::kPlace, 11, 8, /*after_call=*/true);
    row(Kind::kPlace, 16, -8);
    row(Kind::kPlace, 26, 0);
    row(Kind::kPlace, 32, 0, /*after_call=*/true);
    row(Kind::kPlace, 33, 8);
    row(Kind::kCode, 38, 0, false, At(function));
    row(Kind::kCode, 39, 0, false, At(function) + 1);
    return detour;
  }
  [[nodiscard]] OpenReturn Open(uint64_t place, uint64_t to, uint64_t start,
                                bool is_open = true) const {
    return {.place = place,
            .return_point = At(kBack),
            .return_address = to,
            .start = start,
            .is_open = is_open};
  }
  Detours detours;
  uint64_t to_middle = 0, to_other = 0, to_root = 0;
};

TEST(Detours, GoOnAtTheReturnAddressOfAnOpenCall) {
  Traced p;
  p.detours.SetOpen({p.Open(p.sp, p.to_middle, 900)});
  EXPECT_EQ(p.Text(), "2010 2110r 2210r root");
  // Known, so nothing need fit: here nothing of Other leads on as if it were called by Root.
  p.detours.SetOpen({p.Open(p.sp, p.to_other, 900)});
  EXPECT_EQ(p.Text(), "2010 2310r 2210r root");
  EXPECT_EQ(p.unwinder.counters().Get("unwind.traced_return"), 4u);
}

TEST(Detours, EndWhereNothingIsKnown) {
  Traced p;
  EXPECT_EQ(p.Text(), "2010 traced return address");
  p.detours.SetOpen({p.Open(p.sp, kGarbage, 2000)});
  EXPECT_EQ(p.Text(), "2010 traced return address");
}

// The call that is open there now began after the sample; Middle, not Other, is what Root calls.
TEST(Detours, InferWhatFits) {
  Traced p;
  p.detours.SetOpen({p.Open(p.sp, p.to_middle, 900, /*is_open=*/false)});
  p.detours.SetOpen({p.Open(p.sp, p.to_other, 1100)});
  EXPECT_EQ(p.Text(), "2010 2110r 2210r root");
  EXPECT_EQ(p.unwinder.counters().Get("unwind.traced_return_inferred"), 2u);
  // By pointer, either may be: the newer one is taken.
  p.Code(0x220e, {0xff, 0xd0});
  EXPECT_EQ(p.Text(), "2010 2310r 2210r root");
}

// Other is not what Root calls. But if what it calls jumps there, it may be.
TEST(Detours, InferThroughTailCalls) {
  Traced p;
  p.detours.SetOpen({p.Open(p.sp, p.to_other, 900, /*is_open=*/false)});
  EXPECT_EQ(p.Text(), "2010 traced return address");
  p.Code(0x2120, {0xe9, 0xdb, 0x01, 0, 0});  // jmp Other
  EXPECT_EQ(p.Text(), "2010 2310r 2210r root");
}

// An address that was seen for another place counts too, one that leads nowhere does not.
TEST(Detours, InferFromCallsElsewhere) {
  Traced p;
  p.detours.SetOpen({p.Open(p.sp + 800, p.to_middle, 900)});
  p.detours.SetOpen({p.Open(p.sp, p.At(0x2005), 1100)});
  EXPECT_EQ(p.Text(), "2010 2110r 2210r root");
}

// Middle is traced too: what tells is whose stub its caller's return address leads to.
TEST(Detours, InferThroughAnotherStub) {
  Traced p;
  p.detours.SetStubs({p.StubOf(kStub, 0x2000), p.StubOf(kStub + 0x100, 0x2100)});
  p.Word(5, p.At(kBack + 0x100));
  OpenReturn middle = p.Open(p.WordAt(5), p.to_root, 100);
  middle.return_point = p.At(kBack + 0x100);
  p.detours.SetOpen({p.Open(p.sp, p.to_middle, 900, /*is_open=*/false)});
  p.detours.SetOpen({p.Open(p.sp, p.to_other, 1100), middle});
  EXPECT_EQ(p.Text(), "2010 2110r 2210r root");
}

// Leaf was entered by a jump from Other, which is traced and was called first.
TEST(Detours, FollowTailCalls) {
  Traced p;
  p.detours.SetStubs({p.StubOf(kStub, 0x2000), p.StubOf(kStub + 0x100, 0x2300)});
  OpenReturn other = p.Open(p.sp, p.to_middle, 800);
  other.return_point = p.At(kBack + 0x100);
  p.detours.SetOpen({p.Open(p.sp, p.At(kBack + 0x100), 900), other});
  EXPECT_EQ(p.Text(), "2010 2110r 2210r root");
}

// A stack that is as the last was goes another way if the open calls do.
TEST(Detours, AreAskedForEachStack) {
  Traced p;
  p.Build();
  std::vector<Frame> frames;
  p.detours.SetOpen({p.Open(p.sp, p.to_middle, 900)});
  EXPECT_EQ(p.unwinder.Unwind(p.input, frames), StackEnd::kRoot);
  p.detours.SetOpen({p.Open(p.sp, p.to_other, 900)});
  frames.clear();
  EXPECT_EQ(p.unwinder.Unwind(p.input, frames), StackEnd::kRoot);
  ASSERT_EQ(frames.size(), 3u);
  EXPECT_EQ(frames[1].address.avma.value, p.to_other);
}

TEST(Detours, SamplesInAStubAreOfItsFunction) {
  Traced p;
  p.detours.SetOpen({p.Open(p.sp, p.to_middle, 900)});
  const std::string expected = "2000 2110r 2210r root";
  for (const uint64_t offset : {0, 26, 32, 38}) {  // the place is at sp
    p.SetPc(kStub + offset);
    EXPECT_EQ(p.Text(), expected) << offset;
  }
  p.SetPc(kStub + 39);
  EXPECT_EQ(p.Text(), "2001 2110r 2210r root");
  // Where it is not entered, or has been left, the true return address stands there.
  p.Word(0, p.to_other);
  p.SetPc(kStub);
  EXPECT_EQ(p.Text(), "2000 2310r 2210r root");
  p.Stack({kNumber, p.At(kBack), 1, 2, 3, 4, p.to_root, 5});
  p.detours.SetOpen({p.Open(p.WordAt(1), p.to_middle, 900)});
  for (const uint64_t offset : {5, 11, 33}) {
    p.SetPc(kStub + offset);
    EXPECT_EQ(p.Text(), expected) << offset;
  }
  p.Stack({1, 2, 3, 4, p.to_root, 5});
  p.detours.SetOpen({p.Open(p.sp - 8, p.to_middle, 900)});
  for (const uint64_t offset : {16, 21}) {
    p.SetPc(kStub + offset);
    EXPECT_EQ(p.Text(), expected) << offset;
  }
}

// An inner call: the function returns to the stub, which has called it and returns to the caller.
TEST(Detours, AStubThatCallsItsFunctionIsNoFrame) {
  constexpr uint8_t kOuter = 50;
  Traced p;
  Detour stub = p.StubOf(kStub, 0x2000);
  stub.rows.push_back(
      {.kind = Kind::kPlace, .after_call = false, .offset = kOuter, .sp = 8, .code = 0});
  p.detours.SetStubs({stub});
  p.Stack({p.At(kBack), 9, p.to_middle, 1, 2, 3, 4, p.to_root, 5});
  p.detours.SetOpen({p.Open(p.sp, p.At(kStub + kOuter), 900)});
  EXPECT_EQ(p.Text(), "2010 2110r 2210r root");
  p.detours.SetOpen({});
  EXPECT_EQ(p.Text(), "2010 2110r 2210r root");
  // It has returned.
  p.SetPc(kStub + kOuter);
  p.Stack({9, p.to_middle, 1, 2, 3, 4, p.to_root, 5});
  EXPECT_EQ(p.Text(), "2000 2110r 2210r root");
}

TEST(Detours, TheAgentIsCalledByTheFunctionThatItRecords) {
  Traced p;
  p.SetPc(kAgent + 0x10);
  p.detours.SetOpen({});
  // enter: six registers, the stub, the number, the place.
  p.Stack({1, 2, 3, 4, 5, 6, p.At(kStub + 11), kNumber, p.to_middle, 1, 2, 3, 4, p.to_root, 5});
  EXPECT_EQ(p.Text(), "a810 2001r 2110r 2210r root");
  // What was left there by another call is passed by.
  p.Word(2, p.At(kStub + 11));
  EXPECT_EQ(p.Text(), "a810 2001r 2110r 2210r root");
  // leave
  p.detours.SetOpen({p.Open(p.WordAt(7), p.to_middle, 900)});
  p.Stack({1, 2, 3, 4, 5, 6, p.At(kStub + 32), p.At(kBack), 1, 2, 3, 4, p.to_root, 5});
  EXPECT_EQ(p.Text(), "a810 2001r 2110r 2210r root");
  p.Stack({1, 2, 3});
  EXPECT_EQ(p.Text(), "a810 traced return address");
}

}  // namespace
}  // namespace stackreel::unwind
