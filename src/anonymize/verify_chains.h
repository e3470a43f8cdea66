// Verification kind (f): whether call chains of IN and of OUT go through the same places, for
// samples that have their chains written down.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "anonymize/verify.h"
#include "anonymize/verify_samples.h"
#include "base/counters.h"
#include "perfdata/chain_tail.h"
#include "perfdata/reader.h"
#include "perfdata/sample.h"
#include "perfdata/sorter.h"
#include "session/session.h"

namespace stackreel::anonymize {

// What of a sample its frames come from. IN's chain may be one that was unwound from its stack.
struct ChainedSample {
  perfdata::CpuMode mode = perfdata::CpuMode::kUnknown;
  uint32_t pid = UINT32_MAX, tid = UINT32_MAX;
  std::optional<uint64_t> ip;
  perfdata::U64Array chain;
};
ChainedSample ChainedSampleOf(const perfdata::Sample& sample, perfdata::CpuMode mode);

// Replays the mappings of two recordings side by side and compares the frames of sample after
// sample, as an analysis would find them: module, offset, number.
//
// That a page of IN corresponds to one of OUT is worked out once for the address spaces of both as
// they were then (session::AddressSpace::version): a record that changes either makes it a question
// that is asked anew.
class ChainCheck {
 public:
  // The readers must outlive it.
  ChainCheck(const perfdata::Reader& in, const perfdata::Reader& out, Level level);

  // Records that are no samples, of each recording in order of time.
  void ApplyIn(const perfdata::TimedRecord& record) { Apply(in_, record); }
  void ApplyOut(const perfdata::TimedRecord& record) { Apply(out_, record); }
  // What is not the same of two samples at the times of the records applied last.
  std::optional<std::string> Difference(const ChainedSample& in, const ChainedSample& out);
  // How often frames had to be looked up, for tests.
  [[nodiscard]] uint64_t lookups() const { return lookups_; }

 private:
  struct Side {
    Side(const perfdata::Reader& of, Counters& counters)
        : reader(of), session(of.features(), of.endian(), counters) {}
    const perfdata::Reader& reader;
    session::Session session;
    std::unordered_map<session::ModuleId, std::string> names;  // as when they were met first
  };
  // Where the addresses of one mode are, in both.
  struct Spaces {
    const session::AddressSpace* in = nullptr;
    const session::AddressSpace* out = nullptr;
  };
  // The last chains of a thread, which were the same.
  struct SameChains {
    perfdata::ChainTail in, out;
    // How many bytes at their ends are return addresses in the address spaces of these versions.
    size_t outer = 0;
    uint64_t in_version = 0, out_version = 0;
  };
  // Whose samples came last; forgotten when records are applied.
  struct Task {
    bool known = false;
    uint32_t in_pid = 0, in_tid = 0, out_pid = 0, out_tid = 0;
    Spaces user;
    SameChains chains;
  };
  struct SamePage {
    uint64_t in_version = 0, out_version = 0;
    uint64_t in_page = 0, out_page = 0;
    friend bool operator==(const SamePage&, const SamePage&) = default;
  };
  static constexpr unsigned kPageShift = 12;
  static constexpr size_t kTasks = 64, kPages = 2048;

  SamePage& PageOf(uint64_t version, uint64_t address) {
    return pages_[((address >> kPageShift) ^ (version * 0x9e3779b1)) % kPages];
  }
  void Apply(Side& side, const perfdata::TimedRecord& record);
  Task& TaskOf(const ChainedSample& in, const ChainedSample& out);
  Spaces SpacesOf(perfdata::CpuMode mode, const ChainedSample& in, const ChainedSample& out);
  bool AreSame(const ChainedSample& in, const ChainedSample& out);
  static size_t EqualTail(const SameChains& last, const ChainedSample& in,
                          const ChainedSample& out);
  static bool GoesOnAs(const SameChains& last, const Spaces& spaces);
  bool IsKnown(const Spaces& spaces, uint64_t in_lookup, uint64_t out_lookup);
  bool IsSame(const Spaces& spaces, uint64_t in, uint64_t out, CodeAddressKind kind);
  bool LookUp(const Spaces& spaces, uint64_t in, uint64_t out, CodeAddressKind kind);
  ComparedFrame FrameOf(Side& side, const session::AddressSpace::Entry* entry, uint64_t address);
  std::string_view NameOf(Side& side, session::ModuleId id);
  std::vector<ComparedFrame> FramesOf(Side& side, const ChainedSample& sample);
  const session::AddressSpace* SpaceOf(Side& side, perfdata::CpuMode mode, uint32_t pid);

  Counters ignored_;
  Side in_, out_;
  NamePairs modules_, symbols_;
  // On the heap: these are tens of kilobytes, and what verifies is profiled too.
  std::vector<Task> tasks_ = std::vector<Task>(kTasks);
  std::vector<SamePage> pages_ = std::vector<SamePage>(kPages);
  uint64_t lookups_ = 0;
};

// The frame of an address in a module (null: in none) of this name, as both recordings must have
// it. The offset counts in the file, where `file_offset` is the mapping's; of a kernel from its
// start on; elsewhere in the page.
ComparedFrame FrameAt(const session::Module* module, std::string_view name, uint64_t address,
                      uint64_t file_offset);

}  // namespace stackreel::anonymize
