// The traps of signal frames, one a test.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "unwind/fake_process.h"
#include "unwind/unwind.h"

namespace stackreel::unwind {
namespace {

using dwarf::CfaCode;

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

}  // namespace
}  // namespace stackreel::unwind
