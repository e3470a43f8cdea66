// The vDSOs of the tasks that are recorded. No file has them, so they are read from memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/build_id.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/io.h"

namespace stackreel::record {

// That of 64-bit tasks is this process's, as a kernel has one for all. That of 32-bit tasks is read
// from the first of them that still runs when it is asked for. Signal handlers of 32-bit programs
// return through it, and their system calls are made in it.
class VdsoImages {
 public:
  VdsoImages();
  // The build-id of the vDSO that a task has at [addr, addr + len); empty if that is not known.
  BuildId IdAt(uint32_t pid, uint64_t addr, uint64_t len);
  // Null if none has that build-id.
  [[nodiscard]] FileImagePtr Find(const BuildId& id) const;

  struct Image {
    BuildId id;
    FileImagePtr bytes;
  };
  [[nodiscard]] std::vector<Image> images() const;

 private:
  static Image Make(std::vector<uint8_t> bytes);
  Image native_, compat_;  // an empty id: not known
};

}  // namespace stackreel::record
