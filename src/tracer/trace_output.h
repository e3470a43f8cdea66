// The directory that a trace is written to.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/io.h"
#include "os/fair_mutex.h"
#include "os/file.h"
#include "tracedata/trace_facts.h"
#include "tracedata/trace_writer.h"

namespace stackreel::tracer {

// What was in the place of a new trace, and in that of DIR.old: kept until the new one has begun.
class FormerTraces {
 public:
  explicit FormerTraces(std::string directory) : directory_(std::move(directory)) {}
  FormerTraces(FormerTraces&& other) noexcept
      : directory_(std::move(other.directory_)),
        older_lock_(std::move(other.older_lock_)),
        has_old_(std::exchange(other.has_old_, false)),
        has_older_(std::exchange(other.has_older_, false)) {}
  FormerTraces& operator=(FormerTraces&& other) noexcept {
    std::swap(directory_, other.directory_);
    std::swap(older_lock_, other.older_lock_);
    std::swap(has_old_, other.has_old_);
    std::swap(has_older_, other.has_older_);
    return *this;
  }
  FormerTraces(const FormerTraces&) = delete;
  FormerTraces& operator=(const FormerTraces&) = delete;
  ~FormerTraces() { Replace(); }

  // Makes DIR.old of `directory`, and of what was DIR.old DIR.old.replaced-PID. After an error all
  // is as it was: kUsage if one of them is neither a trace nor empty, or is being written. What
  // others have left who were killed meanwhile becomes DIR.old again, or goes where there is one.
  static Result<FormerTraces> MoveAway(const std::string& directory);
  // All is as it was. There must be nothing in the place of the new trace.
  void PutBack();
  // Removes what was DIR.old.
  void Replace();

 private:
  [[nodiscard]] std::string Old() const;
  [[nodiscard]] std::string Older() const;

  std::string directory_;
  os::Fd older_lock_;  // by that others see that somebody sees to it
  bool has_old_ = false, has_older_ = false;
};

// Takes facts and chunks from any thread.
class TraceOutput {
 public:
  // Makes the directory; one that is there already becomes DIR.old, if it is a trace or empty (what
  // was DIR.old then goes, with Keep()). kUsage: it is something else, or another tracer writes to
  // it. `level` is zstd's. After an error what was there is as it was.
  static Result<std::unique_ptr<TraceOutput>> Create(const std::string& directory, int level);

  [[nodiscard]] const std::string& directory() const { return directory_; }
  // The number of another thread of the trace.
  uint32_t NextThread() { return next_thread_++; }
  // Of what cannot be written nothing is left in the files. A chunk is lost then; facts are kept,
  // and written before what comes next.
  Status Add(const tracedata::TraceFact& fact);
  Status Add(const tracedata::TraceChunk& chunk);
  Status Flush();
  // kIo if somebody has removed a file since: what is written is nowhere.
  [[nodiscard]] Status StillThere() const;
  // Removes it and puts back what was there: for a trace that could not begin.
  void Discard();
  // The trace has begun: Discard() cannot put back what was DIR.old any more.
  void Keep() { former_.Replace(); }
  // Of both files, as they are on the disk.
  [[nodiscard]] uint64_t bytes() const;

 private:
  // One of the files.
  class WholeWrites : public ByteSink {
   public:
    explicit WholeWrites(std::unique_ptr<os::OutputFile> file) : file_(std::move(file)) {}
    Status Write(ByteView bytes) override;
    Status WriteAt(uint64_t offset, ByteView bytes) override {
      return file_->WriteAt(offset, bytes);
    }

   private:
    std::unique_ptr<os::OutputFile> file_;
    uint64_t size_ = 0;
  };

  static Result<std::unique_ptr<TraceOutput>> Begin(const std::string& directory, int level);
  TraceOutput(std::string directory, os::Fd folder, std::unique_ptr<WholeWrites> calls,
              std::unique_ptr<WholeWrites> facts, tracedata::TraceWriter writer)
      : directory_(std::move(directory)),
        former_(directory_),
        folder_(std::move(folder)),
        calls_(std::move(calls)),
        facts_(std::move(facts)),
        writer_(std::move(writer)) {}

  std::string directory_;
  FormerTraces former_;
  os::Fd folder_;  // the directory, locked: by that others see that it is in use
  std::unique_ptr<WholeWrites> calls_, facts_;
  std::atomic<uint32_t> next_thread_ = 0;
  os::FairMutex mutex_;  // chunks may come without a pause
  tracedata::TraceWriter writer_;
};

}  // namespace stackreel::tracer
