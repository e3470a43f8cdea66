// Records that are not samples, as perf script --show-…-events prints them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "perfdata/record.h"

namespace stackreel::views {

// Kinds of records that can be shown among the samples.
enum ShownRecords : uint32_t {
  kShowTasks = 1u << 0,       // COMM, FORK, EXIT
  kShowMmaps = 1u << 1,       // MMAP, MMAP2
  kShowSwitches = 1u << 2,    // SWITCH, SWITCH_CPU_WIDE
  kShowLost = 1u << 3,        // LOST, LOST_SAMPLES
  kShowNamespaces = 1u << 4,  // NAMESPACES
  kShowCgroups = 1u << 5,     // CGROUP
  kShowBpf = 1u << 6,         // KSYMBOL, BPF_EVENT
};
// The kind of a record, 0 if it is none of them.
uint32_t ShownKind(const perfdata::Record& record);

// Appends "PERF_RECORD_COMM exec: sh:12/12" and the like, without a newline, to the byte as
// perf 6.1 has it; of a LOST_SAMPLES record, which perf does not show, as of a LOST.
void AppendRecordText(const perfdata::Record& record, std::string& out);
// Whose record it is: the thread it is about, else that which the kernel wrote it in.
uint32_t ThreadOfRecord(const perfdata::Record& record);

}  // namespace stackreel::views
