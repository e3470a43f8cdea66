// Ids of threads as they see themselves.
#pragma once

#include <cstdint>
#include <map>
#include <set>

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

// The processes that there are, as they see themselves: in whatever namespace, so that an id may
// stand for several. One that has ended, and is only still to be waited for, is none of them.
std::set<uint32_t> OwnIdsOfProcesses();

}  // namespace stackreel::os
