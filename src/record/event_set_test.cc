#include "record/event_set.h"

#include <gtest/gtest.h>

#include "record/event_list.h"

namespace stackreel::record {
namespace {

using perfdata::Attr;

std::vector<perfdata::Event> Configure(const std::vector<std::string>& names,
                                       const EventSettings& settings) {
  std::vector<perfdata::Event> parsed;
  parsed.reserve(names.size());
  for (const std::string& name : names) parsed.push_back(ParseEvent(name).value());
  return ConfigureEvents({parsed, {}}, settings).events;
}

TEST(ConfigureEvents, TheFirstEventTracksAndAllHaveTheirIdAtOnePlace) {
  EventSettings settings;
  settings.frequency = 997;
  const auto events = Configure({"cycles", "cs"}, settings);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_TRUE(events[0].attr.Has(perfdata::kAttrMmap2));
  EXPECT_TRUE(events[0].attr.Has(perfdata::kAttrCommExec));
  EXPECT_FALSE(events[1].attr.Has(perfdata::kAttrMmap2));
  for (const auto& event : events) {
    EXPECT_NE(event.attr.sample_type & perfdata::kSampleIdentifier, 0u);
    EXPECT_TRUE(event.attr.sample_id_all());
    EXPECT_TRUE(event.attr.Has(perfdata::kAttrDisabled));
    EXPECT_TRUE(event.attr.Has(perfdata::kAttrFreq));
    EXPECT_EQ(event.attr.sample_period_or_freq, 997u);
    EXPECT_EQ(event.attr.sample_stack_user, 65528u);
  }
}

TEST(ConfigureEvents, ADelayPutsTrackingIntoAnEventThatIsOn) {
  EventSettings settings;
  settings.frequency = 99;
  settings.tracking_apart = true;
  const auto events = Configure({"cycles"}, settings);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_FALSE(events[0].attr.Has(perfdata::kAttrMmap2));
  EXPECT_TRUE(events[1].attr.Has(perfdata::kAttrMmap2));
  EXPECT_FALSE(events[1].attr.Has(perfdata::kAttrDisabled));
  EXPECT_EQ(events[1].attr.sample_type & perfdata::kSampleStackUser, 0u);
}

TEST(ConfigureEvents, RatesAreTheEventsOwnFirst) {
  EventSettings settings;
  settings.frequency = 99;
  auto tracepoint = ParseEvent("cycles").value();
  tracepoint.attr.type = perfdata::kTypeTracepoint;
  auto own = ParseEvent("cycles").value();
  own.attr.sample_period_or_freq = 12345;
  const auto events = ConfigureEvents({{tracepoint, own}, {}}, settings).events;
  EXPECT_EQ(events[0].attr.sample_period_or_freq, 1u);
  EXPECT_FALSE(events[0].attr.Has(perfdata::kAttrFreq));
  EXPECT_EQ(events[1].attr.sample_period_or_freq, 12345u);
  settings.frequency = 0;
  settings.period = 1000;
  EXPECT_EQ(Configure({"cycles"}, settings)[0].attr.sample_period_or_freq, 1000u);
}

TEST(ConfigureEvents, UserAndKernelOnly) {
  EventSettings settings;
  settings.frequency = 99;
  settings.all_user = true;
  EXPECT_TRUE(Configure({"cycles"}, settings)[0].attr.Has(perfdata::kAttrExcludeKernel));
  settings.all_user = false;
  settings.all_kernel = true;
  EXPECT_TRUE(Configure({"cycles"}, settings)[0].attr.Has(perfdata::kAttrExcludeUser));
}

TEST(ConfigureEvents, RecordsThatAreAskedForComeWithTheTrackingEventOnly) {
  RecordOptions options;
  options.pids = {1};
  EventSettings settings = SettingsOf(options);
  EXPECT_TRUE(settings.tracking_apart) << "on before the others are enabled";
  settings.namespaces = settings.cgroups = settings.switches = true;
  const auto events = Configure({"cpu-clock"}, settings);
  ASSERT_EQ(events.size(), 2u);
  for (const uint64_t flag :
       {perfdata::kAttrNamespaces, perfdata::kAttrCgroup, perfdata::kAttrContextSwitch}) {
    EXPECT_EQ(events[0].attr.flags & flag, 0u);
    EXPECT_NE(events[1].attr.flags & flag, 0u);
  }
  EXPECT_FALSE(events[1].attr.Has(perfdata::kAttrDisabled));
  EXPECT_NE(events[0].attr.sample_type & perfdata::kSampleCgroup, 0u);
  options.pids.clear();
  options.command = {"true"};
  EXPECT_FALSE(SettingsOf(options).tracking_apart);
}

TEST(ConfigureEvents, MasksComeByRecordsOrInEverySampleOrNotAtAll) {
  const auto asked = [](os::MaskRoute route) {
    RecordOptions options;
    options.pids = {1};
    EventSettings settings = SettingsOf(options);
    settings.masks = route;
    const auto events = Configure({"cpu-clock"}, settings);
    std::string out;
    for (const perfdata::Event& event : events) {
      out += event.attr.Has(perfdata::kAttrPtrAuth) ? "record " : "";
      out += (event.attr.sample_type & perfdata::kSampleArch1) != 0 ? "field " : "";
      out += "| ";
    }
    return out;
  };
  EXPECT_EQ(asked(os::MaskRoute::kCpu), "| | ");
  EXPECT_EQ(asked(os::MaskRoute::kRecords), "| record | ") << "nothing in the samples";
  EXPECT_EQ(asked(os::MaskRoute::kSamples), "field | field | ") << "one layout for all";
}

EventList ConfigureList(const std::string& text, const EventSettings& settings) {
  return ConfigureEvents(ParseEventList(EventFolders(), {text}).value(), settings);
}

TEST(ConfigureEvents, OfAGroupOnlyTheLeaderIsSwitched) {
  EventSettings settings;
  settings.frequency = 99;
  settings.enable_on_exec = true;
  const EventList list = ConfigureList("{cpu-clock,faults},cs", settings);
  ASSERT_EQ(list.events.size(), 3u);
  for (const size_t own : {0, 2}) {
    EXPECT_TRUE(list.events[own].attr.Has(perfdata::kAttrDisabled));
    EXPECT_TRUE(list.events[own].attr.Has(perfdata::kAttrEnableOnExec));
  }
  EXPECT_FALSE(list.events[1].attr.Has(perfdata::kAttrDisabled));
  EXPECT_FALSE(list.events[1].attr.Has(perfdata::kAttrEnableOnExec));
  for (const auto& event : list.events) {
    EXPECT_TRUE(event.attr.Has(perfdata::kAttrInherit));
    EXPECT_TRUE(event.attr.Has(perfdata::kAttrFreq));
    EXPECT_EQ(event.attr.read_format, perfdata::kReadId | perfdata::kReadLost);
  }
}

TEST(ConfigureEvents, LeaderSamplingCountsTheOthersInItsLayout) {
  EventSettings settings;
  settings.frequency = 99;
  settings.stack_size = 24576;
  settings.larger_stacks = {65528};
  settings.keep_user_chain = false;
  const EventList list = ConfigureList("{cpu-clock,faults}:S,cs", settings);
  ASSERT_EQ(list.events.size(), 4u);
  const Attr& leader = list.events[0].attr;
  const Attr& member = list.events[1].attr;
  for (const Attr* attr : {&leader, &member}) {
    EXPECT_EQ(attr->read_format, perfdata::kReadId | perfdata::kReadGroup | perfdata::kReadLost);
    EXPECT_FALSE(attr->Has(perfdata::kAttrInherit)) << "no group is read across tasks";
    EXPECT_EQ(attr->sample_stack_user, 65528u) << "a group has no larger stack to change to";
    EXPECT_FALSE(attr->Has(perfdata::kAttrExcludeCallchainUser));
  }
  EXPECT_EQ(leader.sample_type, member.sample_type);
  EXPECT_TRUE(leader.Has(perfdata::kAttrFreq));
  EXPECT_FALSE(member.Has(perfdata::kAttrFreq));
  EXPECT_EQ(member.sample_period_or_freq, 0u) << "it does not sample";
  EXPECT_TRUE(list.IsOnlyCounted(1));
  EXPECT_EQ(list.events[2].attr.sample_stack_user, 24576u);
  EXPECT_TRUE(list.events[2].attr.Has(perfdata::kAttrInherit));
  // What follows children is of an event that does.
  EXPECT_EQ(list.events[3].name, "dummy:u");
  EXPECT_TRUE(list.events[3].attr.Has(perfdata::kAttrMmap2));
  EXPECT_FALSE(leader.Has(perfdata::kAttrMmap2));
}

TEST(ConfigureEvents, CallGraphs) {
  EventSettings settings;
  settings.frequency = 99;
  settings.keep_user_chain = false;
  EXPECT_TRUE(Configure({"cycles"}, settings)[0].attr.Has(perfdata::kAttrExcludeCallchainUser));
  settings.call_graph = CallGraph::kFramePointer;
  EXPECT_EQ(Configure({"cycles"}, settings)[0].attr.sample_regs_user, 0u);
  settings.call_graph = CallGraph::kNone;
  EXPECT_EQ(Configure({"cycles"}, settings)[0].attr.sample_type & perfdata::kSampleCallchain, 0u);
  settings.call_graph = CallGraph::kLbr;
  EXPECT_NE(Configure({"cycles"}, settings)[0].attr.branch_sample_type, 0u);
}

TEST(ConfigureEvents, StacksGrowOnlyWhenUnwoundLiveAndNoSizeIsGiven) {
  RecordOptions options;
  EventSettings settings = SettingsOf(options);
  EXPECT_EQ(settings.stack_size, 24576u);
  EXPECT_EQ(settings.larger_stacks, (std::vector<uint32_t>{65528}));
  EXPECT_FALSE(settings.keep_user_chain);
  options.stack_size = 8192;
  settings = SettingsOf(options);
  EXPECT_EQ(settings.stack_size, 8192u);
  EXPECT_TRUE(settings.larger_stacks.empty());
  EXPECT_TRUE(settings.keep_user_chain);
  options.stack_size = 0;
  options.unwind = UnwindWhen::kLater;
  settings = SettingsOf(options);
  EXPECT_EQ(settings.stack_size, kLargestStack);
  EXPECT_TRUE(settings.larger_stacks.empty());
  options.unwind = UnwindWhen::kLive;
  options.call_graph = CallGraph::kFramePointer;
  EXPECT_TRUE(SettingsOf(options).larger_stacks.empty());
}

TEST(ChooseRingPages, AnEighthOfASecondWithinBounds) {
  constexpr uint64_t kGb = uint64_t{1} << 30;
  constexpr size_t kPage = 4096;
  EXPECT_EQ(ChooseRingPages(0, 1, 64 * kGb, kPage), (512u << 10) / kPage);
  EXPECT_EQ(ChooseRingPages(64 << 20, 1, 64 * kGb, kPage), (8u << 20) / kPage);
  EXPECT_EQ(ChooseRingPages(kGb, 2, 64 * kGb, kPage), (32u << 20) / kPage);
  // 128 CPUs share 1/32 of the memory.
  EXPECT_EQ(ChooseRingPages(kGb, 128, 64 * kGb, kPage), (16u << 20) / kPage);
  EXPECT_EQ(ChooseRingPages(kGb, 100'000, kGb, kPage), (512u << 10) / kPage);
}

}  // namespace
}  // namespace stackreel::record
