#include "analyze/module_images.h"

namespace stackreel::analyze {

std::optional<elf::Image> ModuleImages::Parse(const FileImagePtr& file) {
  if (file == nullptr) return std::nullopt;
  Result<elf::Image> image = elf::Image::Parse(file->bytes());
  if (image) return std::move(*image);
  counters_.Add("analyze.bad_file");
  return std::nullopt;
}

ModuleImages::Loaded& ModuleImages::Get(session::ModuleId id) {
  if (id >= loaded_.size()) loaded_.resize(id + size_t{1});
  if (loaded_[id] == nullptr) {
    loaded_[id] = std::make_unique<Loaded>();
    const session::Module& module = session_.modules()[id];
    const bool may_have_file = module.key.kind == session::ModuleKind::kFile ||
                               module.key.kind == session::ModuleKind::kVdso;
    if (may_have_file) {
      const symbolize::ModuleFiles& files = symbolizer_.FilesOf(id, module);
      loaded_[id]->main = Parse(files.main);
      loaded_[id]->debug = Parse(files.debug);
    }
  }
  return *loaded_[id];
}

std::shared_ptr<const unwind::UnwindModule> ModuleImages::UnwindModuleOf(session::ModuleId id) {
  Loaded& loaded = Get(id);
  if (!loaded.unwind_made) {
    loaded.unwind_made = true;
    if (loaded.main) {
      loaded.unwind =
          unwind::UnwindModule::Make(&*loaded.main, loaded.debug ? &*loaded.debug : nullptr);
    }
  }
  return loaded.unwind;
}

}  // namespace stackreel::analyze
