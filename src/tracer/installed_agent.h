// The agent in a target: its memory there, and the pool that is shared with it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "agent/agent_memory_reader.h"
#include "base/address.h"
#include "base/error.h"
#include "os/file.h"
#include "tracedata/agent_memory.h"
#include "tracer/target.h"

namespace stackreel::tracer {

using agent::AgentPlace;
using agent::kPoolName;

// The chunks that agents write to, as they are mapped here. The memory outlives the target.
class Pool {
 public:
  // Takes over a memfd and gives it its size. No memory is taken yet: a target is held meanwhile.
  // `chunks` to begin with; there is room for more.
  static Result<std::unique_ptr<Pool>> Make(os::Fd file, uint32_t chunks);
  // Of a pool, with that room; there is none where files may not be that large (ulimit -f).
  static uint64_t SizeFor(uint32_t chunks) { return tracedata::PoolSize(RoomFor(chunks)); }
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  // Takes the memory and sets the headers up; that takes longer than all else, and the target need
  // not be held. Before it nothing may be recorded or looked at.
  Status Fill();

  [[nodiscard]] tracedata::PoolHeader& header() const;
  // Has at least so many, as far as there is room and memory for more, and tells who waits for one.
  void Extend(uint32_t wanted) const;
  [[nodiscard]] uint32_t chunks() const { return header().ready; }
  // Up to the end of the last one.
  [[nodiscard]] uint64_t size() const { return tracedata::ChunkOffset(room_, chunks()); }
  [[nodiscard]] tracedata::ChunkHeader& chunk(uint32_t i) const;
  [[nodiscard]] ByteView words(uint32_t i) const;
  // Calls that were not recorded, of all processes that use it, whatever has become of them.
  [[nodiscard]] tracedata::LostCalls Lost() const;
  // Gives all but the header's page back to the system: for when nobody records any more.
  void Drop();
  // Waits until a chunk becomes full or `asked` is not the header's any more, or for
  // `milliseconds`.
  void AwaitFull(int milliseconds, uint32_t asked) const;
  // Tells threads that wait that `request` and all before have been seen to.
  void Answer(uint32_t request) const;
  // Threads that wait for an answer since they are about to execute another program. Each is told
  // of once.
  struct Executing {
    uint32_t pid = 0, tid = 0;  // as they see themselves
  };
  [[nodiscard]] std::vector<Executing> TakeExecuting() const;
  // Ends a wait in AwaitFull().
  void WakeCollector() const;
  // Tells whoever waits for a free chunk.
  void NoteFreed() const;
  // The file's identity, as /proc/PID/maps of whoever maps it shows.
  [[nodiscard]] uint64_t inode() const { return inode_; }

 private:
  Pool(os::Fd file, uint8_t* memory, uint32_t chunks, uint64_t inode)
      : file_(std::move(file)),
        memory_(memory),
        first_(chunks),
        room_(RoomFor(chunks)),
        inode_(inode) {}
  static uint32_t RoomFor(uint32_t chunks);

  os::Fd file_;
  uint8_t* memory_;
  uint32_t first_;  // chunks that it begins with
  uint32_t room_;   // and can have
  uint64_t inode_;
};

class InstalledAgent {
 public:
  struct Options {
    uint32_t chunks = 512;
    tracedata::OnFull on_full = tracedata::OnFull::kBlock;
    // Whether a thread that loads libraries waits for Pool::Answer.
    bool await_libraries = true;
    // Whether PoolHeader::executing is told.
    bool follow = false;
    tracedata::OwnCalls own_calls = tracedata::OwnCalls::kAny;
  };
  // Puts the agent into a target that is held. An agent that was left there by a tracer that has
  // detached is used again. Refused: threads whose fs:0 is not their thread pointer (Go, a static
  // program that has not set it yet).
  static Result<std::unique_ptr<InstalledAgent>> Install(Target& target, const Options& options);

  [[nodiscard]] const AgentPlace& place() const { return place_; }
  [[nodiscard]] Pool& pool() const { return *pool_; }
  [[nodiscard]] const tracedata::AgentCodeHeader& routines() const { return routines_; }

  // Spares the target a fault for each page of the pool, which must be filled; holds it for that.
  Status MapPoolPages(Target& target) const;
  // Calls are recorded from now on, or no more.
  Status SetRecording(Target& target, bool recording) const;

 private:
  InstalledAgent() = default;
  AgentPlace place_;
  std::unique_ptr<Pool> pool_;
  tracedata::AgentCodeHeader routines_;
};

// Puts a table (tracedata::EncodeActionTable) into the target and in force; an empty one ends what
// was in force. The target is held, and its rooms have their stubs call what acts by tables until
// this has returned, and (but for an empty one) from before it was called.
Status PublishActions(Target& target, const AgentPlace& agent, ByteView table);

// An agent that is in a process already.
struct FoundAgent : agent::FoundAgent {
  bool tracer_alive = false;
};
// Nothing if there is none.
Result<std::optional<FoundAgent>> FindAgent(const Target& target);

// Checks each thread's fs:0 and finds where the C library keeps its id (tracedata::kNoTidOffset if
// that is not to be learnt). The target is held.
Result<uint32_t> LearnTidOffset(Target& target);

}  // namespace stackreel::tracer
