// Puts records into the order of their time, by finished rounds.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/counters.h"
#include "perfdata/reader.h"

namespace stackreel::perfdata {

// A record with its time (0: none) and the event it belongs to.
struct TimedRecord {
  RawRecord raw;
  uint64_t time = 0;
  std::optional<uint32_t> event;
};

class TimedSink {
 public:
  virtual ~TimedSink() = default;
  virtual Status OnTimedRecord(const TimedRecord& record) = 0;
  virtual void BeforeTakeUp() {}  // as RecordSink's
};

// A RecordSink that passes records on in order of time; equal times keep their file order. Records
// without a time pass at once. FINISHED_ROUND n flushes up to the largest time seen before round
// n - 1; a record older than what was passed on already is passed on late and counted
// "perfdata.out_of_order".
//
// Between two rounds records are held by their blocks. Where there are no rounds (perf before 3.14
// or so), or very large ones, blocks beyond 32 MB are let go and only time, offset and size of
// their records kept, 32 bytes each; they are read again when their turn comes. Records of a pipe
// and out of compressed records cannot be: beyond 256 MB of them the older half is passed on at
// once, counted "perfdata.forced_flush".
class RoundSorter : public RecordSink {
 public:
  // Bytes of blocks that may be held.
  struct Limits {
    uint64_t readable = uint64_t{32} << 20;     // of records that can be read again
    uint64_t unreadable = uint64_t{256} << 20;  // of others
  };
  RoundSorter(const Reader& reader, TimedSink& sink, Counters& counters);
  RoundSorter(const Reader& reader, TimedSink& sink, Counters& counters, const Limits& limits);
  ~RoundSorter() override;
  // Samples are neither held nor passed on; the others come in the order in which they would.
  void LeaveOutSamples();
  Status OnRecord(const RawRecord& raw) override;
  void BeforeTakeUp() override;
  // At the end: passes all that is held.
  Status Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stackreel::perfdata
