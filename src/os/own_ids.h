// Ids of threads as they see themselves.
#pragma once

#include <cstdint>
#include <map>

namespace stackreel::os {

// What the ids of threads are in their own namespace of processes.
class OwnIds {
 public:
  // `tid` itself if the thread has ended.
  [[nodiscard]] uint32_t Of(uint32_t pid, uint32_t tid);

 private:
  // Of which processes the namespace is ours: they need not be asked for each thread.
  std::map<uint32_t, bool> is_ours_;
};

}  // namespace stackreel::os
