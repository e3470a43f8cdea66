// The events of one chunk, put in order of time.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/counters.h"
#include "tracedata/trace_source.h"

namespace stackreel::tracedata {

// Keeps its memory from chunk to chunk. One a thread.
class EventOrder {
 public:
  // Adds to `out` the events of a chunk whose times count from `base`; calls become an entry and an
  // exit. Functions are as the chunk has them. A call that began at the very tick at which another
  // began and ended is taken for its caller. Reads up to the first event that makes no sense
  // ("tracedata.bad_event"); calls that overlap are moved into each other
  // ("tracedata.bad_nesting"). Takes time linear in the chunk, whatever it holds.
  void Append(ByteView words, uint64_t base, std::vector<OrderedEvent>& out, Counters& counters);

 private:
  // An event as it stands in the chunk.
  struct Item {
    uint64_t start = 0, end = 0;
    uint32_t head = 0;
    uint32_t detail = 0;
  };
  // A call, on the way backwards: its exit has been met, its entry is still to come.
  struct Pending {
    uint64_t start = 0;
    uint32_t head = 0;
    uint32_t detail = 0;
    bool certain = false;  // it stands in the chunk where it began: what comes before it, did
  };

  bool Parse(ByteView words, uint64_t base);
  void PlaceEntries(size_t first, size_t last, Counters& counters);
  void PutEntry(const Pending& pending) { *--put_ = {pending.start, pending.head, pending.detail}; }

  std::vector<Item> items_;
  std::vector<Pending> stack_;  // by start; the innermost is the last
  std::vector<Pending> run_, lifted_;
  OrderedEvent* put_ = nullptr;  // the event put last: they are put last first
  size_t events_ = 0;
};

}  // namespace stackreel::tracedata
