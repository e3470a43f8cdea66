// Replays records in order of time, and knows at each moment who runs what, mapped where.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/address.h"
#include "base/counters.h"
#include "base/error.h"
#include "base/interner.h"
#include "perfdata/features.h"
#include "perfdata/record.h"
#include "perfdata/sample.h"
#include "perfdata/sorter.h"
#include "session/address_space.h"
#include "session/module.h"

namespace stackreel::session {

// A pointer-authentication mask pair and where it came from (docs: unwinding).
enum class MaskSource : uint8_t {
  kNone,  // x86, or the CPU has none
  kSample,
  kKernel,  // its record, or its file in /proc
  kSideBand,
  kHeader,
  kSimpleperf,
  kHighestMapping,
};
// "the sample", "the highest mapping", …
const char* MaskSourceName(MaskSource source);
struct PointerMask {
  uint64_t insn = 0, data = 0;
  MaskSource source = MaskSource::kNone;
  friend bool operator==(const PointerMask&, const PointerMask&) = default;
};

struct Process {
  uint32_t pid = 0;
  uint32_t ppid = 0;
  AddressSpacePtr maps;  // never null
  // It has called exec, and `maps` are still those of the old program: until the new one is mapped,
  // user registers are those of the call.
  bool exec_pending = false;
  // From the side band. Masks are a process's: all its threads have addresses of one size.
  std::optional<PointerMask> mask;
  ModuleId jit_dump = kNoModule;  // that it maps
  // Inode number of its mount namespace, whose files its maps name; 0: not recorded.
  uint64_t mount_namespace = 0;
  uint32_t live_threads = 0;  // of those seen
};

struct Thread {
  uint32_t pid = 0, tid = 0;
  StringInterner::Id comm = 0;  // in Session::strings(); "" if not known
  bool comm_set = false;
  bool exited = false;
  // PR_PAC_AP*KEY, where the kernel says it. No mask depends on them: what was signed before a key
  // was disabled stays on the stack.
  std::optional<uint64_t> enabled_keys;
};

// Where an address is, at the time of the record last applied.
struct Location {
  ModuleId module = kNoModule;
  Svma svma;  // valid if module has one
  FileOffset offset;
};

class Session {
 public:
  // `features` may grow while records arrive (pipe mode); both must outlive the session.
  Session(const perfdata::Features& features, Endian endian, Counters& counters);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Takes up a record that changes processes, maps or comms; others do nothing. Records must come
  // in order of time (perfdata::RoundSorter). A bad one is counted "session.bad_record".
  void Apply(const perfdata::TimedRecord& record, const perfdata::RecordContext& context);
  // The same, for records that are decoded already (live recording).
  void Apply(const perfdata::Record& record);

  // The process or thread, made (with no maps) if it was not known.
  Process& ProcessOf(uint32_t pid);
  Thread& ThreadOf(uint32_t pid, uint32_t tid);
  [[nodiscard]] const Thread* FindThread(uint32_t tid) const;
  [[nodiscard]] const std::unordered_map<uint32_t, std::unique_ptr<Process>>& processes() const;
  // Text of a thread's comm, ":TID" as perf shows where it is not known.
  [[nodiscard]] std::string CommOf(const Thread& thread) const;

  // A process of the guest; MMAP records say by their mode that they are of one.
  Process& GuestProcessOf(uint32_t pid);
  // The path of a control group that a CGROUP record named; empty if none did.
  [[nodiscard]] std::string_view CgroupPath(uint64_t id) const;

  // Kernel and modules, and BPF programs and trampolines while they exist (KSYMBOL).
  [[nodiscard]] const AddressSpacePtr& kernel_maps() const;
  [[nodiscard]] const AddressSpacePtr& guest_kernel_maps() const;

  // Where `avma` is in those maps; asks for the module's segments.
  [[nodiscard]] Location Find(const AddressSpace& maps, Avma avma);
  // avma - svma, the same all over the mapping; asks for the module's segments.
  uint64_t BiasOf(const AddressSpace::Entry& entry);

  [[nodiscard]] const std::vector<Module>& modules() const;
  ModuleId InternModule(const ModuleKey& key, bool deleted, uint32_t pid);
  // Set once a module's file is open; then Find gives true svmas.
  void SetSegments(ModuleId module, std::vector<LoadSegment> segments);
  const std::vector<LoadSegment>& SegmentsOf(ModuleId module);
  // Called (once a module) when segments are first needed: Find → segments. May be null.
  void SetSegmentLoader(std::function<std::vector<LoadSegment>(const Module&)> loader);

  // The mask for a process now (see unwinding design: sample, side band, header, maps).
  [[nodiscard]] PointerMask MaskOf(const Process& process, const perfdata::Sample* sample) const;
  // The recorded machine: EM_*, from the E_MACHINE or ARCH feature ("x86_64", "aarch64", …); 0 if
  // the recording does not say.
  [[nodiscard]] uint16_t machine() const;

  StringInterner& strings();
  [[nodiscard]] const StringInterner& strings() const;
  [[nodiscard]] Counters& counters() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stackreel::session
