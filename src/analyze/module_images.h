// The ELF images of modules, each parsed once.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/counters.h"
#include "elf/image.h"
#include "session/session.h"
#include "symbolize/symbolizer.h"
#include "unwind/unwind.h"

namespace stackreel::analyze {

class ModuleImages {
 public:
  // Both must outlive it; files are asked for through the symbolizer, so once a module.
  ModuleImages(session::Session& session, symbolize::Symbolizer& symbolizer, Counters& counters)
      : session_(session), symbolizer_(symbolizer), counters_(counters) {}

  // Null: the module has no file here.
  const elf::Image* MainOf(session::ModuleId id) { return Get(id).main ? &*Get(id).main : nullptr; }
  // Null: the module has no call-frame information that can be used.
  std::shared_ptr<const unwind::UnwindModule> UnwindModuleOf(session::ModuleId id);

 private:
  struct Loaded {
    std::optional<elf::Image> main, debug;
    std::shared_ptr<const unwind::UnwindModule> unwind;
    bool unwind_made = false;
  };
  Loaded& Get(session::ModuleId id);
  std::optional<elf::Image> Parse(const FileImagePtr& file);

  session::Session& session_;
  symbolize::Symbolizer& symbolizer_;
  Counters& counters_;
  std::vector<std::unique_ptr<Loaded>> loaded_;  // by id
};

}  // namespace stackreel::analyze
