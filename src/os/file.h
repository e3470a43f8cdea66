// Files: descriptors, whole-file mappings, sources and sinks.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/io.h"

namespace stackreel::os {

// Owns a file descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept;
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd();
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool valid() const { return fd_ >= 0; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

// The error of a failed system call: "cannot open FILE: No such file or directory".
Error ErrnoError(int error, const std::string& what, const std::string& file = "");

// "-" is standard input.
Result<std::unique_ptr<FileSource>> OpenSource(const std::string& path);
// Maps a regular file for reading. kNotFound, kPermission, kIo. An empty file gives no bytes. If
// somebody cuts the file short while it is mapped, its lost pages read as zeros.
Result<FileImagePtr> MapFile(const std::string& path);
// Where a standard descriptor (0 to 2) is closed, takes its number, so that no file opened later
// gets it and with it what is meant for standard output or error. Using it fails still, and a
// program that is executed finds it closed. Call it first of all.
void HoldStandardDescriptors();
// A file grown to the limit of its size (ulimit -f) is from now on an error of writing, and not the
// end by SIGXFSZ. What is executed has the signal as it was.
void TakeSizeLimitAsError();
// A whole (small, or /proc) file's text.
Result<std::string> ReadTextFile(const std::string& path, size_t limit = size_t{1} << 30);

// A file to write.
class OutputFile : public ByteSink {
 public:
  // Written beside `path`, with a buffer, and renamed onto it by Commit(); removed if that is not
  // called, or a signal ends us before (UnfinishedOutput). What is not a regular file (a device, a
  // FIFO) is written directly, and so is "-", the standard output: its buffer goes out even without
  // Commit().
  static Result<std::unique_ptr<OutputFile>> Create(const std::string& path);
  // As Create, for recordings: without a buffer, so that they are readable after a crash, and after
  // Commit() to be written on. Only their owner may read them (mode 0600), as a core dump: they
  // hold addresses and pieces of stacks. Of a regular file only.
  static Result<std::unique_ptr<OutputFile>> CreateBeside(const std::string& path);
  // Writes straight into `path`, without a buffer. What was there is replaced. A FIFO is waited for
  // until somebody reads it, or until SIGINT, SIGTERM or SIGHUP comes, blocked (kIo).
  static Result<std::unique_ptr<OutputFile>> CreateInPlace(const std::string& path);
  // A file without a name, in $TMPDIR or /tmp, or in `folder`: gone when closed.
  static Result<std::unique_ptr<OutputFile>> CreateUnnamed(const std::string& folder = "");
  // Flushes, and puts the file in place. Nothing may be written afterwards, but see CreateBeside.
  virtual Status Commit() = 0;
  // Reads back what was written; of a regular file only.
  virtual Result<size_t> ReadAt(uint64_t offset, std::span<uint8_t> out) = 0;
  // The same as FileSource::MapAt, of what was written.
  virtual FileImagePtr MapAt(uint64_t offset, size_t size) = 0;
  // Takes `size` bytes of space on the disk for a regular file.
  virtual Status Reserve(uint64_t size) = 0;
  // Cuts a regular file off at `size`; what is written next goes there.
  virtual Status Truncate(uint64_t size) = 0;
};

// Where `path` leads if it is a symbolic link, to whatever is or is not there; else `path`.
std::string FollowLinks(const std::string& path);

// Writes all of `bytes` to a descriptor. The error's message names `file`; a full disk is told as
// such.
Status WriteAll(int fd, ByteView bytes, const std::string& file);

}  // namespace stackreel::os
