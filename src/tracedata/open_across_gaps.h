// The open calls of a thread, for reading behind a gap in its events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tracedata/trace_source.h"

namespace stackreel::tracedata {

// An agent that had to drop events knows not what the trace has: behind the gap it tells of all
// calls that are open anew, by the times at which they began. Those that the trace has told of
// before are no further calls; and of those, the ones that are not told of any more have ended in
// the gap.
class OpenAcrossGaps {
 public:
  // Events of chunks in their order, with times as the chunks have them.
  void Note(const OrderedEvent& event);

  // `events`, from `first` on, are those of the chunk behind a gap; nothing before the gap is later
  // than `gap`. Takes the entries out that are no further calls, and gives the functions of calls
  // that have ended, the innermost first.
  std::vector<uint32_t> Resume(std::vector<OrderedEvent>& events, size_t first, uint64_t gap);

 private:
  struct Open {
    uint64_t start = 0;
    uint32_t function = 0;
  };
  // The place in open_, from `from` on, of the call that this is the entry of; open_.size(): it is
  // a further one.
  [[nodiscard]] size_t Find(const OrderedEvent& entry, size_t from) const;

  std::vector<Open> open_;
};

}  // namespace stackreel::tracedata
