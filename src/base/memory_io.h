// FileSource, ByteSink and FileImage over memory: for tests, fuzzers and decompressed sections.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/io.h"

namespace stackreel {

class MemorySource : public FileSource {
 public:
  // `chunk` bounds what one Read gives, to test readers with short reads; `seekable` false makes
  // it a pipe.
  explicit MemorySource(ByteView bytes, bool seekable = true, size_t chunk = SIZE_MAX,
                        std::string name = "memory")
      : bytes_(bytes), seekable_(seekable), chunk_(chunk), name_(std::move(name)) {}

  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] std::optional<uint64_t> size() const override {
    if (!seekable_) return std::nullopt;
    return bytes_.size();
  }
  Result<size_t> Read(std::span<uint8_t> out) override {
    const size_t n = std::min({out.size(), bytes_.size() - offset_, chunk_});
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset_), n, out.begin());
    offset_ += n;
    return n;
  }
  Result<size_t> ReadAt(uint64_t offset, std::span<uint8_t> out) override {
    if (!seekable_) return Fail(ErrorKind::kUnsupported, "cannot seek in a pipe");
    if (offset >= bytes_.size()) return size_t{0};
    const size_t n = std::min<uint64_t>(out.size(), bytes_.size() - offset);
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), n, out.begin());
    return n;
  }

 private:
  ByteView bytes_;
  size_t offset_ = 0;
  bool seekable_;
  size_t chunk_;
  std::string name_;
};

class MemorySink : public ByteSink {
 public:
  explicit MemorySink(bool seekable = true) : seekable_(seekable) {}
  Status Write(ByteView bytes) override {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return {};
  }
  Status WriteAt(uint64_t offset, ByteView bytes) override {
    if (!seekable_) return Fail(ErrorKind::kUnsupported, "cannot seek in a pipe");
    if (offset > bytes_.size() || bytes.size() > bytes_.size() - offset) {
      return Fail(ErrorKind::kIo, "overwrite past the end");
    }
    std::copy(bytes.begin(), bytes.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(offset));
    return {};
  }
  [[nodiscard]] const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  bool seekable_;
  std::vector<uint8_t> bytes_;
};

class MemoryImage : public FileImage {
 public:
  explicit MemoryImage(std::vector<uint8_t> bytes, std::string name = "memory")
      : bytes_(std::move(bytes)), name_(std::move(name)) {}
  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] ByteView bytes() const override { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
  std::string name_;
};

// The same of text.
class TextImage : public FileImage {
 public:
  explicit TextImage(std::string text, std::string name = "memory")
      : text_(std::move(text)), name_(std::move(name)) {}
  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] ByteView bytes() const override { return AsBytes(text_); }

 private:
  std::string text_;
  std::string name_;
};

}  // namespace stackreel
