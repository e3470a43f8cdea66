// Symbols of kernels, kernel modules and the vDSO.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/build_id.h"
#include "session/module.h"
#include "symbolize/symbolizer.h"
#include "symfiles/elf_search.h"

namespace stackreel::symfiles {

class KernelFiles {
 public:
  explicit KernelFiles(ElfSearch& search) : search_(search) {}

  symbolize::ModuleFiles Kernel(const session::Module& module);
  symbolize::ModuleFiles KernelModule(const session::Module& module);
  symbolize::ModuleFiles Vdso(const session::Module& module);

 private:
  // The answer to the last question for kallsyms: mostly it is asked again.
  struct Asked {
    BuildId kernel;
    bool guest = false;
    FileImagePtr kallsyms;
    Reasons reasons;
  };

  // kallsyms of a kernel, wherever it is. Null: `reasons` has why.
  FileImagePtr Kallsyms(const BuildId& kernel, bool guest, Reasons& reasons);
  [[nodiscard]] bool IsRunningKernel(const BuildId& kernel, Reasons& reasons) const;
  std::optional<FoundFile> FindVmlinux(const BuildId& kernel, Reasons& reasons);
  std::optional<FoundFile> FindKo(const session::Module& module, Reasons& reasons);

  ElfSearch& search_;
  std::optional<Asked> asked_;
};

// Whether kallsyms text has symbols of a kernel module.
bool HasLinesOf(std::string_view kallsyms, std::string_view module);
// Whether every address is 0, as it is for those whom kptr_restrict bars.
bool HidesAddresses(std::string_view kallsyms);

}  // namespace stackreel::symfiles
