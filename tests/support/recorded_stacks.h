// The user stacks of a recording, with the maps they were taken in: for benchmarks and comparisons.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/io.h"
#include "elf/image.h"
#include "perfdata/record.h"
#include "unwind/unwind.h"

namespace stackreel {

// A file that mappings refer to, opened on this machine under its recorded path.
struct RecordedFile {
  std::string path;
  FileImagePtr bytes;
  std::optional<elf::Image> image;
  std::shared_ptr<const unwind::UnwindModule> module;
};

// A mapping, with its file, for tools that want more than the unwinder does.
struct RecordedMapping {
  uint64_t start = 0, end = 0, offset = 0;
  bool executable = false;
  const RecordedFile* file = nullptr;  // null: anonymous, or not to be had
};
struct RecordedMaps {
  unwind::UnwindMaps maps;
  std::vector<RecordedMapping> mappings;  // in the order of maps.mappings
};

struct RecordedStack {
  uint32_t pid = 0, tid = 0;
  uint64_t time = 0;
  uint64_t offset = 0;  // of the record in the file
  unwind::UnwindInput input;
  std::shared_ptr<const RecordedMaps> maps;
  perfdata::BlockPtr block;  // holds the stack's bytes
};

struct Recording {
  std::map<std::string, RecordedFile> files;
  std::vector<RecordedStack> stacks;  // in order of time
};

// Reads up to `limit` stacks, those with user registers and stack bytes.
Result<std::unique_ptr<Recording>> LoadRecording(const std::string& path, size_t limit = SIZE_MAX);

}  // namespace stackreel
