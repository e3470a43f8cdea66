// Makes chunks of the entries and exits of one thread, as an agent does: for traces that come from
// elsewhere.
#pragma once

#include <cstdint>
#include <vector>

#include "base/byte_writer.h"
#include "base/bytes.h"
#include "base/error.h"
#include "tracedata/call_event.h"
#include "tracedata/trace_writer.h"

namespace stackreel::tracedata {

class ChunkBuilder {
 public:
  // The writer must outlive it. A chunk is written when it has `limit` bytes.
  ChunkBuilder(TraceWriter& writer, uint32_t thread, size_t limit = 64 << 10);

  // Events must come in order of time, exits each after the entry that they end. `function` is as
  // TraceFunction::id; `values` as its formats say, up to a chunk's length.
  Status Enter(uint64_t ticks, uint32_t function, ByteView values = {});
  // Of the innermost open call; with `left`, it did not return. One that no entry is known of is
  // written as the end of a call whose entry was not recorded.
  Status Exit(uint64_t ticks, uint32_t function, ByteView values = {}, bool left = false);
  Status Lost(uint64_t ticks, LossReason reason, uint64_t calls);
  // Writes what is held. Calls may go on afterwards.
  Status Flush();

 private:
  struct Open {
    uint64_t start = 0;
    uint32_t function = 0;
    bool announced = false;
  };
  Status Prepare(uint64_t ticks, size_t bytes);
  void Announce();
  void Put(EventKind kind, uint32_t function, uint64_t ticks, ByteView values);
  [[nodiscard]] uint32_t Since(uint64_t ticks) const {
    return static_cast<uint32_t>(ticks - base_);
  }

  TraceWriter& writer_;
  uint32_t thread_;
  size_t limit_;
  uint32_t sequence_ = 0;
  uint64_t chunk_base_ = 0;  // of the chunk
  uint64_t base_ = 0;        // that times count from
  uint64_t last_instant_ =
      UINT64_MAX;  // when the call written last began and ended, if both at once
  ByteWriter words_{Endian::kLittle};
  std::vector<Open> open_;
  size_t announced_ = 0;  // open_[0, announced_) have their kEntry
};

}  // namespace stackreel::tracedata
