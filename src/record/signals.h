// The signals that concern a recorder.
#pragma once

#include <signal.h>
#include <sys/signalfd.h>

#include <map>
#include <optional>

#include "os/child_process.h"
#include "os/file.h"

namespace stackreel::record {

// Signals that end or steer a recording, read from a descriptor while this lives.
class Signals {
 public:
  Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  ~Signals();
  [[nodiscard]] int fd() const { return fd_.get(); }
  // As they were before, and as a command is to have them.
  [[nodiscard]] const os::SignalState& inherited() const { return inherited_; }
  // The next signal, if one came.
  std::optional<signalfd_siginfo> Next();

 private:
  os::SignalState inherited_ = os::SignalState::Current();
  std::map<int, sighandler_t> old_;
  os::Fd fd_;
};

}  // namespace stackreel::record
