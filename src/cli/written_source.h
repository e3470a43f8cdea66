// What was written to a file of ours, read back.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/io.h"
#include "os/file.h"

namespace stackreel::cli {

class WrittenSource : public FileSource {
 public:
  // Of the first `size` bytes. `file` must outlive it.
  WrittenSource(os::OutputFile& file, uint64_t size, std::string name)
      : file_(file), size_(size), name_(std::move(name)) {}
  // The same of a file that lives as long as this.
  WrittenSource(std::unique_ptr<os::OutputFile> file, uint64_t size, std::string name)
      : owned_(std::move(file)), file_(*owned_), size_(size), name_(std::move(name)) {}
  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] std::optional<uint64_t> size() const override { return size_; }
  Result<size_t> Read(std::span<uint8_t> out) override {
    TRY_ASSIGN(const size_t n, ReadAt(at_, out));
    at_ += n;
    return n;
  }
  Result<size_t> ReadAt(uint64_t offset, std::span<uint8_t> out) override {
    if (offset >= size_) return size_t{0};
    return file_.ReadAt(offset, out.first(std::min<uint64_t>(out.size(), size_ - offset)));
  }
  FileImagePtr MapAt(uint64_t offset, size_t size) override {
    if (offset > size_ || size > size_ - offset) return nullptr;
    return file_.MapAt(offset, size);
  }

 private:
  std::unique_ptr<os::OutputFile> owned_;
  os::OutputFile& file_;
  uint64_t size_, at_ = 0;
  std::string name_;
};

}  // namespace stackreel::cli
