// Where the files of a recording's modules are looked for: the options, and what they make.
#pragma once

#include <cstdint>
#include <memory>

#include "base/error.h"
#include "cli/command.h"
#include "perfdata/features.h"
#include "symbolize/symbolizer.h"
#include "symfiles/symfiles.h"

namespace stackreel::cli {

// What the files are wanted for.
enum class FileUse : uint8_t {
  kSymbols,  // names too, the kernel's among them
  kUnwind,   // the binaries of programs only
};

class FileSearch {
 public:
  void AddOptions(CLI::App& app, FileUse use);
  // Fails if something that was named is not there.
  [[nodiscard]] Status Check() const;
  // Looks for files as `features` say, which must outlive it, once it is asked: from a pipe they
  // come late.
  [[nodiscard]] std::unique_ptr<symbolize::ModuleFileProvider> MakeProvider(
      const GlobalOptions& global, const perfdata::Features& features) const;

 private:
  symfiles::SearchOptions search_;
  CLI::Option* debug_dir_ = nullptr;
};

}  // namespace stackreel::cli
