#include "symfiles/debuginfod.h"

#include <dlfcn.h>
#include <elfutils/debuginfod.h>
#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <optional>

#include "os/file.h"

namespace stackreel::symfiles {

namespace {

// The functions of libdebuginfod that are used.
struct Library {
  decltype(&debuginfod_begin) begin = nullptr;
  decltype(&debuginfod_end) end = nullptr;
  decltype(&debuginfod_find_executable) find_executable = nullptr;
  decltype(&debuginfod_find_debuginfo) find_debuginfo = nullptr;
};

template <typename Function>
bool Load(void* handle, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(handle, name));
  return *function != nullptr;
}

// Holds SIGPIPE back from this thread: a server that hangs up must not end the program.
class NoPipeSignal {
 public:
  NoPipeSignal() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &old_);
  }
  NoPipeSignal(const NoPipeSignal&) = delete;
  NoPipeSignal& operator=(const NoPipeSignal&) = delete;
  ~NoPipeSignal() {
    if (sigismember(&old_, SIGPIPE) == 1) return;
    const timespec now = {};
    while (sigtimedwait(&pipe_, nullptr, &now) == SIGPIPE) {
    }
    pthread_sigmask(SIG_SETMASK, &old_, nullptr);
  }

 private:
  sigset_t pipe_ = {};
  sigset_t old_ = {};
};

class DebuginfodClient : public Debuginfod {
 public:
  explicit DebuginfodClient(const Library& library) : library_(library), client_(library.begin()) {}
  DebuginfodClient(const DebuginfodClient&) = delete;
  DebuginfodClient& operator=(const DebuginfodClient&) = delete;
  ~DebuginfodClient() override {
    if (client_ != nullptr) library_.end(client_);
  }

  Result<std::string> Find(Kind kind, const BuildId& id) override {
    if (client_ == nullptr) return Fail(ErrorKind::kIo, "debuginfod: cannot start");
    if (gave_up_) return Fail(*gave_up_);
    const auto find =
        kind == Kind::kExecutable ? library_.find_executable : library_.find_debuginfo;
    char* path = nullptr;
    const ByteView bytes = id.bytes();
    const NoPipeSignal no_pipe_signal;
    const os::Fd fd(find(client_, bytes.data(), static_cast<int>(bytes.size()), &path));
    if (fd.valid()) {
      std::string found(path == nullptr ? "" : path);
      std::free(path);
      return found;
    }
    // Failures are descriptors below zero: the negative of an errno.
    const int error = -fd.get();
    if (error == ENOENT) return Fail(ErrorKind::kNotFound, "debuginfod: no server has it");
    gave_up_ = Error(ErrorKind::kIo,
                     fmt::format("debuginfod: {} (not asked again)", std::strerror(error)));
    return Fail(*gave_up_);
  }

 private:
  Library library_;
  debuginfod_client* client_;
  std::optional<Error> gave_up_;
};

}  // namespace

Result<std::unique_ptr<Debuginfod>> Debuginfod::Open() {
  const char* urls = std::getenv(DEBUGINFOD_URLS_ENV_VAR);
  if (urls == nullptr || *urls == '\0') return nullptr;
  // Stays loaded: its HTTP library does not like to be unloaded.
  void* handle = dlopen(DEBUGINFOD_SONAME, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
  Library library;
  if (handle == nullptr || !Load(handle, "debuginfod_begin", &library.begin) ||
      !Load(handle, "debuginfod_end", &library.end) ||
      !Load(handle, "debuginfod_find_executable", &library.find_executable) ||
      !Load(handle, "debuginfod_find_debuginfo", &library.find_debuginfo)) {
    return Fail(Error(ErrorKind::kUnsupported,
                      "DEBUGINFOD_URLS is set, but " DEBUGINFOD_SONAME " cannot be loaded")
                    .WithCure("install libdebuginfod1"));
  }
  return std::make_unique<DebuginfodClient>(library);
}

}  // namespace stackreel::symfiles
