// The trace that the command-line goldens read.
#pragma once

#include <filesystem>

#include "base/error.h"

namespace stackreel {

// Makes shop.trace, shop.uftrace (the same, for uftrace) and cut.trace (of a tracer that was
// killed) in a folder: the same bytes each time.
Status WriteShopTraces(const std::filesystem::path& folder);

}  // namespace stackreel
