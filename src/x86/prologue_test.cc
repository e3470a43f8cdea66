#include "x86/prologue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "x86/emit.h"

namespace stackreel::x86 {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr Svma kEntry(0x1010);

std::expected<Site, SiteError> Choose(const Bytes& code, const FunctionSurroundings& around = {},
                                      SiteOptions options = {}) {
  const FunctionFlow flow = ReadFunctionFlow(kEntry, code, [](Svma) { return ByteView(); });
  return ChooseSite(code, flow, around, options);
}

// A function's code behind `first`.
Bytes With(Bytes first, std::initializer_list<uint8_t> rest = {0x48, 0x83, 0xec, 0x18, 0x31, 0xc0,
                                                               0x48, 0x83, 0xc4, 0x18, 0xc3}) {
  first.insert(first.end(), rest);
  return first;
}
const Bytes kEndbr64 = {0xf3, 0x0f, 0x1e, 0xfa};
const Bytes kNop5 = {0x0f, 0x1f, 0x44, 0x00, 0x00};

TEST(ChooseSite, TakesANopOfFiveBytes) {
  auto site = Choose(With(kNop5));
  ASSERT_TRUE(site);
  EXPECT_EQ(site->kind, SiteKind::kNop);
  EXPECT_EQ(site->address, kEntry);
  EXPECT_EQ(site->length, 5);
}

// endbr64 stays where it is, and what the compiler left is behind it.
TEST(ChooseSite, LooksBehindEndbr64) {
  Bytes code = kEndbr64;
  code.insert(code.end(), kNop5.begin(), kNop5.end());
  auto site = Choose(With(code));
  ASSERT_TRUE(site);
  EXPECT_EQ(site->kind, SiteKind::kNop);
  EXPECT_EQ(site->address, kEntry + 4);
  site = Choose(With(kEndbr64));
  EXPECT_EQ(site->kind, SiteKind::kJump);
  EXPECT_EQ(site->address, kEntry + 4);
  EXPECT_EQ(site->piece_length, 6);
  EXPECT_FALSE(site->covers_endbr64);
}

TEST(ChooseSite, CoversEndbr64OnlyIfThereIsNoOtherWay) {
  const Bytes code = With(kEndbr64, {0x31, 0xc0, 0xc3});
  auto site = Choose(code);
  ASSERT_TRUE(site);
  EXPECT_EQ(site->kind, SiteKind::kJump);
  EXPECT_EQ(site->address, kEntry);
  EXPECT_TRUE(site->covers_endbr64);
  site = Choose(code, {}, {.has_branch_tracking = true});
  EXPECT_EQ(site->kind, SiteKind::kTrap);
  EXPECT_EQ(site->address, kEntry + 4);
}

// gcc's -fpatchable-function-entry writes single bytes, between which a thread can be.
TEST(ChooseSite, TakesARunOfNops) {
  const auto site = Choose(With({0x90, 0x90, 0x90, 0x90, 0x90}));
  ASSERT_TRUE(site);
  EXPECT_EQ(site->kind, SiteKind::kNops);
  EXPECT_EQ(site->piece_length, 5);
  EXPECT_EQ(Choose(With({0x90, 0x90, 0x90, 0x90}))->kind, SiteKind::kJump);
  EXPECT_EQ(Choose(With({0x90, 0x90, 0x66, 0x0f, 0x1f, 0x44, 0, 0}))->piece_length, 8);
}

TEST(ChooseSite, TakesListedNopsThatAreNotAtTheEntry) {
  const Bytes code = With({0x55, 0x48, 0x89, 0xe5, 0x0f, 0x1f, 0x44, 0, 0});
  const std::vector<Svma> listed = {kEntry - 0x10, kEntry + 4, kEntry + 0x100};
  FunctionSurroundings around;
  around.patchable_entries = listed;
  const auto site = Choose(code, around);
  EXPECT_EQ(site->kind, SiteKind::kNop);
  EXPECT_EQ(site->address, kEntry + 4);
  EXPECT_EQ(Choose(code)->kind, SiteKind::kJump);
}

TEST(ChooseSite, TakesCallsOfProfilingFunctions) {
  // call +0x100 right at the entry: __fentry__
  const std::vector<Svma> functions = {Svma(0x9999), kEntry + 5 + 0x100};
  FunctionSurroundings around;
  around.profiling_functions = functions;
  const Bytes fentry = With({0xe8, 0, 1, 0, 0});
  auto site = Choose(fentry, around);
  EXPECT_EQ(site->kind, SiteKind::kCall);
  EXPECT_EQ(site->address, kEntry);
  EXPECT_EQ(Choose(fentry)->kind, SiteKind::kJump);  // some other function
  // push rbp; mov rbp, rsp; call [rip+0x100]: mcount by way of the GOT
  const std::vector<Svma> slots = {kEntry + 10 + 0x100};
  around.profiling_slots = slots;
  site = Choose(With({0x55, 0x48, 0x89, 0xe5, 0xff, 0x15, 0, 1, 0, 0}), around);
  EXPECT_EQ(site->kind, SiteKind::kCall);
  EXPECT_EQ(site->address, kEntry + 4);
  EXPECT_EQ(site->length, 6);
}

TEST(ChooseSite, TakesSleds) {
  const Bytes code = With({0xeb, 0x09, 0x66, 0x0f, 0x1f, 0x84, 0, 0, 2, 0, 0});
  std::vector<Sled> sleds = {{kEntry + 20, kEntry, SledKind::kExit, true, 2},
                             {kEntry, kEntry, SledKind::kEntry, true, 2}};
  std::ranges::sort(sleds, {}, &Sled::address);
  FunctionSurroundings around;
  around.sleds = sleds;
  const auto site = Choose(code, around);
  EXPECT_EQ(site->kind, SiteKind::kSled);
  EXPECT_EQ(site->length, 11);
  EXPECT_EQ(Choose(code)->kind, SiteKind::kJump);
  // Listed, but these are not its bytes.
  EXPECT_EQ(Choose(With({0x55}), around)->kind, SiteKind::kJump);
}

TEST(ChooseSite, MovesOrdinaryInstructions) {
  const auto site = Choose(With({0x55, 0x48, 0x89, 0xe5}));
  ASSERT_TRUE(site);
  EXPECT_EQ(site->kind, SiteKind::kJump);
  EXPECT_EQ(site->length, 5);
  EXPECT_EQ(site->piece_length, 8);
  EXPECT_FALSE(site->is_loop_head);
}

// push; inc; dec; jne back behind push, from outside the piece
const Bytes kJumpBack = {0x53, 0xff, 0xc0, 0xff, 0xc9, 0x90, 0x75, 0xf9, 0x5b, 0xc3};

TEST(ChooseSite, DoesNotJumpOverWhatItsOwnFunctionJumpsTo) {
  const auto site = Choose(kJumpBack);
  ASSERT_TRUE(site);
  EXPECT_EQ(site->kind, SiteKind::kTrap);
  EXPECT_EQ(site->piece_length, 1);
  EXPECT_EQ(site->not_a_jump, SiteRefusal::kBranchIntoSite);
  const auto refused = Choose(kJumpBack, {}, {.allow_trap = false});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason, SiteRefusal::kBranchIntoSite);
}

TEST(ChooseSite, JumpsOverALoopThatIsMovedWhole) {
  // inc eax; dec ecx; jne to dec; ret …
  EXPECT_EQ(Choose({0xff, 0xc0, 0xff, 0xc9, 0x75, 0xfc, 0xc3, 0x90})->kind, SiteKind::kJump);
}

TEST(ChooseSite, TellsALoopHead) {
  // dec ecx; lea eax, [rax+rcx]; test ecx, ecx; jne start; ret
  const auto site = Choose({0xff, 0xc9, 0x8d, 0x04, 0x08, 0x85, 0xc9, 0x75, 0xf7, 0xc3});
  EXPECT_EQ(site->kind, SiteKind::kJump);
  EXPECT_TRUE(site->is_loop_head);
}

TEST(ChooseSite, ACallOfItselfIsNoLoop) {
  // sub rsp, 8; test ecx, ecx; call start; add rsp, 8; ret
  const auto site = Choose({0x48, 0x83, 0xec, 0x08, 0x85, 0xc9, 0xe8, 0xf5, 0xff, 0xff, 0xff, 0x48,
                            0x83, 0xc4, 0x08, 0xc3});
  EXPECT_EQ(site->kind, SiteKind::kJump);
  EXPECT_FALSE(site->is_loop_head);
}

TEST(ChooseSite, DoesNotJumpOverWhatAnotherFunctionJumpsTo) {
  const Bytes code = With({0x55, 0x48, 0x89, 0xe5});
  const std::vector<CodeRange> ranges = {{kEntry, code}};
  FunctionSurroundings around;
  for (const uint64_t offset : {1U, 4U}) {
    BranchTargets targets(ranges);
    targets.Add(kEntry + offset);
    around.targets = &targets;
    EXPECT_EQ(Choose(code, around)->kind, SiteKind::kTrap) << offset;
  }
  for (const uint64_t offset : {0U, 5U}) {
    BranchTargets targets(ranges);
    targets.Add(kEntry + offset);
    around.targets = &targets;
    EXPECT_EQ(Choose(code, around)->kind, SiteKind::kJump) << offset;
  }
  // Nor over a nop that somebody jumps into.
  BranchTargets targets(ranges);
  targets.Add(kEntry + 3);
  around.targets = &targets;
  EXPECT_NE(Choose(With(kNop5), around)->kind, SiteKind::kNop);
}

TEST(ChooseSite, JumpsByWayOfThePaddingBefore) {
  FunctionSurroundings around;
  const Bytes nops(9, 0x90);
  around.before = nops;
  // The jump back goes behind the first two bytes.
  const Bytes code = {0xff, 0xc0, 0xff, 0xc9, 0x90, 0x75, 0xfb, 0xc3};
  const auto site = Choose(code, around);
  ASSERT_TRUE(site);
  EXPECT_EQ(site->kind, SiteKind::kShortJump);
  EXPECT_EQ(site->padding, kEntry - 5);
  EXPECT_EQ(site->length, 2);
  EXPECT_EQ(site->piece_length, 2);
  EXPECT_TRUE(ShortJump(Avma(site->address.value), Avma(site->padding.value)));
  // Too little of it (the function before may need 4 bytes of it itself), or no padding, or
  // somebody comes there, or an instruction of one byte first.
  around.before = ByteView(nops).first(8);
  EXPECT_EQ(Choose(code, around)->kind, SiteKind::kTrap);
  const Bytes code_before = {0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xc3};
  around.before = code_before;
  EXPECT_EQ(Choose(code, around)->kind, SiteKind::kTrap);
  around.before = nops;
  EXPECT_EQ(Choose(kJumpBack, around)->kind, SiteKind::kTrap);
  const std::vector<CodeRange> ranges = {{kEntry - 9, nops}};
  BranchTargets targets(ranges);
  targets.Add(kEntry - 2);
  around.targets = &targets;
  EXPECT_EQ(Choose(code, around)->kind, SiteKind::kTrap);
}

TEST(ChooseSite, OverwritesOnlyPaddingBehindAShortFunction) {
  const Bytes ret = {0xc3};
  EXPECT_EQ(Choose(ret)->kind, SiteKind::kTrap);
  EXPECT_EQ(Choose(ret)->not_a_jump, SiteRefusal::kTooShort);
  FunctionSurroundings around;
  const Bytes padding = {0x66, 0x90, 0x0f, 0x1f, 0x00};
  around.after = padding;
  auto site = Choose(ret, around);
  EXPECT_EQ(site->kind, SiteKind::kJump);
  EXPECT_EQ(site->length, 5);
  EXPECT_EQ(site->piece_length, 1);
  // Padding that does not suffice, or is code.
  around.after = ByteView(padding).first(2);
  EXPECT_EQ(Choose(ret, around)->kind, SiteKind::kTrap);
  const Bytes code = {0x90, 0x90, 0x90, 0x90, 0xc3};
  around.after = code;
  EXPECT_EQ(Choose(ret, around)->kind, SiteKind::kTrap);
  // A function that runs on into what looks like padding.
  around.after = padding;
  EXPECT_EQ(Choose({0x31, 0xc0}, around)->kind, SiteKind::kTrap);
}

// The jump itself would be moved, but what its table leads to would not.
TEST(ChooseSite, DoesNotJumpOverWhatATableLeadsTo) {
  // inc edi; jmp *0x2000(,%rdi,8): the table's only entry is the jump
  const Bytes code = With({0xff, 0xc7, 0xff, 0x24, 0xfd, 0, 0x20, 0, 0});
  Bytes table(8);
  StoreUnaligned(table.data(), kEntry.value + 2, Endian::kLittle);
  const auto loaded = [&](Svma svma) {
    return svma == Svma(0x2000) ? ByteView(table) : ByteView();
  };
  const FunctionFlow flow = ReadFunctionFlow(kEntry, code, loaded);
  const auto site = ChooseSite(code, flow, {});
  EXPECT_EQ(site->kind, SiteKind::kTrap);
  EXPECT_EQ(site->not_a_jump, SiteRefusal::kBranchIntoSite);
}

TEST(ChooseSite, TrustsNoUnresolvedJump) {
  // movslq (%rdx,%rax,4), %rax; add %rdx, %rax; jmp *%rax
  const auto site = Choose({0x48, 0x63, 0x04, 0x82, 0x48, 0x01, 0xd0, 0xff, 0xe0});
  EXPECT_EQ(site->kind, SiteKind::kTrap);
  EXPECT_EQ(site->not_a_jump, SiteRefusal::kUnresolvedJump);
}

TEST(ChooseSite, TrustsNoFunctionItCannotDecode) {
  const auto site = Choose(With({0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x20}, {0x06, 0xc3}));
  EXPECT_EQ(site->kind, SiteKind::kTrap);
  EXPECT_EQ(site->not_a_jump, SiteRefusal::kUndecodable);
}

TEST(ChooseSite, RefusesWithAReason) {
  EXPECT_EQ(Choose({}).error().reason, SiteRefusal::kEmpty);
  EXPECT_EQ(Choose({0x06}).error().reason, SiteRefusal::kUndecodable);
  const auto trap = Choose({0xcc, 0xc3});
  ASSERT_FALSE(trap);
  EXPECT_EQ(trap.error().reason, SiteRefusal::kCannotRelocate);
  EXPECT_EQ(trap.error().relocate, RelocateRefusal::kCannotRunElsewhere);
  // mov $15, %rax; syscall: __restore_rt
  EXPECT_EQ(Choose({0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05}).error().reason,
            SiteRefusal::kReturnsFromSignal);
  const Bytes call = With({0xe8, 0, 1, 0, 0});
  EXPECT_EQ(Choose(call)->kind, SiteKind::kJump);
  EXPECT_EQ(Choose(call, {}, {.has_shadow_stack = true}).error().relocate,
            RelocateRefusal::kShadowStack);
}

}  // namespace
}  // namespace stackreel::x86
