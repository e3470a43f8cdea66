// Files that tests make.
#pragma once

#include <filesystem>

#include "base/bytes.h"
#include "base/error.h"

namespace stackreel {

// Makes the folders above it too.
Status WriteFile(const std::filesystem::path& path, ByteView bytes);

}  // namespace stackreel
