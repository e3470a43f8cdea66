// Threads, and the Executor that has some.
#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "base/background_executor.h"
#include "base/error.h"

namespace stackreel::os {

// Runs `work` on a new thread. kIo: the system refuses one, by a container's limit, say.
Result<std::thread> StartThread(std::function<void()> work);

// `threads` 0: one a CPU this process may run on. The calling thread is one of them, so 1 makes no
// thread. Where the system refuses so many there are fewer: concurrency() says. ParallelFor must
// not be called from inside its own work, nor by two threads at a time.
std::unique_ptr<BackgroundExecutor> MakeThreadPool(size_t threads);

}  // namespace stackreel::os
