// Outputs that are not whole yet: they go when a signal ends this process.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

namespace stackreel::os {

// While it lives, SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGPIPE, where they would end this process,
// first remove what is at `path`: a file, or a directory and the files in it. Where they are
// blocked, ignored or handled nothing is changed. The signal ends the process then, as it would
// have. At most 32 outputs at a time; of more, and of paths that the kernel would not take, what is
// unfinished stays.
class UnfinishedOutput {
 public:
  explicit UnfinishedOutput(const std::string& path);
  UnfinishedOutput(UnfinishedOutput&& other) noexcept
      : slot_(std::exchange(other.slot_, std::nullopt)) {}
  UnfinishedOutput& operator=(UnfinishedOutput&&) = delete;
  UnfinishedOutput(const UnfinishedOutput&) = delete;
  UnfinishedOutput& operator=(const UnfinishedOutput&) = delete;
  ~UnfinishedOutput();

 private:
  std::optional<size_t> slot_;
};

// What the signals do, for who ends this process otherwise. Only what is async-signal-safe.
void RemoveUnfinishedOutputs();

}  // namespace stackreel::os
