#include "cli/uftrace_directory.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/input_access.h"
#include "os/file.h"
#include "tracedata/uftrace_reader.h"

namespace stackreel::cli {

namespace {

class Directory : public tracedata::TraceFolder {
 public:
  explicit Directory(std::string path) : path_(std::move(path)) {}
  [[nodiscard]] const std::string& name() const override { return path_; }
  [[nodiscard]] std::vector<std::string> Files() const override {
    std::vector<std::string> names;
    std::error_code error;
    for (std::filesystem::directory_iterator entry(path_, error), end; !error && entry != end;
         entry.increment(error)) {
      names.push_back(entry->path().filename().string());
    }
    std::ranges::sort(names);
    return names;
  }
  Result<std::unique_ptr<FileSource>> Open(const std::string& name) override {
    return OpenInput(path_ + "/" + name);
  }

 private:
  std::string path_;
};

}  // namespace

bool IsUftraceDirectory(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path + "/info", error)) return false;
  const Result<std::unique_ptr<FileSource>> info = os::OpenSource(path + "/info");
  std::array<uint8_t, 8> magic = {};
  return info && (*info)->ReadAt(0, magic) == magic.size() && tracedata::HasUftraceMagic(magic);
}

Result<std::unique_ptr<tracedata::TraceSource>> OpenUftraceDirectory(const std::string& path) {
  return tracedata::OpenUftraceData(std::make_unique<Directory>(path));
}

}  // namespace stackreel::cli
