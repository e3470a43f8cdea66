// One fact of each kind: for tests and seeds.
#pragma once

#include <cstdint>
#include <vector>

#include "tracedata/trace_facts.h"

namespace stackreel::tracedata {

inline std::vector<TraceFact> OneOfEachFact() {
  const std::vector<uint8_t> id = {0xab, 0xcd, 0xef, 0x01};
  return {
      TraceClock{.origin_ticks = 1000,
                 .origin_nanoseconds = 5'000'000'000,
                 .ticks_per_second = 2'000'000'000,
                 .realtime_offset = 1'700'000'000'000'000'000},
      TraceHost{.command_line = "./prog --fast",
                .host_name = "here",
                .kernel = "6.1",
                .cpu = "x86",
                .cpus = 2,
                .memory_bytes = uint64_t{1} << 34},
      TraceModule{.id = 1, .path = "/bin/prog", .build_id = BuildId(id)},
      ModuleLoad{.pid = 100,
                 .module = 1,
                 .ticks = 7,
                 .start = Avma(0x400000),
                 .end = Avma(0x500000),
                 .bias = 0x1000},
      TraceFunction{.id = 3,
                    .module = 1,
                    .svma = Svma(0x1234),
                    .size = 77,
                    .name = "_Z3fooi",
                    .arguments = {{.kind = ValueFormat::Kind::kSigned, .bytes = 4, .name = "n"},
                                  {.kind = ValueFormat::Kind::kString, .bytes = 0, .name = ""}},
                    .returns = {{.kind = ValueFormat::Kind::kEnumeration,
                                 .bytes = 4,
                                 .name = "",
                                 .enumeration = 2}}},
      TraceThread{.index = 0, .pid = 100, .tid = 101, .comm = "prog"},
      ProcessFork{.ticks = 2000, .pid = 102, .parent_pid = 100},
      ProcessExec{.ticks = 2100, .pid = 102, .path = "/bin/ls"},
      ProcessExit{.ticks = 2200, .pid = 102, .status = -1},
      PatchEvent{.ticks = 900,
                 .pid = 100,
                 .action = PatchEvent::Action::kRefused,
                 .function = 3,
                 .reason = "too short"},
      TraceLoss{.pid = 100, .reason = "killed", .calls = 12},
      TraceEnumeration{.id = 2, .name = "color", .names = {{-1, "kNone"}, {3, "kRed"}}},
      FilterChange{.ticks = 905,
                   .pid = 100,
                   .filters = {{.kind = FilterOption::Kind::kBegin, .text = "foo*"},
                               {.kind = FilterOption::Kind::kDepth, .text = "3"}}},
  };
}

}  // namespace stackreel::tracedata
