// What of a recording is no sample, read once and kept for who asks again.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "base/error.h"
#include "perfdata/reader.h"
#include "perfdata/sorter.h"

namespace stackreel::anonymize {

// Passes all records of a reader on but samples, in order of time, and keeps them.
class SideBand : private perfdata::RecordSink, private perfdata::TimedSink {
 public:
  // What more than this is not kept: then it is read anew.
  static constexpr uint64_t kMostKept = uint64_t{16} << 20;

  // Reads `reader` to its end, which must outlive it. An Error is the sink's, or one of reading.
  Status Read(perfdata::Reader& reader, perfdata::TimedSink& sink);
  // Passes on what was read.
  [[nodiscard]] Status Repeat(perfdata::TimedSink& sink) const;
  [[nodiscard]] bool is_kept() const { return is_kept_; }

  [[nodiscard]] const perfdata::ReadEnd& read() const { return read_; }
  // How many records there are of each type, samples too.
  [[nodiscard]] const std::map<uint32_t, uint64_t>& counts() const { return counts_; }

 private:
  Status OnRecord(const perfdata::RawRecord& raw) override;
  Status OnTimedRecord(const perfdata::TimedRecord& record) override;
  void Keep(const perfdata::TimedRecord& record);

  perfdata::RoundSorter* sorter_ = nullptr;  // while reading
  perfdata::TimedSink* sink_ = nullptr;
  perfdata::ReadEnd read_;
  std::map<uint32_t, uint64_t> counts_;
  uint64_t samples_ = 0;
  std::vector<perfdata::TimedRecord> records_;
  std::shared_ptr<perfdata::Block> block_;  // that is filled
  uint64_t bytes_ = 0;                      // kept
  bool is_kept_ = true;
};

}  // namespace stackreel::anonymize
