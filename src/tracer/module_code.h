// The functions of a module and what is known of its code: what patch sites are chosen from.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/address.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/io.h"
#include "elf/image.h"
#include "tracer/foreign_code.h"
#include "x86/branch_targets.h"
#include "x86/function_flow.h"
#include "x86/prologue.h"
#include "x86/relative_relocations.h"
#include "x86/site_tables.h"

namespace stackreel::tracer {

// `name` is the first of the symbols at `start` by preference (global, then weak, then local; not a
// mapping symbol); `others` are the rest. Both empty if only .eh_frame knows of the function.
struct ModuleFunction {
  Svma start;
  ByteView code;
  ByteView before, after;  // between it and its neighbours
  std::string_view name;
  std::vector<std::string_view> others;
};

// All of it refers to the mapped files, which it keeps.
class ModuleCode {
 public:
  // `file` is what is mapped in the process. `symbols` may be a file of debug information for it
  // (symfiles/), or null. Fails where the file is no ELF of x86-64.
  static Result<std::unique_ptr<ModuleCode>> Read(FileImagePtr file, FileImagePtr symbols,
                                                  Executor& executor);

  // By .eh_frame (or .debug_frame) and by symbols, ascending by start. Cold parts are no functions,
  // where symbols tell.
  [[nodiscard]] const std::vector<ModuleFunction>& functions() const { return functions_; }
  [[nodiscard]] const elf::Image& image() const { return *image_; }
  [[nodiscard]] uint64_t code_size() const { return code_size_; }  // bytes, without PLTs
  // Why a function here cannot be recorded, by the language it is written in; null if it can.
  [[nodiscard]] const char* WhyForeign(Svma function) const;

  // The site for a function, chosen from the file's bytes (x86::ChooseSite).
  [[nodiscard]] std::expected<x86::Site, x86::SiteError> ChooseSite(const ModuleFunction& function,
                                                                    x86::SiteOptions options) const;
  [[nodiscard]] x86::FunctionFlow ReadFlow(const ModuleFunction& function) const;
  // Where code or data of the module lead.
  [[nodiscard]] const x86::BranchTargets& targets() const { return targets_; }
  [[nodiscard]] x86::LoadedBytes Loaded() const;

 private:
  struct Reader;
  ModuleCode() = default;

  FileImagePtr file_, symbols_;
  std::unique_ptr<elf::Image> image_, symbol_image_;
  std::vector<x86::CodeRange> ranges_;  // executable sections, without PLTs
  std::vector<ModuleFunction> functions_;
  std::vector<x86::RelativeRelocation> relocations_;  // ascending
  x86::BranchTargets targets_;                        // of code and data
  std::vector<ForeignCode> foreign_;                  // ascending
  std::vector<Svma> patchable_entries_;
  x86::SledTable sleds_;
  std::vector<Svma> profiling_functions_;  // mcount, __fentry__: as defined here
  std::vector<Svma> profiling_slots_;      // GOT slots of those defined elsewhere
  uint64_t code_size_ = 0;
};

}  // namespace stackreel::tracer
