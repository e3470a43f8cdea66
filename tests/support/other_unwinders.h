// libdw and libunwind in this process, over the stacks of a recording: what ours is held against.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "support/recorded_stacks.h"

namespace stackreel {

class OtherUnwinder {
 public:
  virtual ~OtherUnwinder() = default;
  // The program counters of a stack, innermost first, as that library gives them.
  virtual std::vector<uint64_t> Unwind(const RecordedStack& stack) = 0;
};

std::unique_ptr<OtherUnwinder> MakeLibdwUnwinder();
std::unique_ptr<OtherUnwinder> MakeLibunwindUnwinder();

// Reads memory of the recorded process: the dumped stack, then the files mapped. False if unknown.
bool ReadRecordedMemory(const RecordedStack& stack, uint64_t address, void* out, size_t size);
// The mapping that holds an address, or null.
const RecordedMapping* FindRecordedMapping(const RecordedMaps& maps, uint64_t address);

inline constexpr size_t kMaxOtherFrames = 1024;

}  // namespace stackreel
