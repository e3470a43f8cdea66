// Maps that change, tasks of 32 bits, modules.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "unwind/fake_process.h"
#include "unwind/unwind.h"

namespace stackreel::unwind {
namespace {

using dwarf::CfaCode;

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
