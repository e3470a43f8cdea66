// The Executor that has threads.
#pragma once

#include <memory>

#include "base/io.h"

namespace stackreel::os {

// `threads` 0: one a CPU this process may run on.
std::unique_ptr<Executor> MakeThreadPool(size_t threads);

}  // namespace stackreel::os
