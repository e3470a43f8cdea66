#include "cli/file_search.h"

#include <cstdio>
#include <set>
#include <string>
#include <utility>

#include "cli/print.h"

namespace stackreel::cli {
namespace {

// Looks for files as the recording says, once it says it: from a pipe that comes late.
class LateFileProvider : public symbolize::ModuleFileProvider {
 public:
  LateFileProvider(symfiles::SearchOptions options, const perfdata::Features& features)
      : options_(std::move(options)), features_(features) {}
  symbolize::ModuleFiles FilesOf(const session::Module& module) override {
    if (provider_ == nullptr) {
      options_.os_release = features_.os_release;
      for (const perfdata::HeaderBuildId& id : features_.build_ids) {
        if (id.filename == "[kernel.kallsyms]") options_.kernel_build_id = id.build_id;
      }
      // Nobody shall learn from a request what a recording holds that somebody made harmless.
      if (features_.anonymized) options_.debuginfod = false;
      provider_ = symfiles::MakeFileProvider(options_);
    }
    return provider_->FilesOf(module);
  }

 private:
  symfiles::SearchOptions options_;
  const perfdata::Features& features_;
  std::unique_ptr<symbolize::ModuleFileProvider> provider_;
};

}  // namespace

void FileSearch::AddOptions(CLI::App& app, FileUse use) {
  app.add_option("--symfs,--sysroot", search_.symfs, "Look for binaries under DIR first")
      ->type_name("DIR");
  debug_dir_ = app.add_option("--debug-dir", search_.debug_dirs, "Where separate debug files are")
                   ->type_name("DIR")
                   ->capture_default_str();
  if (use == FileUse::kUnwind) return;
  app.add_option("--kallsyms", search_.kallsyms, "Kernel symbols from FILE")->type_name("FILE");
  app.add_option("--vmlinux", search_.vmlinux, "Kernel symbols from an ELF file")
      ->type_name("FILE");
}

Status FileSearch::Check() const {
  symfiles::SearchOptions named = search_;
  if (debug_dir_->count() == 0) named.debug_dirs.clear();  // it may be missing, unless it was named
  return CheckSearchOptions(named);
}

std::unique_ptr<symbolize::ModuleFileProvider> FileSearch::MakeProvider(
    const GlobalOptions& global, const perfdata::Features& features) const {
  symfiles::SearchOptions options = search_;
  if (!global.quiet) {
    options.notice = [said = std::set<std::string>()](const std::string& text) mutable {
      if (said.insert(text).second) Print(stderr, "stackreel: warning: {}\n", text);
    };
  }
  return std::make_unique<LateFileProvider>(std::move(options), features);
}

}  // namespace stackreel::cli
