// The functions of an ELF file and what is known of its code, for the checks of x86/.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/io.h"
#include "elf/image.h"
#include "x86/branch_targets.h"
#include "x86/prologue.h"
#include "x86/relative_relocations.h"
#include "x86/site_tables.h"

namespace stackreel::testing {

struct ModuleFunction {
  Svma start;
  ByteView code;
  ByteView before, after;  // between it and its neighbours
  std::string name;        // empty if the file has no symbol for it
};

// All of it refers to the mapped file, which it keeps.
struct ModuleCode {
  FileImagePtr file;
  std::unique_ptr<elf::Image> image;
  std::vector<x86::CodeRange> ranges;  // executable sections, without PLTs
  // By .eh_frame (or .debug_frame) and by symbols. Cold parts are no functions, where symbols tell.
  std::vector<ModuleFunction> functions;
  std::vector<x86::RelativeRelocation> relocations;  // ascending
  x86::BranchTargets targets;                        // of code and data
  std::vector<Svma> patchable_entries;
  x86::SledTable sleds;
  std::vector<Svma> profiling_functions;  // mcount, __fentry__: as defined here
  uint64_t code_size = 0;
  double target_seconds = 0;  // of CPU time that FindBranchTargets took

  [[nodiscard]] x86::FunctionSurroundings Around(const ModuleFunction& function) const;
  [[nodiscard]] x86::LoadedBytes Loaded() const;
};

Result<std::unique_ptr<ModuleCode>> ReadModuleCode(const std::string& path, Executor& executor);

}  // namespace stackreel::testing
