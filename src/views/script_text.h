// samples → the text that perf script prints, and JSON lines.
#pragma once

#include <cstdint>
#include <string>

#include "analyze/analysis.h"

namespace stackreel::views {

enum ScriptField : uint32_t {
  kFieldComm = 1u << 0,
  kFieldPid = 1u << 1,
  kFieldTid = 1u << 2,
  kFieldCpu = 1u << 3,
  kFieldTime = 1u << 4,
  kFieldPeriod = 1u << 5,
  kFieldEvent = 1u << 6,
  kFieldIp = 1u << 7,
  kFieldSym = 1u << 8,
  kFieldSymoff = 1u << 9,
  kFieldDso = 1u << 10,
  kFieldSrcline = 1u << 11,
  kFieldAddr = 1u << 12,
};
struct ScriptOptions {
  uint32_t fields =
      kFieldComm | kFieldTid | kFieldTime | kFieldEvent | kFieldIp | kFieldSym | kFieldDso;
  bool inlines = true;
  bool nanoseconds = false;
};
// Appends the block of one sample, to the byte as perf 6.1 prints these fields.
void AppendScriptText(analyze::Analysis& analysis, const analyze::AnalyzedSample& sample,
                      const ScriptOptions& options, std::string& out);
// Appends one JSON object and a newline, "schema": "stackreel.sample/1" in the first one only.
void AppendScriptJson(analyze::Analysis& analysis, const analyze::AnalyzedSample& sample,
                      const ScriptOptions& options, std::string& out);

}  // namespace stackreel::views
