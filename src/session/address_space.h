// The mappings of one process at one time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/address.h"
#include "base/interval_map.h"
#include "session/module.h"

namespace stackreel::session {

struct Mapping {
  ModuleId module = kNoModule;
  FileOffset offset;  // file offset that the mapping's start shows
  uint32_t prot = 0;  // PROT_*; 0 if the record did not say (MMAP)
  bool executable = true;
  bool jit = false;  // a JIT compiler may have put code here: the process's jitdump names it
};
// The mapping's part that begins n bytes later.
inline void Advance(Mapping& mapping, uint64_t n) { mapping.offset = mapping.offset + n; }

// Immutable once shared: whoever holds a pointer sees the maps as they were then.
class AddressSpace {
 public:
  using Entry = IntervalMap<Mapping>::Entry;
  [[nodiscard]] const Entry* Find(Avma avma) const { return map_.Find(avma.value); }
  [[nodiscard]] const std::vector<Entry>& entries() const { return map_.entries(); }
  // The end of the highest executable mapping; 0 if there is none.
  [[nodiscard]] Avma HighestExecutableEnd() const { return highest_executable_end_; }
  // A number that no other version of any address space has.
  [[nodiscard]] uint64_t version() const { return version_; }

  void Assign(Avma start, Avma end, const Mapping& mapping);
  void Erase(Avma start, Avma end);

 private:
  static uint64_t NextVersion();
  void UpdateHighestExecutableEnd();

  IntervalMap<Mapping> map_;
  Avma highest_executable_end_;
  uint64_t version_ = NextVersion();
};
using AddressSpacePtr = std::shared_ptr<const AddressSpace>;

}  // namespace stackreel::session
