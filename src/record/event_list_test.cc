#include "record/event_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stackreel::record {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

EventList MustParse(const std::vector<std::string>& texts) {
  auto list = ParseEventList(EventFolders(), texts);
  EXPECT_TRUE(list.has_value()) << texts[0] << ": " << list.error().message;
  return list.value_or(EventList());
}

std::string ListErrorOf(const std::string& text) {
  const auto list = ParseEventList(EventFolders(), {text});
  EXPECT_FALSE(list.has_value()) << text;
  if (list) return "";
  EXPECT_EQ(list.error().kind, ErrorKind::kUsage);
  return list.error().message;
}

TEST(SplitEventList, CommasInsideTermsDoNotSplit) {
  EXPECT_THAT(*SplitEventList("cycles,cpu/event=1,umask=2/u, sched:x"),
              ElementsAre("cycles", "cpu/event=1,umask=2/u", "sched:x"));
  EXPECT_THAT(*SplitEventList("mem:0x10/8:w,cs"), ElementsAre("mem:0x10/8:w", "cs"));
  EXPECT_FALSE(SplitEventList("cycles,,cs").has_value());
  EXPECT_FALSE(SplitEventList("cpu/event=1").has_value());
}

TEST(SplitGroups, NamesMembersAndModifiers) {
  const auto items = SplitGroups("cs,mine{cycles, mem:0x10/8:w,cpu/event=1,umask=2/u}:Su,{faults}");
  ASSERT_TRUE(items.has_value()) << items.error().message;
  ASSERT_EQ(items->size(), 3u);
  EXPECT_FALSE((*items)[0].in_braces);
  EXPECT_EQ((*items)[1].group_name, "mine");
  EXPECT_EQ((*items)[1].modifiers, "Su");
  EXPECT_THAT((*items)[1].events, ElementsAre("cycles", "mem:0x10/8:w", "cpu/event=1,umask=2/u"));
  EXPECT_TRUE((*items)[2].in_braces);
  EXPECT_THAT((*items)[2].events, ElementsAre("faults"));
}

TEST(ParseEventList, RefusesWhatIsNoGroup) {
  EXPECT_THAT(ListErrorOf("{}"), HasSubstr("without events"));
  EXPECT_THAT(ListErrorOf("{ }"), HasSubstr("without events"));
  EXPECT_THAT(ListErrorOf("{cs,faults"), HasSubstr("'}' is missing"));
  EXPECT_THAT(ListErrorOf("cs,faults}"), HasSubstr("without its '{'"));
  EXPECT_THAT(ListErrorOf("}{"), HasSubstr("without its '{'"));
  EXPECT_THAT(ListErrorOf("{cs,{faults}}"), HasSubstr("cannot be in another"));
  EXPECT_THAT(ListErrorOf("{cs}{faults}"), HasSubstr("',' is missing"));
  EXPECT_THAT(ListErrorOf("cs:u{faults}"), HasSubstr("',' is missing"));
  EXPECT_THAT(ListErrorOf("{cs,,faults}"), HasSubstr("name is missing"));
  EXPECT_THAT(ListErrorOf("{cs,faults}u"), HasSubstr("only modifiers"));
  EXPECT_THAT(ListErrorOf("{cs,faults}:"), HasSubstr("only modifiers"));
  EXPECT_THAT(ListErrorOf("{cs,faults}:S:u"), HasSubstr("only modifiers"));
  EXPECT_THAT(ListErrorOf("{cs,faults}:x"), HasSubstr("no modifier"));
  EXPECT_THAT(ListErrorOf("{cs:S,faults}"), HasSubstr("behind the brace"));
  EXPECT_THAT(ListErrorOf("{cs,faults:D}"), HasSubstr("only the first"));
}

TEST(ParseEventList, GroupsAndSingleEventsMixed) {
  const EventList list = MustParse(
      {"cycles,{cs,faults},migrations,two{cpu-clock,task-clock:u,faults}", "{minor-faults}"});
  ASSERT_EQ(list.events.size(), 8u);
  ASSERT_EQ(list.groups.size(), 2u) << "one event makes no group";
  EXPECT_EQ(list.groups[0].leader, 1u);
  EXPECT_EQ(list.groups[0].members, 2u);
  EXPECT_EQ(list.groups[1].name, "two");
  EXPECT_EQ(list.groups[1].leader, 4u);
  EXPECT_EQ(list.groups[1].members, 3u);
  EXPECT_EQ(list.GroupOf(0), nullptr);
  EXPECT_EQ(list.LeaderOf(0), 0u);
  EXPECT_EQ(list.LeaderOf(2), 1u);
  EXPECT_EQ(list.LeaderOf(3), 3u);
  EXPECT_EQ(list.LeaderOf(6), 4u);
  EXPECT_EQ(list.events[5].name, "task-clock:u");
}

TEST(ParseEventList, ModifiersBehindTheBraceAreOfEachMember) {
  const EventList list = MustParse({"{cycles,faults:k}:SuD"});
  constexpr uint64_t kRings =
      perfdata::kAttrExcludeUser | perfdata::kAttrExcludeKernel | perfdata::kAttrExcludeHv;
  EXPECT_EQ(list.events[0].attr.flags & kRings,
            perfdata::kAttrExcludeKernel | perfdata::kAttrExcludeHv);
  // Added to its own, as perf does.
  EXPECT_EQ(list.events[1].attr.flags & kRings, static_cast<uint64_t>(perfdata::kAttrExcludeHv));
  EXPECT_EQ(list.events[0].name, "cycles");
  EXPECT_EQ(list.events[1].name, "faults:k");
  EXPECT_TRUE(list.events[0].attr.Has(perfdata::kAttrPinned));
  EXPECT_FALSE(list.events[1].attr.Has(perfdata::kAttrPinned)) << "the kernel refuses it";
  EXPECT_FALSE(list.IsOnlyCounted(0));
  EXPECT_TRUE(list.IsOnlyCounted(1));
  EXPECT_FALSE(MustParse({"{cycles,faults}:u"}).IsOnlyCounted(1));
  EXPECT_EQ(MustParse({"{cycles,cs}:P"}).events[0].name, "cycles:P") << "may be lowered";
}

}  // namespace
}  // namespace stackreel::record
