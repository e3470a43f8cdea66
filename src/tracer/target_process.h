// A target as patch/ sees a process: its code, cores, threads, trap table and journal.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/address.h"
#include "base/error.h"
#include "os/proc.h"
#include "patch/execute.h"
#include "patch/quiesce.h"
#include "patch/site.h"
#include "tracer/installed_agent.h"
#include "tracer/signal_frames.h"
#include "tracer/target.h"
#include "tracer/target_traps.h"

namespace stackreel::tracer {

// While the target is held, what is read of a page stands for it until something is written there:
// sites lie close together, and each read is a system call.
class TargetCode : public patch::CodeMemory {
 public:
  explicit TargetCode(Target& target) : target_(target) {}
  Status Read(Avma at, std::span<uint8_t> out) override;
  Status Write(Avma at, ByteView bytes) override;

 private:
  static constexpr uint64_t kPage = 4096;
  // The pages that [at, at + size) lies on are known no more.
  void Forget(Avma at, size_t size);

  Target& target_;
  uint32_t hold_ = 0;  // that pages_ were read in
  std::map<uint64_t, std::array<uint8_t, kPage>> pages_;
};

// A thread that has been stopped has executed iret or its like when it goes on, which serialises.
class TargetCores : public patch::CoreSync {
 public:
  explicit TargetCores(Target& target) : target_(target) {}
  Status Sync() override;

 private:
  Target& target_;
};

// Where each thread is and will go on.
struct ThreadPosition {
  size_t thread = 0;  // index in os::StoppedProcess::threads()
  patch::CodePosition position;
  Avma place;  // the word that holds the ip; 0: the thread's own register
};
// Of all threads of a target that is held.
Result<std::vector<ThreadPosition>> FindPositions(Target& target);

class TargetThreads : public patch::Threads {
 public:
  explicit TargetThreads(Target& target) : target_(target) {}
  Result<std::vector<size_t>> ClearOut(std::span<const patch::Site* const> sites,
                                       patch::Form inside) override;
  Status Stop() override { return target_.Hold(); }
  Status Resume() override { return target_.LetGo(); }

 private:
  Status Move(const ThreadPosition& from, Avma to);
  Target& target_;
};

// All sites that were ever patched, in memory of the target (AgentControl::journal). The one before
// stays whole until the next stands.
class TargetJournal : public patch::Journal {
 public:
  TargetJournal(Target& target, const AgentPlace& agent) : target_(target), agent_(agent) {}
  Status Keep(std::span<const patch::Site* const> sites) override;
  // These stand there already, and are all.
  void Adopt(std::span<const patch::Site* const> sites);
  // Takes the memory for so many more sites now: so that it is done while the target is held
  // anyway.
  Status Reserve(size_t sites);

 private:
  struct Buffer {
    Avma at;
    uint64_t size = 0;
  };
  Status Grow(Buffer& buffer, uint64_t size);

  Target& target_;
  AgentPlace agent_;
  std::map<Avma, patch::Site> sites_;  // by begin()
  bool kept_ = false;                  // all of them stand there
  Buffer buffers_[2];
  int next_ = 0;
};

// The journal of an agent that another tracer has left. It may be empty.
Result<std::vector<patch::Site>> ReadJournal(const Target& target, const AgentPlace& agent);

// All of it together.
class TargetProcess {
 public:
  TargetProcess(Target& target, const AgentPlace& agent)
      : code_(target),
        cores_(target),
        threads_(target),
        traps_(target, agent),
        journal_(target, agent) {}
  [[nodiscard]] TargetTraps& traps() { return traps_; }
  [[nodiscard]] TargetJournal& journal() { return journal_; }
  [[nodiscard]] patch::Process process() {
    return {&code_, &cores_, &traps_, &threads_, &journal_};
  }

 private:
  TargetCode code_;
  TargetCores cores_;
  TargetThreads threads_;
  TargetTraps traps_;
  TargetJournal journal_;
};

}  // namespace stackreel::tracer
