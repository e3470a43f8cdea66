#include "x86/function_flow.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "base/byte_writer.h"

namespace stackreel::x86 {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr Svma kStart(0x401000);
constexpr Svma kTable(0x402000);

// Reads one piece of read-only data at kTable.
LoadedBytes DataAtTable(const Bytes& data) {
  return [&data](Svma svma) {
    if (svma < kTable || svma - kTable > data.size()) return ByteView();
    return ByteView(data).subspan(svma - kTable);
  };
}

// Code with 32-bit displacements to svmas.
class Code {
 public:
  Code& Put(std::initializer_list<uint8_t> bytes) {
    bytes_.insert(bytes_.end(), bytes);
    return *this;
  }
  Code& PutDisplacement(Svma target) {
    const Svma end = kStart + bytes_.size() + 4;
    for (int i = 0; i < 4; ++i) {
      bytes_.push_back(static_cast<uint8_t>((target.value - end.value) >> (8 * i)));
    }
    return *this;
  }
  [[nodiscard]] const Bytes& bytes() const { return bytes_; }

 private:
  Bytes bytes_;
};

Bytes OffsetTable(std::initializer_list<Svma> targets) {
  ByteWriter table(Endian::kLittle);
  for (const Svma target : targets) table.U32(static_cast<uint32_t>(target.value - kTable.value));
  return table.Take();
}

std::vector<Svma> TargetsFrom(const FunctionFlow& flow, uint32_t from) {
  std::vector<Svma> targets;
  for (const Branch& branch : flow.branches) {
    if (branch.from == from) targets.push_back(branch.target);
  }
  return targets;
}

TEST(ReadFunctionFlow, ListsInstructionsAndDirectBranches) {
  // test edi,edi; je +3; xor eax,eax; ret; call -5; jmp start
  const Bytes code = {0x85, 0xff, 0x74, 0x03, 0x31, 0xc0, 0xc3,
                      0xe8, 0xfb, 0xff, 0xff, 0xff, 0xeb, 0xf2};
  const FunctionFlow flow = ReadFunctionFlow(kStart, code, DataAtTable({}));
  EXPECT_EQ(flow.instructions, (std::vector<uint32_t>{0, 2, 4, 6, 7, 12}));
  EXPECT_EQ(flow.branches, (std::vector<Branch>{{2, kStart + 7}, {7, kStart + 7}, {12, kStart}}));
  EXPECT_EQ(flow.decoded, code.size());
  EXPECT_TRUE(flow.unresolved.empty());
}

TEST(ReadFunctionFlow, StopsWhereNothingCanBeDecoded) {
  const FunctionFlow flow =
      ReadFunctionFlow(kStart, Bytes{0x90, 0xc3, 0x06, 0x06}, DataAtTable({}));
  EXPECT_EQ(flow.decoded, 2U);
  EXPECT_EQ(flow.instructions.size(), 2U);
}

// lea table(%rip), %rdx; movslq (%rdx,%rax,4), %rax; add %rdx, %rax; [notrack] jmp *%rax
Code OffsetsSwitch(bool notrack) {
  Code code;
  code.Put({0x83, 0xff, 0x02, 0x77, 0x20});  // cmp $2, %edi; ja
  code.Put({0x48, 0x8d, 0x15}).PutDisplacement(kTable);
  code.Put({0x89, 0xf8, 0x48, 0x63, 0x04, 0x82, 0x48, 0x01, 0xd0});
  if (notrack) code.Put({0x3e});
  code.Put({0xff, 0xe0});
  while (code.bytes().size() < 0x40) code.Put({0x90});
  return code;
}

TEST(ReadFunctionFlow, FollowsTablesOfOffsets) {
  for (const bool notrack : {false, true}) {
    SCOPED_TRACE(notrack);
    const Code code = OffsetsSwitch(notrack);
    // The third goes to a cold part; a fourth would be inside, but the comparison says three.
    const Bytes table = OffsetTable({kStart + 0x30, kStart + 2, Svma(0x400100), kStart + 3});
    const FunctionFlow flow = ReadFunctionFlow(kStart, code.bytes(), DataAtTable(table));
    ASSERT_EQ(flow.tables.size(), 1U);
    EXPECT_EQ(flow.tables[0].table, kTable);
    EXPECT_EQ(flow.tables[0].entries, 3U);
    EXPECT_TRUE(flow.tables[0].is_bounded);
    EXPECT_EQ(TargetsFrom(flow, flow.tables[0].jump),
              (std::vector<Svma>{kStart + 0x30, kStart + 2}));
    EXPECT_EQ(flow.EnteredInside(kStart, kStart + 5), kStart + 2);
    EXPECT_TRUE(flow.unresolved.empty());
  }
}

TEST(ReadFunctionFlow, ReadsTablesWithoutABoundUntilTheyLeaveTheFunction) {
  Code code;
  code.Put({0x48, 0x8d, 0x15}).PutDisplacement(kTable);
  code.Put({0x48, 0x63, 0x04, 0x82, 0x48, 0x01, 0xd0, 0xff, 0xe0, 0x90, 0x90, 0x90});
  const Bytes table = OffsetTable({kStart + 16, kStart + 17, Svma(0x500000), kStart + 3});
  const FunctionFlow flow = ReadFunctionFlow(kStart, code.bytes(), DataAtTable(table));
  ASSERT_EQ(flow.tables.size(), 1U);
  EXPECT_EQ(flow.tables[0].entries, 2U);
  EXPECT_FALSE(flow.tables[0].is_bounded);
}

// The table's address is made once, far before, and kept in a register or on the stack.
TEST(ReadFunctionFlow, FindsTheTableOfAFarLea) {
  for (const bool spilled : {false, true}) {
    SCOPED_TRACE(spilled);
    Code code;
    code.Put({0x4c, 0x8d, 0x3d}).PutDisplacement(kTable);  // lea table(%rip), %r15
    for (int i = 0; i < 100; ++i) code.Put({0x90});
    if (spilled) {
      // movslq (%rcx,%rax,4), %rax; add %rcx, %rax
      code.Put({0x48, 0x63, 0x04, 0x81, 0x48, 0x01, 0xc8});
    } else {
      code.Put({0x49, 0x63, 0x04, 0x87, 0x4c, 0x01, 0xf8});
    }
    code.Put({0xff, 0xe0});
    const Bytes table = OffsetTable({kStart + 1, kStart + 20});
    const FunctionFlow flow = ReadFunctionFlow(kStart, code.bytes(), DataAtTable(table));
    ASSERT_EQ(flow.tables.size(), 1U);
    EXPECT_EQ(flow.tables[0].entries, 2U);
    EXPECT_TRUE(flow.unresolved.empty());
  }
}

TEST(ReadFunctionFlow, ReadsATableOfSeveralJumpsOnce) {
  Code code;
  code.Put({0x48, 0x8d, 0x15}).PutDisplacement(kTable);
  for (int i = 0; i < 2; ++i) code.Put({0x48, 0x63, 0x04, 0x82, 0x48, 0x01, 0xd0, 0xff, 0xe0});
  const Bytes table = OffsetTable({kStart + 7, kStart + 16});
  const FunctionFlow flow = ReadFunctionFlow(kStart, code.bytes(), DataAtTable(table));
  EXPECT_EQ(flow.tables.size(), 2U);
  EXPECT_EQ(flow.branches.size(), 2U);
  EXPECT_TRUE(flow.unresolved.empty());
}

// gcc -O0: lea 0(,%rax,4), %rdx; lea table, %rax; mov (%rdx,%rax), %eax; cltq; lea table, %rdx;
// add %rdx, %rax; jmp *%rax
TEST(ReadFunctionFlow, FollowsUnoptimisedTablesOfOffsets) {
  Code code;
  code.Put({0x48, 0x8d, 0x14, 0x85, 0, 0, 0, 0});
  code.Put({0x48, 0x8d, 0x05}).PutDisplacement(kTable);
  code.Put({0x8b, 0x04, 0x02, 0x48, 0x98});
  code.Put({0x48, 0x8d, 0x15}).PutDisplacement(kTable);
  code.Put({0x48, 0x01, 0xd0, 0x3e, 0xff, 0xe0});
  const Bytes table = OffsetTable({kStart + 8, kStart + 15});
  const FunctionFlow flow = ReadFunctionFlow(kStart, code.bytes(), DataAtTable(table));
  ASSERT_FALSE(flow.tables.empty());
  EXPECT_EQ(flow.tables[0].entries, 2U);
  EXPECT_TRUE(flow.unresolved.empty());
}

TEST(ReadFunctionFlow, FollowsTablesOfAddresses) {
  ByteWriter writer(Endian::kLittle);
  for (const Svma target : {kStart + 3, kStart + 9, Svma(0x500000)}) writer.U64(target.value);
  const Bytes table = writer.Take();
  // notrack jmp *table(,%rdi,8)
  Bytes code = {0x3e, 0xff, 0x24, 0xfd, 0, 0x20, 0x40, 0, 0x90, 0x90, 0x90};
  FunctionFlow flow = ReadFunctionFlow(kStart, code, DataAtTable(table));
  ASSERT_EQ(flow.tables.size(), 1U);
  EXPECT_EQ(flow.tables[0].entries, 2U);
  EXPECT_EQ(TargetsFrom(flow, 0), (std::vector<Svma>{kStart + 3, kStart + 9}));
  // mov table(,%rdi,8), %rax; jmp *%rax
  code = {0x48, 0x8b, 0x04, 0xfd, 0, 0x20, 0x40, 0, 0xff, 0xe0, 0x90};
  flow = ReadFunctionFlow(kStart, code, DataAtTable(table));
  ASSERT_EQ(flow.tables.size(), 1U);
  EXPECT_EQ(flow.tables[0].jump, 8U);
}

TEST(ReadFunctionFlow, TellsTailCallsFromUnresolvedJumps) {
  // mov 0x10(%rdi), %rax; jmp *%rax
  FunctionFlow flow =
      ReadFunctionFlow(kStart, Bytes{0x48, 0x8b, 0x47, 0x10, 0xff, 0xe0}, DataAtTable({}));
  EXPECT_TRUE(flow.unresolved.empty());
  // jmp *0x18(%rax); jmp *%rsi
  flow = ReadFunctionFlow(kStart, Bytes{0xff, 0x60, 0x18, 0xff, 0xe6}, DataAtTable({}));
  EXPECT_TRUE(flow.unresolved.empty());
  EXPECT_TRUE(flow.tables.empty());
  // movslq (%rdx,%rax,4), %rax; add %rdx, %rax; jmp *%rax, and no table to be found
  const Bytes dispatch = {0x48, 0x63, 0x04, 0x82, 0x48, 0x01, 0xd0, 0xff, 0xe0};
  flow = ReadFunctionFlow(kStart, dispatch, DataAtTable({}));
  EXPECT_EQ(flow.unresolved, (std::vector<uint32_t>{7}));
}

TEST(ReadFunctionFlow, KnowsLabelsWhoseAddressIsTaken) {
  Code code;
  code.Put({0x48, 0x8d, 0x05}).PutDisplacement(kStart + 3);
  code.Put({0xff, 0xe0});
  const FunctionFlow flow = ReadFunctionFlow(kStart, code.bytes(), DataAtTable({}));
  EXPECT_EQ(flow.taken, (std::vector<Svma>{kStart + 3}));
  EXPECT_EQ(flow.EnteredInside(kStart, kStart + 5), kStart + 3);
}

TEST(FunctionFlow, LeavesOutWhatBranchesFromWithin) {
  FunctionFlow flow;
  flow.start = kStart;
  flow.branches = {{4, kStart + 2}, {20, kStart + 8}};
  EXPECT_FALSE(flow.EnteredInside(kStart, kStart + 5));
  EXPECT_EQ(flow.EnteredInside(kStart, kStart + 4), kStart + 2);
  EXPECT_EQ(flow.EnteredInside(kStart + 5, kStart + 10), kStart + 8);
  EXPECT_FALSE(flow.EnteredInside(kStart + 8, kStart + 10));  // at its beginning
}

}  // namespace
}  // namespace stackreel::x86
