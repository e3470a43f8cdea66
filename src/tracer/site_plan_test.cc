#include "tracer/site_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "os/file.h"
#include "x86/emit.h"

// Functions of this very program, of known bytes.
__asm__(
    ".text\n"
    ".macro planned name\n.globl \\name\n.type \\name, @function\n.p2align 4\n\\name:\n.endm\n"
    ".macro planned_end name\n.size \\name, . - \\name\n.endm\n"
    "planned plan_ordinary\n push %rbp\n mov %rsp, %rbp\n sub $16, %rsp\n leave\n ret\n"
    "planned_end plan_ordinary\n"
    "planned plan_nop\n .byte 0x0f, 0x1f, 0x44, 0, 0\n mov %edi, %eax\n ret\nplanned_end plan_nop\n"
    "planned plan_loop\n add %rdi, %rsi\n dec %rdi\n jnz plan_loop\n mov %rsi, %rax\n ret\n"
    "planned_end plan_loop\n"
    "planned plan_framed\n push %rbp\n mov %rsp, %rbp\n push %rbx\n call mcount\n pop %rbx\n"
    " pop %rbp\n ret\nplanned_end plan_framed\n"
    "planned plan_late\n push %rbx\n call mcount\n pop %rbx\n ret\nplanned_end plan_late\n"
    // what a compiler with -pg calls
    "planned mcount\n ret\n.size mcount, . - mcount\n"
    "planned plan_bad\n .byte 0x06\n ret\nplanned_end plan_bad\n");

namespace stackreel::tracer {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kBias = 0x5000'0000;

// One room right behind the module.
class OneRoom : public Rooms {
 public:
  explicit OneRoom(Avma start) : start_(start), next_(start + agent::kRoomHeaderSize) {}
  Result<Slot> Take(uint64_t size, patch::AddressRange) override {
    if (full) return Fail(ErrorKind::kNotFound, "no room within reach");
    const Avma at = next_;
    next_ = Avma((at.value + size + 15) & ~uint64_t{15});
    taken.insert(at);
    return Slot{{at, at + size}, start_};
  }
  void GiveBack(patch::AddressRange slot) override { taken.erase(slot.start); }

  bool full = false;
  std::set<Avma> taken;

 private:
  Avma start_, next_;
};

class SitePlanTest : public ::testing::Test {
 protected:
  SitePlanTest() {
    auto file = os::MapFile("/proc/self/exe");
    InlineExecutor executor;
    if (file) {
      auto module = ModuleCode::Read(std::move(*file), nullptr, executor);
      if (module) module_ = std::move(*module);
    }
    if (module_ == nullptr) return;
    const ModuleFunction& last = module_->functions().back();
    const Avma end(kBias + last.start.value + last.code.size() + 0x10000);
    placed_ = {module_.get(), {Avma(kBias), end}, kBias};
    rooms_.emplace(end + 0x1000);
  }

  const ModuleFunction& Function(std::string_view name) const {
    const auto found = std::ranges::find(module_->functions(), name, &ModuleFunction::name);
    EXPECT_NE(found, module_->functions().end()) << name;
    return *found;
  }
  SitePlan Plan(std::vector<std::string_view> names,
                agent::StubKind kind = agent::StubKind::kCall) {
    std::vector<SiteWish> wishes;
    uint32_t id = 1;
    for (const std::string_view name : names) wishes.push_back({&Function(name), id++, kind});
    return PlanSites(placed_, wishes, {}, *rooms_);
  }

  std::unique_ptr<ModuleCode> module_;
  PlacedModule placed_;
  std::optional<OneRoom> rooms_;
};

// Where the jump at `at` leads.
Avma TargetOfJump(ByteView bytes, Avma at) {
  int32_t displacement = 0;
  std::memcpy(&displacement, bytes.data() + 1, sizeof(displacement));
  return Avma(at.value + x86::kJumpLength + static_cast<uint64_t>(int64_t{displacement}));
}

TEST_F(SitePlanTest, OrdinaryPrologueJumpsToItsStubAndIsCopied) {
  const SitePlan plan = Plan({"plan_ordinary"});
  ASSERT_THAT(plan.refused, IsEmpty());
  ASSERT_THAT(plan.sites, SizeIs(1));
  const PlannedSite& planned = plan.sites[0];
  const patch::Site& site = planned.site;
  EXPECT_EQ(site.kind, patch::SiteKind::kJump);
  EXPECT_EQ(site.function, 1U);
  EXPECT_EQ(site.address.value, Function("plan_ordinary").start.value + kBias);
  EXPECT_EQ(site.original.length, 8);  // push, mov, sub: whole instructions over 5 bytes
  EXPECT_EQ(site.patched.bytes[0], 0xe9);
  EXPECT_EQ(TargetOfJump(site.patched.view(), site.address), site.stub);
  EXPECT_EQ(site.stub, planned.slot.start);
  EXPECT_LE(planned.stub_bytes.size(), planned.slot.size());
  // Out of line stands the copy, and a jump to what follows.
  const ByteView stub = planned.stub_bytes;
  const ByteView out_of_line = stub.subspan(site.out_of_line - site.stub);
  EXPECT_TRUE(std::ranges::equal(out_of_line.first(8), site.original.view()));
  EXPECT_EQ(TargetOfJump(out_of_line.subspan(8), site.out_of_line + 8), site.end());
}

TEST_F(SitePlanTest, NopIsNotCopied) {
  const SitePlan plan = Plan({"plan_nop"});
  ASSERT_THAT(plan.sites, SizeIs(1));
  const patch::Site& site = plan.sites[0].site;
  EXPECT_EQ(site.kind, patch::SiteKind::kNop);
  EXPECT_EQ(site.map.size(), 0U);
  const ByteView stub = plan.sites[0].stub_bytes;
  EXPECT_EQ(TargetOfJump(stub.subspan(site.out_of_line - site.stub), site.out_of_line),
            site.address + 5);
}

TEST_F(SitePlanTest, FrameMadeBeforeTheSiteGetsAnotherStub) {
  const SitePlan plan = Plan({"plan_framed"});
  ASSERT_THAT(plan.refused, IsEmpty());
  ASSERT_THAT(plan.sites, SizeIs(1));
  EXPECT_EQ(plan.sites[0].stub_kind, agent::StubKind::kFramedCall);
  EXPECT_EQ(plan.sites[0].site.kind, patch::SiteKind::kCall);
}

// What a stub in the place of the compiler's call would not know is known at the entry.
TEST_F(SitePlanTest, SiteBehindAPushGivesWayToTheEntry) {
  const SitePlan plan = Plan({"plan_late"});
  EXPECT_THAT(plan.refused, IsEmpty());
  ASSERT_THAT(plan.sites, SizeIs(1));
  EXPECT_EQ(plan.sites[0].stub_kind, agent::StubKind::kCall);
  EXPECT_EQ(plan.sites[0].site.kind, patch::SiteKind::kJump);
  EXPECT_EQ(plan.sites[0].site.address.value, Function("plan_late").start.value + kBias);
  // A stub of another kind knows nothing of frames.
  const SitePlan other = Plan({"plan_framed"}, agent::StubKind::kBeforeEnd);
  ASSERT_THAT(other.sites, SizeIs(1));
  EXPECT_EQ(other.sites[0].stub_kind, agent::StubKind::kBeforeEnd);
  EXPECT_EQ(other.sites[0].site.address.value, Function("plan_framed").start.value + kBias);
}

TEST_F(SitePlanTest, RefusesWhereTheReturnAddressIsNotKnown) {
  const SitePlan plan = Plan({"plan_loop", "plan_bad"});
  EXPECT_THAT(plan.sites, IsEmpty());
  ASSERT_THAT(plan.refused, SizeIs(2));
  EXPECT_EQ(plan.refused[0].function, 1U);
  EXPECT_THAT(plan.refused[0].reason, HasSubstr("loop"));
  EXPECT_THAT(plan.refused[1].reason, HasSubstr("undecodable"));
  EXPECT_THAT(rooms_->taken, IsEmpty());
}

TEST_F(SitePlanTest, OneSiteForFunctionsThatAreTheSameCode) {
  EXPECT_THAT(Plan({"plan_ordinary", "plan_ordinary"}).sites, SizeIs(1));
}

TEST_F(SitePlanTest, SitesAscend) {
  const SitePlan plan = Plan({"plan_framed", "plan_nop", "plan_ordinary"});
  ASSERT_THAT(plan.sites, SizeIs(3));
  EXPECT_LT(plan.sites[0].site.begin(), plan.sites[1].site.begin());
  EXPECT_LT(plan.sites[1].site.begin(), plan.sites[2].site.begin());
}

TEST_F(SitePlanTest, WithoutRoomItIsRefused) {
  rooms_->full = true;
  const SitePlan plan = Plan({"plan_ordinary"});
  EXPECT_THAT(plan.sites, IsEmpty());
  ASSERT_THAT(plan.refused, SizeIs(1));
  EXPECT_THAT(plan.refused[0].reason, HasSubstr("no room"));
}

// The file of every site is 3 GB away from the room.
TEST_F(SitePlanTest, RoomOutOfReachIsRefusedAndGivenBack) {
  rooms_.emplace(Avma(placed_.range.end.value + (uint64_t{3} << 30)));
  const SitePlan plan = Plan({"plan_ordinary"});
  EXPECT_THAT(plan.sites, IsEmpty());
  EXPECT_THAT(plan.refused, SizeIs(1));
  EXPECT_THAT(rooms_->taken, IsEmpty());
}

}  // namespace
}  // namespace stackreel::tracer
