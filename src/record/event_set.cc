#include "record/event_set.h"

#include <errno.h>
#include <fmt/format.h>
#include <linux/perf_event.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"
#include "os/perf_refusal.h"
#include "os/proc.h"

namespace stackreel::record {

namespace {

using perfdata::Attr;
using perfdata::Event;

bool IsTracepoint(const Attr& attr) { return attr.type == perfdata::kTypeTracepoint; }
bool HasStack(const Attr& attr) { return (attr.sample_type & perfdata::kSampleStackUser) != 0; }
bool Reads(const Attr& attr) { return (attr.sample_type & perfdata::kSampleRead) != 0; }
bool IsDummy(const Attr& attr) {
  return attr.type == perfdata::kTypeSoftware && attr.config == PERF_COUNT_SW_DUMMY;
}

void SetRate(Attr& attr, const EventSettings& settings) {
  if (attr.sample_period_or_freq != 0) return;  // the event's own: pmu/…,period=…/
  if (IsDummy(attr)) {
    attr.sample_period_or_freq = 1;
  } else if (settings.period != 0) {
    attr.sample_period_or_freq = settings.period;
  } else if (IsTracepoint(attr) || attr.type == PERF_TYPE_BREAKPOINT) {
    attr.sample_period_or_freq = 1;  // each time it is passed
  } else {
    attr.sample_period_or_freq = settings.frequency;
    attr.flags |= perfdata::kAttrFreq;
  }
}

// `in_group`: has no larger stacks to change to, see EventSet::Open.
void SetCallGraph(Attr& attr, const EventSettings& settings, bool in_group) {
  const bool largest_at_once = in_group && !settings.larger_stacks.empty();
  switch (settings.call_graph) {
    case CallGraph::kNone:
      return;
    case CallGraph::kFramePointer:
      attr.sample_type |= perfdata::kSampleCallchain;
      return;
    case CallGraph::kDwarf:
      attr.sample_type |=
          perfdata::kSampleCallchain | perfdata::kSampleRegsUser | perfdata::kSampleStackUser;
      attr.sample_regs_user = UserRegisterMask();
      attr.sample_stack_user =
          largest_at_once ? settings.larger_stacks.back() : settings.stack_size;
      if (!settings.keep_user_chain && !largest_at_once)
        attr.flags |= perfdata::kAttrExcludeCallchainUser;
      return;
    case CallGraph::kLbr:
      attr.sample_type |= perfdata::kSampleCallchain | perfdata::kSampleBranchStack;
      attr.branch_sample_type = PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_CALL_STACK |
                                PERF_SAMPLE_BRANCH_NO_FLAGS | PERF_SAMPLE_BRANCH_NO_CYCLES;
      attr.flags |= perfdata::kAttrExcludeCallchainUser;
      return;
  }
}

constexpr uint64_t kSideBand =
    perfdata::kAttrMmap | perfdata::kAttrMmap2 | perfdata::kAttrComm | perfdata::kAttrCommExec |
    perfdata::kAttrTask | perfdata::kAttrKsymbol | perfdata::kAttrBpfEvent | perfdata::kAttrBuildId;
constexpr uint64_t kSampleBase = perfdata::kSampleIdentifier | perfdata::kSampleIp |
                                 perfdata::kSampleTid | perfdata::kSampleTime |
                                 perfdata::kSampleCpu | perfdata::kSamplePeriod;

// What some kernel did not know yet, newest first.
struct Newer {
  const char* what;
  uint64_t Attr::* field;
  uint64_t bits;
};
constexpr Newer kNewer[] = {
    {"counts of lost records (Linux 6.0)", &Attr::read_format, perfdata::kReadLost},
    {"build-ids in MMAP2 records (Linux 5.12)", &Attr::flags, perfdata::kAttrBuildId},
    {"kernel symbol and BPF records (Linux 5.1)", &Attr::flags,
     perfdata::kAttrKsymbol | perfdata::kAttrBpfEvent},
    {"exec in COMM records (Linux 3.16)", &Attr::flags, perfdata::kAttrCommExec},
    {"MMAP2 records (Linux 3.16)", &Attr::flags, perfdata::kAttrMmap2},
    {"leaving guests out", &Attr::flags, perfdata::kAttrExcludeGuest},
};

// ":P", the most precise there is: one step down. An explicit "ppp" is not lowered.
bool LowerPrecision(Event& event) {
  const size_t modifiers = event.name.find_last_of(":/");
  if (modifiers == std::string::npos || event.name.find('P', modifiers) == std::string::npos) {
    return false;
  }
  const uint64_t precise = (event.attr.flags & perfdata::kAttrPreciseIpMask) >> 15;
  if (precise == 0) return false;
  event.attr.flags &= ~static_cast<uint64_t>(perfdata::kAttrPreciseIpMask);
  event.attr.flags |= (precise - 1) << 15;
  return true;
}

// What an event is there for.
struct EventRole {
  bool only_tracks = false, tracks = false;       // side-band records
  bool follows = false, is_only_counted = false;  // a leader; and has no samples of its own
  bool group = false;
};

void ConfigureEvent(Attr& attr, const EventRole& role, const EventSettings& settings) {
  const bool reads = Reads(attr);
  attr.sample_type |= kSampleBase;
  if (settings.cgroups) attr.sample_type |= perfdata::kSampleCgroup;
  if (settings.masks == os::MaskRoute::kSamples) attr.sample_type |= perfdata::kSampleArch1;
  attr.read_format = perfdata::kReadId | perfdata::kReadLost;
  if (reads && role.group) attr.read_format |= perfdata::kReadGroup;
  attr.flags |= perfdata::kAttrSampleIdAll | perfdata::kAttrWatermark;
  const bool is_switched = !role.only_tracks && !role.follows;
  if (is_switched) attr.flags |= perfdata::kAttrDisabled;
  if (settings.inherit && !reads) attr.flags |= perfdata::kAttrInherit;
  if (settings.enable_on_exec && is_switched) attr.flags |= perfdata::kAttrEnableOnExec;
  if ((attr.flags & perfdata::kAttrExcludeHost) == 0) attr.flags |= perfdata::kAttrExcludeGuest;
  if (settings.all_user) attr.flags |= perfdata::kAttrExcludeKernel | perfdata::kAttrExcludeHv;
  if (settings.all_kernel) attr.flags |= perfdata::kAttrExcludeUser;
  if (settings.clockid) {
    attr.flags |= perfdata::kAttrUseClockid;
    attr.clockid = *settings.clockid;
  }
  if (role.tracks) {
    attr.flags |= kSideBand;
    if (settings.namespaces) attr.flags |= perfdata::kAttrNamespaces;
    if (settings.cgroups) attr.flags |= perfdata::kAttrCgroup;
    if (settings.switches) attr.flags |= perfdata::kAttrContextSwitch;
    if (settings.masks == os::MaskRoute::kRecords) attr.flags |= perfdata::kAttrPtrAuth;
    if (settings.data_mappings) attr.flags |= perfdata::kAttrMmapData;
  }
  if (role.is_only_counted) {
    attr.sample_period_or_freq = 0;
    attr.flags &= ~uint64_t{perfdata::kAttrFreq};
    return;
  }
  SetRate(attr, settings);
  if (role.only_tracks || IsDummy(attr)) return;
  SetCallGraph(attr, settings, role.group);
}

bool IsOnline(uint32_t cpu) {
  const auto online = os::OnlineCpus();
  return online && std::ranges::binary_search(*online, cpu);
}

size_t SystemPageSize() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }
uint64_t SystemMemory() {
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * SystemPageSize();
}

}  // namespace

uint64_t UserRegisterMask() {
#if defined(__x86_64__)
  // ax bx cx dx si di bp sp ip, r8-r15; not flags and segments (bits 9-15).
  return 0x00ff01ff;
#elif defined(__aarch64__)
  return (uint64_t{1} << 33) - 1;  // x0-x29 lr sp pc
#else
#error "which registers does this architecture have?"
#endif
}

EventSettings SettingsOf(const RecordOptions& options) {
  EventSettings settings;
  settings.call_graph = options.call_graph;
  settings.keep_user_chain = options.unwind == UnwindWhen::kLive;
  if (options.stack_size != 0) {
    settings.stack_size = options.stack_size;
  } else if (options.call_graph == CallGraph::kDwarf && options.unwind == UnwindWhen::kLive) {
    settings.stack_size = kStackSizes.front();
    settings.larger_stacks.assign(kStackSizes.begin() + 1, kStackSizes.end());
    // What does not fit will be in the larger dump. The kernel's walk along frame pointers costs
    // 0.7 µs a sample and more.
    settings.keep_user_chain = false;
  }
  settings.data_mappings =
      options.call_graph == CallGraph::kDwarf && options.unwind == UnwindWhen::kLater;
  settings.frequency = options.period != 0 ? 0 : options.frequency;
  settings.period = options.period;
  settings.clockid = options.clockid;
  settings.all_user = options.all_user;
  settings.all_kernel = options.all_kernel;
  settings.inherit = options.inherit;
  settings.namespaces = options.namespaces;
  settings.cgroups = options.cgroups;
  settings.switches = options.switches;
  settings.enable_on_exec = options.RecordsCommand() && options.delay_ms == 0;
  // What is opened on tasks that run already follows them from that moment on, not from when it
  // is enabled: a child forked in between would have neither name nor mappings.
  settings.tracking_apart = options.delay_ms != 0 || !options.RecordsCommand();
  return settings;
}

EventList ConfigureEvents(const EventList& parsed, const EventSettings& settings) {
  EventList list = parsed;
  std::vector<Event>& events = list.events;
  // The side band is of children and later threads too.
  const bool apart = settings.tracking_apart || (settings.inherit && Reads(events.front().attr));
  if (apart) {
    Event dummy;
    dummy.name = "dummy:u";
    dummy.attr.type = perfdata::kTypeSoftware;
    dummy.attr.config = PERF_COUNT_SW_DUMMY;
    dummy.attr.flags = perfdata::kAttrExcludeKernel | perfdata::kAttrExcludeHv;
    events.push_back(std::move(dummy));
  }
  const size_t tracking = apart ? events.size() - 1 : 0;
  for (size_t i = 0; i < events.size(); ++i) {
    const EventRole role = {.only_tracks = apart && i == tracking,
                            .tracks = i == tracking,
                            .follows = list.LeaderOf(i) != i,
                            .is_only_counted = list.IsOnlyCounted(i),
                            .group = list.GroupOf(i) != nullptr};
    ConfigureEvent(events[i].attr, role, settings);
  }
  // What is read with its leader has the leader's layout: a reader makes a sample of it from each
  // of the leader's.
  for (size_t i = 0; i < events.size(); ++i) {
    if (!list.IsOnlyCounted(i)) continue;
    const Attr& leader = events[list.LeaderOf(i)].attr;
    Attr& attr = events[i].attr;
    attr.sample_type = leader.sample_type;
    attr.sample_regs_user = leader.sample_regs_user;
    attr.sample_stack_user = leader.sample_stack_user;
    attr.branch_sample_type = leader.branch_sample_type;
    attr.flags |= leader.flags & perfdata::kAttrExcludeCallchainUser;
  }
  return list;
}

namespace {

// Members open, by themselves, already: what keeps them out is the group.
Status TryGroup(const EventList& list, const perfdata::EventGroup& group, int pid, int cpu) {
  const Event& leader = list.events[group.leader];
  const os::OpenAttempt opened = os::TryPerfEventOpen(leader.attr, pid, cpu, -1, 0);
  if (!opened.fd.valid()) {
    return Fail(os::ExplainOpenRefusal(os::GatherRefusal(opened.error, leader.attr, pid, cpu)));
  }
  std::vector<os::Fd> members;
  for (size_t i = group.leader + 1; i < group.leader + group.members; ++i) {
    const Event& event = list.events[i];
    os::OpenAttempt attempt = os::TryPerfEventOpen(event.attr, pid, cpu, opened.fd.get(), 0);
    if (!attempt.fd.valid()) {
      return Fail(ErrorKind::kUnsupported,
                  fmt::format("event '{}' cannot be in a group with '{}' here: {}; give them "
                              "outside of braces",
                              event.name, leader.name, strerror(attempt.error)));
    }
    members.push_back(std::move(attempt.fd));
  }
  return {};
}

}  // namespace

Status FitToKernel(EventList& list, int pid, int cpu,
                   const std::function<void(const std::string&)>& notice) {
  std::vector<Event>& events = list.events;
  size_t next_newer = 0;
  std::vector<const char*> left_out;
  for (size_t i = 0; i < events.size();) {
    const os::OpenAttempt attempt = os::TryPerfEventOpen(events[i].attr, pid, cpu, -1, 0);
    if (attempt.fd.valid()) {
      ++i;
      continue;
    }
    const auto refusal = os::GatherRefusal(attempt.error, events[i].attr, pid, cpu);
    if (os::ExceedsSampleRate(refusal)) return Fail(os::ExplainOpenRefusal(refusal));
    const bool may_be_newer = attempt.error == EINVAL || attempt.error == EOPNOTSUPP;
    if (may_be_newer && LowerPrecision(events[i])) continue;
    bool changed = false;
    while (attempt.error == EINVAL && next_newer < std::size(kNewer) && !changed) {
      const Newer& newer = kNewer[next_newer++];
      for (Event& event : events) {
        changed |= (event.attr.*newer.field & newer.bits) != 0;
        event.attr.*newer.field &= ~newer.bits;
      }
      if (changed) left_out.push_back(newer.what);
    }
    if (!changed) return Fail(os::ExplainOpenRefusal(refusal));
  }
  for (const perfdata::EventGroup& group : list.groups) TRY(TryGroup(list, group, pid, cpu));
  for (const char* what : left_out) {
    notice(fmt::format("this kernel does not know {}: recorded without", what));
  }
  return {};
}

size_t ChooseRingPages(uint64_t bytes_per_second, size_t rings, uint64_t memory, size_t page_size) {
  constexpr uint64_t kSmallest = uint64_t{512} << 10;
  constexpr uint64_t kLargest = uint64_t{32} << 20;
  const uint64_t budget = memory / 32 / std::max<size_t>(rings, 1);
  uint64_t bytes = std::clamp(std::bit_ceil(bytes_per_second / 8), kSmallest, kLargest);
  while (bytes > budget && bytes > kSmallest) bytes /= 2;
  return std::max<uint64_t>(bytes / page_size, 1);
}

uint64_t ExpectedBytesPerSecond(const EventList& list) {
  constexpr uint64_t kRateOfPeriod = 4000;  // nobody knows; as perf's default frequency
  constexpr uint64_t kChainBytes = 512;
  uint64_t sum = 0;
  for (size_t i = 0; i < list.events.size(); ++i) {
    const Event& event = list.events[i];
    if (IsDummy(event.attr) || list.IsOnlyCounted(i)) continue;
    const bool freq = event.attr.Has(perfdata::kAttrFreq);
    const uint64_t rate =
        freq ? std::min<uint64_t>(event.attr.sample_period_or_freq, 1'000'000) : kRateOfPeriod;
    sum += rate * (event.attr.sample_stack_user + kChainBytes);
  }
  return sum;
}

Result<std::unique_ptr<EventSet>> EventSet::Open(EventList list, const Target& target, bool inherit,
                                                 size_t pages,
                                                 std::vector<uint32_t> larger_stacks) {
  std::unique_ptr<EventSet> set(new EventSet);
  set->list_ = std::move(list);
  set->system_wide_ = target.system_wide;
  set->larger_stacks_ = std::move(larger_stacks);
  const bool may_shrink = pages == 0;
  // An inherited event can have a ring only if it is bound to a CPU.
  std::vector<int> cpus(target.cpus.begin(), target.cpus.end());
  if (!target.system_wide && !inherit) cpus = {-1};
  if (pages == 0) {
    const size_t rings = cpus[0] == -1 ? target.tids.size() : cpus.size();
    EventList largest = set->list_;
    for (size_t i = 0; i < largest.events.size(); ++i) {
      if (!set->HasTiers(i)) continue;
      largest.events[i].attr.sample_stack_user = set->larger_stacks_.back();
    }
    pages =
        ChooseRingPages(ExpectedBytesPerSecond(largest), rings, SystemMemory(), SystemPageSize());
  }
  const uint32_t watermark =
      static_cast<uint32_t>(std::min<uint64_t>(pages * SystemPageSize() / 4, uint64_t{4} << 20));
  for (Event& event : set->list_.events) event.attr.wakeup_events_or_watermark = watermark;

  std::vector<int> pids(target.tids.begin(), target.tids.end());
  if (target.system_wide) pids = {-1};
  for (const int pid : pids) {
    for (const int cpu : cpus) {
      TRY_ASSIGN(const bool there, set->OpenOn(pid, cpu));
      if (!there && !target.system_wide) break;  // that task has ended
    }
  }
  if (set->opened_.empty()) {
    return Fail(ErrorKind::kNotFound, target.system_wide ? "none of these CPUs is online"
                                                         : "the process has ended already");
  }
  TRY(set->MapRings(0, pages, may_shrink));
  return set;
}

// Opens every event on (pid, cpu); false if that task or CPU is not there any more.
Result<bool> EventSet::OpenOn(int pid, int cpu) {
  std::vector<size_t> opened_as;  // by event: of it the first
  for (uint32_t event = 0; event < list_.events.size(); ++event) {
    opened_as.push_back(opened_.size());
    const size_t leader = list_.LeaderOf(event);
    const int group_fd = leader == event ? -1 : opened_[opened_as[leader]].fd.get();
    const bool several = HasTiers(event);
    for (size_t tier = 0; tier <= (several ? larger_stacks_.size() : 0); ++tier) {
      TRY_ASSIGN(const bool there,
                 OpenOne(event, pid, cpu, group_fd, several ? std::optional(tier) : std::nullopt));
      if (!there) return false;
    }
  }
  return true;
}

bool EventSet::HasTiers(size_t event) const {
  return !larger_stacks_.empty() && HasStack(list_.events[event].attr) &&
         list_.GroupOf(event) == nullptr;
}

// As OpenOn.
Result<bool> EventSet::OpenOne(uint32_t event, int pid, int cpu, int group_fd,
                               std::optional<size_t> tier) {
  Attr attr = list_.events[event].attr;
  const bool is_larger = tier && *tier != 0;
  if (is_larger) {
    attr.sample_stack_user = larger_stacks_[*tier - 1];
    attr.flags &= ~uint64_t{perfdata::kAttrEnableOnExec};
    attr.flags |= perfdata::kAttrDisabled;
    // What does not fit the last one may be in the kernel's walk along frame pointers.
    if (*tier == larger_stacks_.size()) {
      attr.flags &= ~uint64_t{perfdata::kAttrExcludeCallchainUser};
    }
  }
  os::OpenAttempt attempt = os::TryPerfEventOpen(attr, pid, cpu, group_fd, 0);
  if (!attempt.fd.valid()) {
    const bool task_gone = attempt.error == ESRCH && pid > 0;
    const bool cpu_gone = (attempt.error == ENODEV || attempt.error == EINVAL) && cpu >= 0 &&
                          !IsOnline(static_cast<uint32_t>(cpu));
    if (task_gone || cpu_gone) return false;
    return Fail(ExplainOpenRefusal(os::GatherRefusal(attempt.error, attr, pid, cpu)));
  }
  TRY_ASSIGN(const uint64_t id, os::PerfEventId(attempt.fd));
  opened_.push_back({.fd = std::move(attempt.fd),
                     .event = event,
                     .pid = pid,
                     .cpu = cpu,
                     .id = id,
                     .tier = tier});
  if (ids_are_fixed_ || is_larger) {
    late_ids_.emplace(id, list_.events[event].ids.front());
  } else {
    list_.events[event].ids.push_back(id);
  }
  return true;
}

// One ring a CPU, which all its descriptors write into; of tasks without a CPU one each.
Status EventSet::MapRings(size_t first_opened, size_t pages, bool may_shrink) {
  constexpr size_t kFewestPages = 16;
  const size_t first_ring = rings_.size();
  for (size_t i = first_opened; i < opened_.size(); ++i) {
    const bool starts_ring =
        opened_[i].cpu == -1
            ? i == first_opened || opened_[i].pid != opened_[i - 1].pid
            : std::none_of(rings_.begin() + static_cast<std::ptrdiff_t>(first_ring), rings_.end(),
                           [&](const Ring& ring) { return ring.cpu == opened_[i].cpu; });
    if (starts_ring) rings_.push_back({.cpu = opened_[i].cpu, .first_fd = i, .ring = nullptr});
  }
  for (size_t r = first_ring; r < rings_.size();) {
    auto mapped = os::PerfRing::Map(opened_[rings_[r].first_fd].fd, pages);
    if (mapped) {
      rings_[r++].ring = std::move(*mapped);
      continue;
    }
    if (mapped.error().kind != ErrorKind::kPermission || !may_shrink || pages <= kFewestPages) {
      return Fail(std::move(mapped.error()));
    }
    pages /= 2;
    for (; r > first_ring; --r) rings_[r - 1].ring.reset();
  }
  ring_pages_ = pages;
  for (size_t i = first_opened; i < opened_.size(); ++i) {
    const Ring* ring = nullptr;
    for (size_t r = first_ring; r < rings_.size(); ++r) {
      if (rings_[r].first_fd > i) break;
      if (rings_[r].cpu == opened_[i].cpu) ring = &rings_[r];
    }
    CHECK(ring != nullptr);
    if (ring->first_fd == i) continue;
    TRY(os::PerfEventSetOutput(opened_[i].fd, opened_[ring->first_fd].fd));
  }
  return {};
}

Status EventSet::Enable() {
  for (const Opened& opened : opened_) {
    if (InUse(opened)) TRY(os::PerfEventEnable(opened.fd));
  }
  return {};
}

// The new ones first: one of them carries the side band too, of which nothing may be missing. What
// both carry meanwhile says the same twice.
Status EventSet::UseLargerStacks(bool enabled) {
  CHECK(may_use_larger_stacks());
  const size_t old = tier_++;
  if (!enabled) return {};
  for (const Opened& opened : opened_) {
    if (opened.tier == tier_) TRY(os::PerfEventEnable(opened.fd));
  }
  for (const Opened& opened : opened_) {
    if (opened.tier == old) TRY(os::PerfEventDisable(opened.fd));
  }
  return {};
}

uint32_t EventSet::stack_size() const {
  if (tier_ != 0) return larger_stacks_[tier_ - 1];
  uint32_t of_group = 0;
  for (size_t i = 0; i < list_.events.size(); ++i) {
    const Attr& attr = list_.events[i].attr;
    if (!HasStack(attr)) continue;
    if (list_.GroupOf(i) == nullptr) return attr.sample_stack_user;
    of_group = attr.sample_stack_user;
  }
  return of_group;
}

Status EventSet::Disable() {
  for (const Opened& opened : opened_) {
    if (list_.LeaderOf(opened.event) == opened.event) TRY(os::PerfEventDisable(opened.fd));
  }
  return {};
}

uint64_t EventSet::ReadLost() const {
  uint64_t lost = 0;
  for (const Opened& opened : opened_) {
    lost += os::PerfEventReadLost(opened.fd, list_.events[opened.event].attr, opened.id);
  }
  return lost;
}

Status EventSet::AddCpu(uint32_t cpu, const std::vector<uint32_t>& tids, bool enable) {
  ids_are_fixed_ = true;
  const size_t first = opened_.size();
  std::vector<int> pids(tids.begin(), tids.end());
  if (system_wide_) pids = {-1};
  for (const int pid : pids) TRY(OpenOn(pid, static_cast<int>(cpu)));
  TRY(MapRings(first, ring_pages_, /*may_shrink=*/false));
  for (size_t i = first; enable && i < opened_.size(); ++i) {
    if (InUse(opened_[i])) TRY(os::PerfEventEnable(opened_[i].fd));
  }
  return {};
}

uint64_t EventSet::KnownId(uint64_t id) const {
  const auto it = late_ids_.find(id);
  return it == late_ids_.end() ? id : it->second;
}

}  // namespace stackreel::record
