// An Executor that can be left to its work.
#pragma once

#include <cstddef>
#include <functional>

#include "base/io.h"

namespace stackreel {

class BackgroundExecutor : public Executor {
 public:
  // ParallelFor in two steps: Start() lets the other threads begin, Finish() has the calling one
  // take part and returns when all is done. Between them the calling thread may do something else,
  // but not use this. Without other threads all is done in Finish().
  virtual void Start(size_t count, std::function<void(size_t, size_t)> work) = 0;
  virtual void Finish() = 0;
};

}  // namespace stackreel
