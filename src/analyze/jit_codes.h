// The jitdumps of processes, and which time of theirs a sample's is.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/counters.h"
#include "base/io.h"
#include "perfdata/attr.h"
#include "perfdata/record.h"
#include "session/jit_dump.h"
#include "session/session.h"
#include "symbolize/symbolizer.h"
#include "unwind/unwind.h"

namespace stackreel::analyze {

// One process's code, immutable.
struct JitCodes {
  FileImagePtr file;  // `dump` points into it
  session::JitDump dump;
  session::ModuleId module = session::kNoModule;
  std::shared_ptr<const unwind::UnwindModule> frames;  // null: it has no call-frame information
};

class JitCodesCache {
 public:
  // Both must outlive it; files are asked for through the symbolizer.
  JitCodesCache(symbolize::Symbolizer& symbolizer, Counters& counters)
      : symbolizer_(symbolizer), counters_(counters) {}

  // The dump that is module `id`; null if it is kNoModule, not there or bad (the symbolizer says
  // why).
  std::shared_ptr<const JitCodes> Get(const session::Session& session, session::ModuleId id);

  // TIME_CONV: how perf's clock is made from the CPU's counter.
  void SetConversion(const perfdata::TimeConv& conversion) { conversion_ = conversion; }
  // A sample's time by the dump's clock; the end of time, so that of several codes at an address
  // the last is taken, where the recording has another clock ("analyze.jit_clock_unknown").
  uint64_t TimeInDump(const session::JitDump& dump, const perfdata::Attr& attr, uint64_t time);

 private:
  symbolize::Symbolizer& symbolizer_;
  Counters& counters_;
  std::optional<perfdata::TimeConv> conversion_;
  std::unordered_map<session::ModuleId, std::shared_ptr<const JitCodes>> by_module_;
};

}  // namespace stackreel::analyze
