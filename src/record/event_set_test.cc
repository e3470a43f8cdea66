#include "record/event_set.h"

#include <gtest/gtest.h>

#include "record/event_parse.h"

namespace stackreel::record {
namespace {

std::vector<perfdata::Event> Configure(const std::vector<std::string>& names,
                                       const EventSettings& settings) {
  std::vector<perfdata::Event> parsed;
  parsed.reserve(names.size());
  for (const std::string& name : names) parsed.push_back(ParseEvent(name).value());
  return ConfigureEvents(parsed, settings);
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
  const auto events = ConfigureEvents({tracepoint, own}, settings);
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
