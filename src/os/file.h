// Files: descriptors, whole-file mappings, sources and sinks.
#pragma once

#include <cstdint>
#include <memory>
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
// Maps a regular file for reading. kNotFound, kPermission, kIo.
Result<FileImagePtr> MapFile(const std::string& path);
// A whole (small, or /proc) file's text.
Result<std::string> ReadTextFile(const std::string& path, size_t limit = size_t{1} << 30);

// A file being written beside its target and renamed into place by Commit(); removed otherwise
// unless Keep() was called. "-" is standard output, which Commit only flushes.
class OutputFile : public ByteSink {
 public:
  static Result<std::unique_ptr<OutputFile>> Create(const std::string& path);
  // Writes straight into `path` (a recording, which must be readable after a crash).
  static Result<std::unique_ptr<OutputFile>> CreateInPlace(const std::string& path);
  virtual Status Commit() = 0;
};

}  // namespace stackreel::os
