#include "os/unfinished_output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>

namespace stackreel::os {

namespace {

// A handler may neither lock nor allocate: paths stand in a fixed table.
enum class SlotState : uint8_t { kFree, kBeingFilled, kFilled };
struct Slot {
  std::atomic<SlotState> state = SlotState::kFree;
  std::array<char, PATH_MAX> path = {};
};
constexpr size_t kSlots = 32;
std::array<Slot, kSlots> slots;

// Removes the files in it; false: there were none. Other threads may make some meanwhile. By
// getdents(2), as readdir(3) allocates.
bool RemoveFilesIn(int folder) {
  alignas(dirent64) std::array<char, 4096> entries;
  bool any = false;
  lseek(folder, 0, SEEK_SET);
  while (true) {
    const ssize_t size = getdents64(folder, entries.data(), entries.size());
    if (size <= 0) return any;
    for (ssize_t at = 0; at < size;) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries.data() + at);
      at += entry->d_reclen;
      if (unlinkat(folder, static_cast<const char*>(entry->d_name), 0) == 0) any = true;
    }
  }
}

void RemoveDirectory(const char* path) {
  const int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (folder < 0) return;
  // What cannot be removed, such as a directory that somebody made in it, stays.
  while (RemoveFilesIn(folder)) {
  }
  rmdir(path);
  close(folder);
}

void OnEnd(int signal) {
  RemoveUnfinishedOutputs();
  // Blocked while this runs: it ends the process as soon as this returns.
  ::signal(signal, SIG_DFL);
  raise(signal);
}

void HandleEnds() {
  static const bool kInstalled = [] {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) {
      struct sigaction action = {};
      if (sigaction(signal, nullptr, &action) != 0 || action.sa_handler != SIG_DFL) continue;
      action.sa_handler = OnEnd;
      sigaction(signal, &action, nullptr);
    }
    return true;
  }();
  (void)kInstalled;
}

}  // namespace

UnfinishedOutput::UnfinishedOutput(const std::string& path) {
  if (path.size() >= PATH_MAX) return;
  HandleEnds();
  for (size_t i = 0; i < kSlots; ++i) {
    SlotState free = SlotState::kFree;
    if (!slots[i].state.compare_exchange_strong(free, SlotState::kBeingFilled)) continue;
    memcpy(slots[i].path.data(), path.c_str(), path.size() + 1);
    slots[i].state = SlotState::kFilled;
    slot_ = i;
    return;
  }
}

UnfinishedOutput::~UnfinishedOutput() {
  if (slot_) slots[*slot_].state = SlotState::kFree;
}

void RemoveUnfinishedOutputs() {
  for (const Slot& slot : slots) {
    if (slot.state != SlotState::kFilled) continue;
    if (unlink(slot.path.data()) != 0 && errno == EISDIR) RemoveDirectory(slot.path.data());
  }
}

}  // namespace stackreel::os
