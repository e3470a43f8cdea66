// The perf.data that a recording goes into.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "os/file.h"
#include "perfdata/attr.h"
#include "perfdata/writer.h"
#include "record/machine.h"

namespace stackreel::record {

// kUsage if `path` is a directory; if its name is too long, also for what is put behind it where a
// recording is there already or `switching`; or if it is a device or a pipe and `switching`
// (--switch-output renames files).
Status CheckOutputPath(const std::string& path, bool switching);

class RecordingFile {
 public:
  // The file has another name until Publish; without that, nothing is left of it. What is no
  // regular file, and "-", the standard output, is written directly, in pipe mode. The `early`
  // features go up front, so that they are there even if nobody finishes the recording.
  static Result<std::unique_ptr<RecordingFile>> Create(const std::string& path,
                                                       int compression_level,
                                                       const std::vector<perfdata::Event>& events,
                                                       const FeatureBytes& early);
  // Moves a recording that is at `path` to PATH.old, as perf does, and puts this one there.
  Status Publish();
  // Once one of these has failed, Salvage is all that is left.
  Status Write(ByteView record);
  Status WriteRecord(const perfdata::Record& record);
  // A feature as it is now, see perfdata::Writer::WriteFeature.
  Status WriteFeature(perfdata::Feature feature, ByteView bytes);
  // FINISHED_ROUND: all that was written is on its way to the disk.
  Status EndRound();
  Status Finish(const FeatureBytes& features);
  // After a failure, of a full disk mostly: gives up the space that was reserved for this, writes
  // what was waiting and ends the file; or, if there is no room for that either, cuts it back to
  // its last whole record, without features. What was written is readable.
  void Salvage(const FeatureBytes& features);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] bool is_pipe() const { return is_pipe_; }
  // After Salvage: those that are in the file; before, those that wait to be written too.
  [[nodiscard]] uint64_t bytes_written() const {
    return failed_ ? sink_->size : writer_->bytes_written();
  }
  // Samples that are in the file, not only on their way to it.
  [[nodiscard]] uint64_t samples_written() const { return sink_->samples; }

 private:
  // Passes writes on and knows how much there is. A write that failed leaves none of its bytes. The
  // writer gives whole records, all it has: with them what was handed to it before is written.
  class CountingSink : public ByteSink {
   public:
    explicit CountingSink(os::OutputFile& file) : file_(file) {}
    Status Write(ByteView bytes) override;
    Status WriteAt(uint64_t offset, ByteView bytes) override {
      return file_.WriteAt(offset, bytes);
    }
    uint64_t size = 0;
    uint64_t samples = 0;         // among the bytes written
    uint64_t samples_handed = 0;  // to the writer

   private:
    os::OutputFile& file_;
  };
  RecordingFile() = default;
  Status Checked(Status status);
  void CutBack();

  std::string path_;
  std::unique_ptr<os::OutputFile> file_;
  std::unique_ptr<os::OutputFile> reserve_;  // space beside it
  std::unique_ptr<CountingSink> sink_;
  std::unique_ptr<perfdata::Writer> writer_;
  bool is_pipe_ = false;
  bool published_ = false;
  uint64_t whole_ = 0;  // bytes up to the end of the last whole record
  bool failed_ = false;
};

}  // namespace stackreel::record
