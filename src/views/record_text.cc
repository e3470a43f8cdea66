#include "views/record_text.h"

#include <fmt/format.h>

#include <array>
#include <iterator>

namespace stackreel::views {
namespace {

using perfdata::Record;
using perfdata::RecordType;

// printf's "%#lx": no prefix before 0.
std::string Hex(uint64_t value) { return value == 0 ? "0" : fmt::format("{:#x}", value); }
int32_t Signed(uint32_t id) { return static_cast<int32_t>(id); }

class RecordWriter {
 public:
  RecordWriter(const Record& record, std::string& out) : record_(record), out_(out) {}

  void operator()(const perfdata::Comm& comm) {
    Add("PERF_RECORD_COMM{}: {}:{}/{}",
        (record_.misc & perfdata::kMiscCommExec) != 0 ? " exec" : "", comm.comm, Signed(comm.pid),
        Signed(comm.tid));
  }
  void operator()(const perfdata::Task& task) {
    const bool is_fork = record_.type == static_cast<uint32_t>(RecordType::kFork);
    Add("PERF_RECORD_{}({}:{}):({}:{})", is_fork ? "FORK" : "EXIT", Signed(task.pid),
        Signed(task.tid), Signed(task.ppid), Signed(task.ptid));
  }
  void operator()(const perfdata::Mmap& mmap) {
    Add("PERF_RECORD_MMAP {}/{}: [{}({}) @ {}]: {} {}", Signed(mmap.pid), Signed(mmap.tid),
        Hex(mmap.addr), Hex(mmap.len), Hex(mmap.pgoff),
        (record_.misc & perfdata::kMiscMmapData) != 0 ? 'r' : 'x', mmap.filename);
  }
  void operator()(const perfdata::Mmap2& mmap) {
    constexpr uint32_t kRead = 1, kWrite = 2, kExec = 4, kShared = 1;  // <sys/mman.h>
    Add("PERF_RECORD_MMAP2 {}/{}: [{}({}) @ {} ", Signed(mmap.pid), Signed(mmap.tid),
        Hex(mmap.addr), Hex(mmap.len), Hex(mmap.pgoff));
    if ((record_.misc & perfdata::kMiscMmapBuildId) != 0) {
      Add("<{}>", mmap.build_id.ToHex());
    } else {
      Add("{:02x}:{:02x} {} {}", mmap.maj, mmap.min, mmap.ino, mmap.ino_generation);
    }
    Add("]: {}{}{}{} {}", (mmap.prot & kRead) != 0 ? 'r' : '-',
        (mmap.prot & kWrite) != 0 ? 'w' : '-', (mmap.prot & kExec) != 0 ? 'x' : '-',
        (mmap.flags & kShared) != 0 ? 's' : 'p', mmap.filename);
  }
  void operator()(const perfdata::Switch& /*to*/) { Add("PERF_RECORD_SWITCH {}", Direction()); }
  void operator()(const perfdata::SwitchCpuWide& to) {
    const bool out = (record_.misc & perfdata::kMiscSwitchOut) != 0;
    Add("PERF_RECORD_SWITCH_CPU_WIDE {}  {} pid/tid: {:5}/{:<5}", Direction(),
        out ? "next" : "prev", Signed(to.next_prev_pid), Signed(to.next_prev_tid));
  }
  void operator()(const perfdata::Lost& lost) { Add("PERF_RECORD_LOST lost {}", lost.lost); }
  void operator()(const perfdata::LostSamples& lost) {
    Add("PERF_RECORD_LOST_SAMPLES lost {}", lost.lost);
  }
  void operator()(const perfdata::Namespaces& namespaces) {
    constexpr std::array<const char*, 7> kNames = {"net",  "uts", "ipc",   "pid",
                                                   "user", "mnt", "cgroup"};
    constexpr size_t kBreakBefore = 4;
    Add("PERF_RECORD_NAMESPACES {}/{} - nr_namespaces: {}\n\t\t[", Signed(namespaces.pid),
        Signed(namespaces.tid), namespaces.links.size());
    for (size_t i = 0; i < namespaces.links.size(); ++i) {
      if (i != 0) out_ += ", ";
      if (i == kBreakBefore) out_ += "\n\t\t ";
      Add("{}/{}: {}/{}", i, i < kNames.size() ? kNames[i] : "unknown", namespaces.links[i].dev,
          Hex(namespaces.links[i].ino));
    }
    out_ += ']';
  }
  void operator()(const perfdata::Cgroup& cgroup) {
    Add("PERF_RECORD_CGROUP cgroup: {} {}", cgroup.id, cgroup.path);
  }
  void operator()(const perfdata::Ksymbol& symbol) {
    Add("PERF_RECORD_KSYMBOL addr {:x} len {} type {} flags 0x{:x} name {}", symbol.addr,
        symbol.len, symbol.ksym_type, symbol.flags, symbol.name);
  }
  void operator()(const perfdata::BpfEvent& event) {
    Add("PERF_RECORD_BPF_EVENT type {}, flags {}, id {}", event.type, event.flags, event.id);
  }
  template <typename Other>
  void operator()(const Other& /*not shown*/) {}

 private:
  [[nodiscard]] const char* Direction() const {
    if ((record_.misc & perfdata::kMiscSwitchOut) == 0) return "IN         ";
    return (record_.misc & perfdata::kMiscSwitchOutPreempt) != 0 ? "OUT preempt" : "OUT        ";
  }
  template <typename... Values>
  void Add(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Values>(values)...);
  }

  const Record& record_;
  std::string& out_;
};

}  // namespace

uint32_t ShownKind(const Record& record) {
  switch (static_cast<RecordType>(record.type)) {
    case RecordType::kComm:
    case RecordType::kFork:
    case RecordType::kExit:
      return kShowTasks;
    case RecordType::kMmap:
    case RecordType::kMmap2:
      return kShowMmaps;
    case RecordType::kSwitch:
    case RecordType::kSwitchCpuWide:
      return kShowSwitches;
    case RecordType::kLost:
    case RecordType::kLostSamples:
      return kShowLost;
    case RecordType::kNamespaces:
      return kShowNamespaces;
    case RecordType::kCgroup:
      return kShowCgroups;
    case RecordType::kKsymbol:
    case RecordType::kBpfEvent:
      return kShowBpf;
    default:
      return 0;
  }
}

void AppendRecordText(const Record& record, std::string& out) {
  std::visit(RecordWriter(record, out), record.body);
}

uint32_t ThreadOfRecord(const Record& record) {
  if (const auto* comm = std::get_if<perfdata::Comm>(&record.body)) return comm->tid;
  if (const auto* task = std::get_if<perfdata::Task>(&record.body)) return task->tid;
  if (const auto* mmap = std::get_if<perfdata::Mmap>(&record.body)) return mmap->tid;
  if (const auto* mmap = std::get_if<perfdata::Mmap2>(&record.body)) return mmap->tid;
  if (const auto* links = std::get_if<perfdata::Namespaces>(&record.body)) return links->tid;
  return record.sample_id ? record.sample_id->tid : 0;
}

}  // namespace stackreel::views
