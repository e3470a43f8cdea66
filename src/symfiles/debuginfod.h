// Files by build-id from debuginfod servers.
#pragma once

#include <memory>
#include <string>

#include "base/build_id.h"
#include "base/error.h"

namespace stackreel::symfiles {

// libdebuginfod, loaded at run time, so that a machine without it loses this only. It reads
// DEBUGINFOD_URLS, DEBUGINFOD_TIMEOUT and its other variables itself. For one thread at a time.
class Debuginfod {
 public:
  enum class Kind : uint8_t { kExecutable, kDebuginfo };

  // Null if DEBUGINFOD_URLS is not set. kUnsupported if the library is not there.
  static Result<std::unique_ptr<Debuginfod>> Open();
  virtual ~Debuginfod() = default;

  // The path of the file in debuginfod's cache. kNotFound: no server has it. After a failure of
  // another kind (no connection, too slow) no server is asked again.
  virtual Result<std::string> Find(Kind kind, const BuildId& id) = 0;
};

}  // namespace stackreel::symfiles
