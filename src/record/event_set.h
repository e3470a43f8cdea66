// The events of a recording, opened on its target, and their rings.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "os/file.h"
#include "os/kernel_masks.h"
#include "os/perf_event.h"
#include "perfdata/attr.h"
#include "record/event_list.h"
#include "record/recorder.h"

namespace stackreel::record {

// Registers recorded with a user stack, by perf's numbers (asm/perf_regs.h): all general ones,
// since some unwinding rules need any of them.
uint64_t UserRegisterMask();

// Bytes of stack in a sample. The kernel takes no more than the last of these, and copying that
// costs the program 2 to 3 µs a sample and its caches more than the first does, which holds nearly
// all stacks of many programs. So recordings begin with the first and go on to the next when stacks
// turn out not to fit.
inline constexpr std::array<uint32_t, 2> kStackSizes = {24576, 65528};
inline constexpr uint32_t kLargestStack = kStackSizes.back();

// How -g and --unwind shape what is asked of the kernel.
struct EventSettings {
  CallGraph call_graph = CallGraph::kDwarf;
  uint32_t stack_size = kLargestStack;
  std::vector<uint32_t> larger_stacks;  // to change to when stacks turn out not to fit, ascending
  bool keep_user_chain = true;          // beside a dumped stack: to complete it where it was cut
  bool data_mappings = false;           // MMAP2 of mappings that are not executable, too
  uint64_t frequency = 0;               // 0: period
  uint64_t period = 0;
  std::optional<int32_t> clockid;
  bool all_user = false, all_kernel = false;
  bool inherit = true;
  bool enable_on_exec = false;
  bool namespaces = false, cgroups = false, switches = false;  // records of these
  os::MaskRoute masks = os::MaskRoute::kCpu;                   // of pointer authentication
  bool tracking_apart = false;  // side-band records by an event of their own, "dummy"
};
EventSettings SettingsOf(const RecordOptions& options);

// The attrs to open for the events that were parsed. Event 0, or a dummy event at the end, carries
// the side band: comms, mappings, tasks, kernel symbols. Of a group only the leader is switched on
// and off. Events with S are not inherited, since kernels do not read a group across tasks.
EventList ConfigureEvents(const EventList& parsed, const EventSettings& settings);

// Takes out what an older kernel does not know (Linux 3.16 to 6.x), newest first, until events open
// on (pid, cpu), then sees whether members can join their leaders there. What had to go is told to
// `notice`. An error is the last refusal, explained.
Status FitToKernel(EventList& list, int pid, int cpu,
                   const std::function<void(const std::string&)>& notice);

struct Target {
  bool system_wide = false;
  std::vector<uint32_t> tids;  // unless system-wide
  std::vector<uint32_t> cpus;  // with inherit or system-wide: one event a CPU
};

// Data pages for one ring: what fills in an eighth of a second at `bytes_per_second`, between
// 512 KB and 32 MB, and all `rings` together at most 1/32 of `memory` bytes.
size_t ChooseRingPages(uint64_t bytes_per_second, size_t rings, uint64_t memory, size_t page_size);
// Bytes a second that one CPU's events may write, roughly.
uint64_t ExpectedBytesPerSecond(const EventList& list);

struct Ring {
  int cpu = -1;         // -1: of one task
  size_t first_fd = 0;  // index of the descriptor it is mapped on
  std::unique_ptr<os::PerfRing> ring;
};

class EventSet {
 public:
  // Opens each event on each task and CPU of the target and maps the rings: `pages` each (0:
  // chosen, and halved while this user may not lock as much). For each of `larger_stacks`,
  // events that dump a stack and are in no group are opened once more, with that size and switched
  // off: a second group would begin to count from 0. Tasks that have
  // ended and CPUs that have gone meanwhile are passed over; kNotFound if no task is left.
  static Result<std::unique_ptr<EventSet>> Open(EventList list, const Target& target, bool inherit,
                                                size_t pages, std::vector<uint32_t> larger_stacks);

  // With all their ids.
  [[nodiscard]] const std::vector<perfdata::Event>& events() const { return list_.events; }
  [[nodiscard]] const EventList& list() const { return list_; }
  [[nodiscard]] const std::vector<Ring>& rings() const { return rings_; }
  [[nodiscard]] int PollFd(const Ring& ring) const { return opened_[ring.first_fd].fd.get(); }
  [[nodiscard]] size_t ring_pages() const { return ring_pages_; }

  // All but the tracking event of its own, which is on from the start.
  Status Enable();
  Status Disable();
  // From now on, samples have the next of the larger stacks. `enabled`: the events are on now.
  Status UseLargerStacks(bool enabled);
  [[nodiscard]] bool may_use_larger_stacks() const { return tier_ < larger_stacks_.size(); }
  // Bytes of stack that are dumped now; 0: none.
  [[nodiscard]] uint32_t stack_size() const;
  // Records lost in full rings, as the kernel counts them an event.
  [[nodiscard]] uint64_t ReadLost() const;
  // A CPU has come online: opens the events there, on `tids` or system-wide. Ids of the new events
  // are mapped to those that the file knows: see KnownId.
  Status AddCpu(uint32_t cpu, const std::vector<uint32_t>& tids, bool enable);
  // The id that the file's attrs have for an event: `id` itself, unless it came with AddCpu or is
  // that of a larger stack.
  [[nodiscard]] uint64_t KnownId(uint64_t id) const;

 private:
  struct Opened {
    os::Fd fd;
    uint32_t event = 0;
    int pid = -1, cpu = -1;
    uint64_t id = 0;
    std::optional<size_t> tier;  // one of several stack sizes: 0, the event's own, or larger
  };
  EventSet() = default;
  Result<bool> OpenOn(int pid, int cpu);
  Result<bool> OpenOne(uint32_t event, int pid, int cpu, int group_fd, std::optional<size_t> tier);
  // Opened once a stack size.
  [[nodiscard]] bool HasTiers(size_t event) const;
  // What is switched on and off: not what follows its leader.
  [[nodiscard]] bool InUse(const Opened& opened) const {
    return list_.LeaderOf(opened.event) == opened.event && (!opened.tier || *opened.tier == tier_);
  }
  Status MapRings(size_t first_opened, size_t pages, bool may_shrink);

  EventList list_;
  std::vector<Opened> opened_;
  std::vector<Ring> rings_;
  std::unordered_map<uint64_t, uint64_t> late_ids_;  // new id → known id
  size_t ring_pages_ = 0;
  bool system_wide_ = false;
  bool ids_are_fixed_ = false;  // the file's attrs are written
  std::vector<uint32_t> larger_stacks_;
  size_t tier_ = 0;  // 0: the events' own stack size; i: larger_stacks_[i - 1]
};

}  // namespace stackreel::record
