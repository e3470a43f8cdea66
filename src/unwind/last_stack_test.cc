// What an Unwinder remembers of the stack before must not change what comes out.
#include "unwind/last_stack.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "unwind/fake_process.h"

namespace stackreel::unwind {
namespace {

using dwarf::CfaCode;

// main at 0x2300 called from Root at 0x2200; Middle at 0x2100 calls itself, with 32 bytes of
// locals; Saves at 0x2400 keeps its caller's rbp and has its CFA from it.
struct Recursive : FakeProcess {
  Recursive() {
    Function(0x2000, 0x40);
    Function(0x2100, 0x40, CfaCode().DefCfaOffset(40));
    Function(0x2200, 0x40, CfaCode().Undefined(16));
    Function(0x2400, 0x40, CfaCode().DefCfa(6, 16).Offset(6, 2));
    SetPc(0x2010);
  }
};

// With the unwinder that has seen all stacks before, and with a new one.
void ExpectTheSame(Recursive& p, Unwinder& unwinder) {
  std::vector<Frame> remembered;
  std::vector<Frame> fresh;
  const StackEnd end = unwinder.Unwind(p.input, remembered);
  Unwinder new_one;
  EXPECT_EQ(end, new_one.Unwind(p.input, fresh));
  EXPECT_TRUE(FakeProcess::SameFrames(remembered, fresh));
}

// Stacks of one thread, each the one before with some words changed, cut or grown: what is kept of
// the last one has to be right again and again.
TEST(LastStack, AnyNextStackIsUnwoundAsIfItWereTheFirst) {
  std::mt19937 random(1);
  Recursive p;
  const uint64_t middle = p.Call(0x2110);
  const uint64_t other = p.Call(0x2120);
  const uint64_t root = p.Call(0x2210);
  const uint64_t saves = p.Call(0x2410);
  p.Stack({middle});
  p.SetFp(0);
  p.Build();
  std::vector<uint64_t> words(100);
  std::vector<uint8_t> bytes;
  Unwinder unwinder;
  const uint64_t top = p.sp + 8 * words.size();
  for (int round = 0; round < 2000; ++round) {
    const size_t changes = random() % 4;
    for (size_t i = 0; i < changes; ++i) {
      const size_t at = random() % words.size();
      const uint64_t some[] = {middle, other, root, saves, 0, 1, p.WordAt(random() % 100)};
      words[at] = some[random() % std::size(some)];
    }
    if (round % 50 == 0) {  // one that goes far
      for (size_t i = 0; i < words.size(); ++i) words[i] = i % 5 == 0 ? middle : words[i];
      words[95] = root;
    }
    const size_t from = 5 * (random() % 10);
    const size_t size = random() % 3 == 0 ? words.size() - from - random() % 20 : 100 - from;
    bytes.resize(8 * size);
    std::memcpy(bytes.data(), words.data() + from, bytes.size());
    p.input.registers.Set(x86_64::kPerfSp, top - 8 * (words.size() - from));
    p.input.registers.Set(x86_64::kPerfIp, p.At(random() % 8 == 0 ? 0x2410 : 0x2010));
    p.input.registers.Set(x86_64::kPerfBp, p.WordAt(random() % 100));
    p.input.stack = StackView(Avma(top - 8 * (words.size() - from)), bytes);
    p.input.stack_was_cut = random() % 2 == 0;
    p.input.max_frames = random() % 5 == 0 ? random() % 12 : 1024;
    ExpectTheSame(p, unwinder);
    ASSERT_FALSE(HasFailure()) << "round " << round;
  }
}

// Saves, called by Saves: where the outer one has its CFA is in the word that is changed.
TEST(LastStack, TheCallersFramePointerIsCheckedToo) {
  Recursive p;
  const uint64_t saves = p.Call(0x2410);
  const uint64_t middle = p.Call(0x2120);
  const uint64_t root = p.Call(0x2210);
  std::vector<uint64_t> words = {saves, 1,      p.WordAt(5), saves, 2, 0, root, 3,
                                 0,     middle, 4,           5,     6, 7, root, 8};
  p.Stack(words);
  p.SetFp(p.WordAt(2));
  EXPECT_EQ(p.Text(), "2010 2410r 2410r 2210r root");
  words[2] = p.WordAt(8);
  std::vector<uint8_t> bytes(8 * words.size());
  std::memcpy(bytes.data(), words.data(), bytes.size());
  p.input.stack = StackView(Avma(p.sp), bytes);
  std::vector<Frame> frames;
  p.unwinder.Unwind(p.input, frames);
  ASSERT_GE(frames.size(), 4u);
  EXPECT_EQ(frames[3].address.avma.value, middle);
  ExpectTheSame(p, p.unwinder);
}

// The same addresses, in new maps: another binary is there.
TEST(LastStack, OtherMapsAreAnotherStack) {
  Recursive p;
  p.Stack({p.Call(0x2110), 1, 2, 3, 4, p.Call(0x2110), 5, 6, 7, 8, p.Call(0x2210)});
  EXPECT_EQ(p.Text(), "2010 2110r 2110r 2210r root");
  p.known_file = false;
  EXPECT_EQ(p.Text(), "2010 no CFI");
}

}  // namespace
}  // namespace stackreel::unwind
