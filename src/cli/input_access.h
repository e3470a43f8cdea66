// Inputs that may not be read: by default only who traced or recorded may, and that was often root.
#pragma once

#include <memory>
#include <string>

#include "base/error.h"
#include "base/io.h"

namespace stackreel::cli {

// Whether `path` is a directory. "-" never is: it is standard input, also where there is a
// directory of that name.
bool IsInputDirectory(const std::string& path);

// As os::OpenSource. Where the file is there and may not be read (kPermission), the cure is told.
Result<std::unique_ptr<FileSource>> OpenInput(const std::string& path);

// kPermission, with what may not be read and a cure, if what is at `path` cannot be told for that
// reason: a folder above it, the directory itself, or in it the file that a trace or a recording
// begins with. Nothing being there is no error.
Status CheckMayBeRead(const std::string& path);

}  // namespace stackreel::cli
