#include "x86/branch_targets.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <thread>
#include <vector>

#include "x86/instruction.h"

namespace stackreel::x86 {
namespace {

using Bytes = std::vector<uint8_t>;

TEST(BranchTargets, IsASortedSet) {
  const Bytes bytes(1000);
  const std::vector<CodeRange> ranges = {{Svma(0x5000), bytes}, {Svma(0x1000), bytes}};
  BranchTargets targets(ranges);
  EXPECT_FALSE(targets.FirstIn(Svma(0), Svma(UINT64_MAX)));
  for (const uint64_t target : {0x1000U, 0x103fU, 0x1040U, 0x13e7U, 0x5001U}) {
    EXPECT_TRUE(targets.Add(Svma(target)));
    EXPECT_TRUE(targets.Contains(Svma(target)));
  }
  EXPECT_FALSE(targets.Add(Svma(0x13e8)));  // right behind a range
  EXPECT_FALSE(targets.Add(Svma(0xfff)));
  EXPECT_FALSE(targets.Contains(Svma(0x13e8)));
  EXPECT_EQ(targets.Count(), 5U);
  EXPECT_EQ(targets.FirstIn(Svma(0), Svma(UINT64_MAX)), Svma(0x1000));
  EXPECT_EQ(targets.FirstIn(Svma(0x1001), Svma(0x1040)), Svma(0x103f));
  EXPECT_FALSE(targets.FirstIn(Svma(0x1001), Svma(0x103f)));
  EXPECT_EQ(targets.FirstIn(Svma(0x1041), Svma(0x6000)), Svma(0x13e7));
  EXPECT_EQ(targets.FirstIn(Svma(0x13e8), Svma(0x6000)), Svma(0x5001));
  EXPECT_FALSE(targets.FirstIn(Svma(0x1041), Svma(0x1041)));
}

BranchTargets Find(const std::vector<CodeRange>& ranges, const std::vector<Svma>& starts = {}) {
  InlineExecutor executor;
  return FindBranchTargets(ranges, starts, executor);
}

// A cold part that jumps back into the middle of another function.
TEST(FindBranchTargets, SeesJumpsIntoAnotherFunction) {
  Bytes hot(32, 0x90);
  Bytes cold = {0x0f, 0x0b,                    // ud2
                0xe9, 0,    0,    0, 0,        // jmp hot+3
                0x0f, 0x84, 0,    0, 0, 0,     // je hot+5
                0xe8, 0,    0,    0, 0,        // call hot
                0x48, 0x8d, 0x05, 0, 0, 0, 0,  // lea hot+9(%rip), %rax
                0x75, 0xfe,                    // jne itself
                0xc7, 0xf8, 0,    0, 0, 0};    // xbegin hot+12
  const Svma hot_at(0x1000);
  const Svma cold_at(0x9000);
  for (const auto& [end, target] :
       {std::pair{7U, 3U}, {13U, 5U}, {18U, 0U}, {25U, 9U}, {33U, 12U}}) {
    StoreUnaligned(cold.data() + end - 4,
                   static_cast<int32_t>(hot_at.value + target - cold_at.value - end),
                   Endian::kLittle);
  }
  const BranchTargets targets = Find({{hot_at, hot}, {cold_at, cold}});
  for (const uint64_t target : {0U, 3U, 5U, 9U, 12U}) {
    EXPECT_TRUE(targets.Contains(hot_at + target)) << target;
  }
  EXPECT_TRUE(targets.Contains(cold_at + 25));
  EXPECT_EQ(targets.Count(), 6U);
}

// Constants among the code must not hide what begins at the next function.
TEST(FindBranchTargets, BeginsAnewAtEachFunction) {
  // Data that reads as the beginning of a 10-byte instruction, then: jmp +0
  const Bytes code = {0x48, 0xb8, 0xeb, 0x00, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90};
  EXPECT_FALSE(Find({{Svma(0x1000), code}}).Contains(Svma(0x1004)));
  EXPECT_TRUE(Find({{Svma(0x1000), code}}, {Svma(0x1000), Svma(0x1002)}).Contains(Svma(0x1004)));
}

TEST(FindBranchTargets, GoesOnBehindWhatIsNoInstruction) {
  const Bytes code = {0x06, 0x06, 0xeb, 0x00, 0x90};
  const BranchTargets targets = Find({{Svma(0x1000), code}});
  EXPECT_TRUE(targets.Contains(Svma(0x1004)));
  EXPECT_EQ(targets.undecodable_bytes(), 2U);
}

class TwoThreads : public Executor {
 public:
  [[nodiscard]] size_t concurrency() const override { return 2; }
  void ParallelFor(size_t count, const std::function<void(size_t, size_t)>& work) override {
    std::thread other([&] {
      for (size_t i = 1; i < count; i += 2) work(i, 1);
    });
    for (size_t i = 0; i < count; i += 2) work(i, 0);
    other.join();
  }
};

// Many functions in several pieces, by several threads: the same as Decode finds one by one.
TEST(FindBranchTargets, FindsWhatDecodeFinds) {
  std::mt19937 random(7);
  Bytes code;
  std::vector<Svma> starts;
  const Svma start(0x400000);
  while (code.size() < (size_t{3} << 20)) {
    if (random() % 32 == 0) starts.push_back(start + code.size());
    switch (random() % 5) {
      case 0: {
        const auto target =
            static_cast<int32_t>(random() % (3U << 20)) - static_cast<int32_t>(code.size());
        code.push_back(0xe9);
        for (int i = 0; i < 4; ++i) code.push_back(static_cast<uint8_t>(target >> (8 * i)));
        break;
      }
      case 1:
        code.insert(code.end(), {0x7c, static_cast<uint8_t>(random())});
        break;
      case 2:
        code.insert(code.end(), {0x48, 0x89, 0xe5});
        break;
      case 3:
        code.insert(code.end(), {0xc7, 0x45, 0xfc, 0xeb, 0x74, 0xe9, 0x0f});
        break;
      default:
        code.push_back(0x55);
    }
  }
  std::set<uint64_t> expected;
  for (size_t at = 0; at < code.size();) {
    const auto instruction = Decode(ByteView(code).subspan(at));
    ASSERT_TRUE(instruction);
    if (instruction->branch.size != 0) {
      const uint64_t target = TargetOf(*instruction, instruction->branch, start.value + at);
      if (target - start.value < code.size()) expected.insert(target);
    }
    at += instruction->length;
  }
  TwoThreads executor;
  const std::vector<CodeRange> ranges = {{start, code}};
  const BranchTargets targets = FindBranchTargets(ranges, starts, executor);
  EXPECT_EQ(targets.Count(), expected.size());
  for (const uint64_t target : expected) ASSERT_TRUE(targets.Contains(Svma(target)));
}

}  // namespace
}  // namespace stackreel::x86
