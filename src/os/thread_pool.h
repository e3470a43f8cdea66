// The Executor that has threads.
#pragma once

#include <memory>

#include "base/io.h"

namespace stackreel::os {

// `threads` 0: one a CPU this process may run on. The calling thread is one of them, so 1 makes no
// thread. ParallelFor must not be called from inside its own work, nor by two threads at a time.
std::unique_ptr<Executor> MakeThreadPool(size_t threads);

}  // namespace stackreel::os
