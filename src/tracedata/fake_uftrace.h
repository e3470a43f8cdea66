// uftrace's directories in memory: for tests and fuzzers.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/memory_io.h"
#include "tracedata/uftrace_reader.h"
#include "tracedata/uftrace_writer.h"

namespace stackreel::tracedata {

struct MemoryFolder {
  std::map<std::string, std::vector<uint8_t>> files;

  void SetText(const std::string& name, std::string_view text) {
    files[name].assign(text.begin(), text.end());
  }
  // Refers to this.
  [[nodiscard]] std::unique_ptr<TraceFolder> Reader() const;
};

class MemoryFolderReader : public TraceFolder {
 public:
  explicit MemoryFolderReader(const MemoryFolder& folder) : folder_(folder) {}
  [[nodiscard]] const std::string& name() const override { return name_; }
  [[nodiscard]] std::vector<std::string> Files() const override {
    std::vector<std::string> names;
    for (const auto& [name, bytes] : folder_.files) names.push_back(name);
    return names;
  }
  Result<std::unique_ptr<FileSource>> Open(const std::string& name) override {
    const auto found = folder_.files.find(name);
    if (found == folder_.files.end()) return Fail(ErrorKind::kNotFound, "no such file");
    return std::make_unique<MemorySource>(ByteView(found->second), true, SIZE_MAX, name);
  }

 private:
  const MemoryFolder& folder_;
  std::string name_ = "memory";
};

inline std::unique_ptr<TraceFolder> MemoryFolder::Reader() const {
  return std::make_unique<MemoryFolderReader>(*this);
}

class MemoryFolderWriter : public FolderWriter {
 public:
  explicit MemoryFolderWriter(MemoryFolder& folder) : folder_(folder) {}
  Result<std::unique_ptr<ByteSink>> Create(const std::string& name) override {
    return std::make_unique<Sink>(folder_.files[name]);
  }

 private:
  class Sink : public ByteSink {
   public:
    explicit Sink(std::vector<uint8_t>& bytes) : bytes_(bytes) { bytes_.clear(); }
    Status Write(ByteView bytes) override {
      bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
      return {};
    }
    Status WriteAt(uint64_t /*offset*/, ByteView /*bytes*/) override {
      return Fail(ErrorKind::kUnsupported, "written once");
    }

   private:
    std::vector<uint8_t>& bytes_;
  };
  MemoryFolder& folder_;
};

}  // namespace stackreel::tracedata
