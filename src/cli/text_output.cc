#include "cli/text_output.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <array>
#include <string_view>

namespace stackreel::cli {
namespace {

// "PERFILE2", as either byte order writes it; old files have "PERFFILE".
bool IsRecording(const std::string& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return false;
  const auto source = os::OpenSource(path);
  std::array<uint8_t, 8> magic = {};
  if (!source || (*source)->ReadAt(0, magic) != magic.size()) return false;
  const std::string_view text = AsText(magic);
  return text == "PERFILE2" || text == "2ELIFREP" || text == "PERFFILE" || text == "ELIFFREP";
}

}  // namespace

Result<std::unique_ptr<os::OutputFile>> CreateTextOutput(const std::string& path) {
  if (path != "-" && IsRecording(path)) {
    return Fail(
        Error(ErrorKind::kUsage, fmt::format("{} is a recording, and would be replaced", path))
            .WithCure("write to another file, or remove it first"));
  }
  return os::OutputFile::Create(path);
}

}  // namespace stackreel::cli
