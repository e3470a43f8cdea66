// What a recording is made of: processes and threads.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "os/file.h"
#include "record/recorder.h"

namespace stackreel::record {

// One that becomes readable when a process ends (Linux 5.3); not valid if there is none.
os::Fd OpenPidFd(uint32_t pid);

struct Task {
  uint32_t pid = 0, tid = 0;
};

// The target's processes, and how to see that they have ended.
class Targets {
 public:
  static Result<Targets> Find(const RecordOptions& options);
  [[nodiscard]] std::vector<uint32_t> Tids() const {
    std::vector<uint32_t> tids;
    tids.reserve(tasks_.size());
    for (const Task& task : tasks_) tids.push_back(task.tid);
    return tids;
  }
  [[nodiscard]] const std::vector<uint32_t>& pids() const { return pids_; }
  void Add(uint32_t pid) {
    tasks_.push_back({pid, pid});
    pids_.push_back(pid);
  }
  // Watched tasks (-p, -t) have all ended. Zombies have.
  [[nodiscard]] bool AllGone();

 private:
  struct Watched {
    Task task;
    os::Fd pidfd;  // of a whole process
  };
  std::vector<Task> tasks_;
  std::vector<uint32_t> pids_;  // processes, each once
  std::vector<Watched> watched_;
};

}  // namespace stackreel::record
