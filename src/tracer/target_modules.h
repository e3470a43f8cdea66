// The modules of a running process: which files its code comes from, and where it stands.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/build_id.h"
#include "base/error.h"
#include "base/io.h"
#include "os/proc.h"
#include "patch/room.h"
#include "symbolize/symbolizer.h"
#include "tracer/module_code.h"
#include "tracer/site_plan.h"

namespace stackreel::tracer {

// One file that is mapped with code.
struct TargetModule {
  std::string path;  // as the process has it
  bool is_program = false;
  patch::AddressRange range;  // of all its segments
  uint64_t bias = 0;          // avma - svma
  BuildId build_id;
  uint64_t version = 0;            // differs from that of any other file that had this path
  std::optional<uint32_t> number;  // in the trace, once that speaks of it
  bool is_mapped = true;
  bool has_needed_planned = false;
  FileImagePtr file;
  // Why it cannot be traced; empty if it can. Then `file` may be null.
  std::string why_not;
  // Read when it is first needed.
  std::unique_ptr<ModuleCode> code;

  [[nodiscard]] PlacedModule placed() const { return {code.get(), range, bias}; }
};

// The program first, then libraries as they lie. Not the vDSO, nor what has no file. Files are
// found through /proc/PID/root, so that containers are no matter; a file that was replaced since
// the process mapped it is not used.
Result<std::vector<TargetModule>> ReadModules(uint32_t pid,
                                              const std::vector<os::ProcMapping>& maps);

// Where a module's separate debug files are; its own is not among them.
symbolize::ModuleFiles FilesOf(const TargetModule& module, uint32_t pid);

// Reads a module's code, with its separate file of symbols if there is one.
Status ReadCode(TargetModule& module, uint32_t pid, Executor& executor);

}  // namespace stackreel::tracer
