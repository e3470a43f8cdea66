// What the parts that do no input or output themselves are handed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/error.h"

namespace stackreel {

// The bytes of a file, or of a piece of one, which stay as they are while this lives. ELF files
// come as these.
class FileImage {
 public:
  virtual ~FileImage() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  [[nodiscard]] virtual ByteView bytes() const = 0;
};
using FileImagePtr = std::shared_ptr<const FileImage>;

// Bytes to read, front to back or (where it can) anywhere. os/ has files, tests have memory.
class FileSource {
 public:
  virtual ~FileSource() = default;
  // The name to show in messages.
  [[nodiscard]] virtual std::string_view name() const = 0;
  // The size in bytes, or nothing if it cannot be known or sought in (a pipe).
  [[nodiscard]] virtual std::optional<uint64_t> size() const = 0;
  // Reads up to out.size() bytes from where the last Read ended; 0 at the end. May be fewer.
  virtual Result<size_t> Read(std::span<uint8_t> out) = 0;
  // Reads at `offset`, as many bytes as there are up to out.size(); leaves Read's place alone.
  // Fails with kUnsupported where size() has no value.
  virtual Result<size_t> ReadAt(uint64_t offset, std::span<uint8_t> out) = 0;
  // The `size` bytes at `offset` where they are, in place of a copy; may outlive the source. Null
  // where that cannot be done, or not all of them are there: ReadAt then says more.
  virtual FileImagePtr MapAt(uint64_t /*offset*/, size_t /*size*/) { return nullptr; }
};

// Bytes to write.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual Status Write(ByteView bytes) = 0;
  // Overwrites bytes written before; fails with kUnsupported on a pipe.
  virtual Status WriteAt(uint64_t offset, ByteView bytes) = 0;
};

// Runs work on several threads, without anyone above knowing what a thread is.
class Executor {
 public:
  virtual ~Executor() = default;
  // How many calls may run at once; at least 1.
  [[nodiscard]] virtual size_t concurrency() const = 0;
  // Calls work(index, worker) for each index in [0, count), worker < concurrency(); no two calls
  // with one worker at a time. Returns when all are done.
  virtual void ParallelFor(size_t count, const std::function<void(size_t, size_t)>& work) = 0;
};

// Runs all of it in the calling thread.
class InlineExecutor : public Executor {
 public:
  [[nodiscard]] size_t concurrency() const override { return 1; }
  void ParallelFor(size_t count, const std::function<void(size_t, size_t)>& work) override {
    for (size_t i = 0; i < count; ++i) work(i, 0);
  }
};

}  // namespace stackreel
