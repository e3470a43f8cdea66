#include "support/write_file.h"

#include <fstream>

namespace stackreel {

Status WriteFile(const std::filesystem::path& path, ByteView bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) return Fail(Error(ErrorKind::kIo, "cannot write").At(path.string()));
  return {};
}

}  // namespace stackreel
