// Merges the files of a directory recording by time.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/counters.h"
#include "base/error.h"
#include "base/io.h"
#include "perfdata/reader.h"
#include "perfdata/record.h"

namespace stackreel::perfdata {

// Each thread of perf record --threads wrote what its rings gave into a file of its own: records
// without any header, one zstd stream a file, no rounds. A file of one ring is in order of time,
// one of several nearly so; merged, all of them nearly are.
class PartMerger {
 public:
  // All must outlive the merger.
  PartMerger(const EventTable& events, Endian endian, Counters& counters);
  ~PartMerger();

  // Adds a file, and reads its first record.
  Status Add(FileSource& source);
  // The record with the least time of those that are next in their files; one without a time comes
  // with the one before it. False at the end of all.
  Result<bool> Next(RawRecord& record);
  // How far reading got, all files together; the damage is the first file's that has one.
  [[nodiscard]] ReadEnd end() const;
  // Offsets of all files together.
  [[nodiscard]] uint64_t position() const;

 private:
  struct Part;
  Status Refill(Part& part);

  const EventTable& events_;
  Endian endian_;
  Counters& counters_;
  std::vector<std::unique_ptr<Part>> parts_;
  std::vector<Part*> heap_;  // those with a next record, the least time in front
};

}  // namespace stackreel::perfdata
