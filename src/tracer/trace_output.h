// The directory that a trace is written to.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "base/error.h"
#include "os/file.h"
#include "tracedata/trace_facts.h"
#include "tracedata/trace_writer.h"

namespace stackreel::tracer {

// Takes facts and chunks from any thread.
class TraceOutput {
 public:
  // Makes the directory; one that is there already becomes DIR.old, if it is a trace or empty (what
  // was DIR.old then goes). kUsage: it is something else. `level` is zstd's.
  static Result<std::unique_ptr<TraceOutput>> Create(const std::string& directory, int level);

  [[nodiscard]] const std::string& directory() const { return directory_; }
  Status Add(const tracedata::TraceFact& fact);
  Status Add(const tracedata::TraceChunk& chunk);
  Status Flush();
  // Removes it: for a trace that could not begin.
  void Discard();
  // Of both files, as they are on the disk.
  [[nodiscard]] uint64_t bytes() const;

 private:
  TraceOutput(std::string directory, std::unique_ptr<os::OutputFile> calls,
              std::unique_ptr<os::OutputFile> facts, tracedata::TraceWriter writer)
      : directory_(std::move(directory)),
        calls_(std::move(calls)),
        facts_(std::move(facts)),
        writer_(std::move(writer)) {}

  std::string directory_;
  std::unique_ptr<os::OutputFile> calls_, facts_;
  std::mutex mutex_;
  tracedata::TraceWriter writer_;
};

}  // namespace stackreel::tracer
