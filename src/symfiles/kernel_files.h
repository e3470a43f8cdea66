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
  // kallsyms of the recorded kernel, wherever it is; read once. Null: `reasons` has why.
  std::string* Kallsyms(const BuildId& kernel, bool guest, Reasons& reasons);
  [[nodiscard]] bool IsRunningKernel(const BuildId& kernel, Reasons& reasons) const;
  std::optional<FoundFile> FindVmlinux(const BuildId& kernel, Reasons& reasons);
  std::optional<FoundFile> FindKo(const session::Module& module, Reasons& reasons);

  ElfSearch& search_;
  std::optional<std::string> kallsyms_;
  Reasons kallsyms_reasons_;
  bool kallsyms_asked_ = false;
  bool kernel_taken_ = false;  // its lines stand in kallsyms_ no more
};

// The lines of kallsyms text that belong to a module ("" the kernel proper), as they are.
std::string LinesOfModule(std::string_view kallsyms, std::string_view module);
// Takes the kernel's own lines out of kallsyms text, where those of modules follow behind, as the
// kernel writes it. Nothing is copied but the latter, which are few.
std::string TakeKernelLines(std::string& kallsyms);
// Whether every address is 0, as it is for those whom kptr_restrict bars.
bool HidesAddresses(std::string_view kallsyms);

}  // namespace stackreel::symfiles
