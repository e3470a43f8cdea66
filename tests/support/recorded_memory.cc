#include <algorithm>
#include <cstring>

#include "support/other_unwinders.h"

namespace stackreel {

const RecordedMapping* FindRecordedMapping(const RecordedMaps& maps, uint64_t address) {
  auto it = std::upper_bound(
      maps.mappings.begin(), maps.mappings.end(), address,
      [](uint64_t value, const RecordedMapping& mapping) { return value < mapping.start; });
  if (it == maps.mappings.begin()) return nullptr;
  --it;
  return address < it->end ? &*it : nullptr;
}

bool ReadRecordedMemory(const RecordedStack& stack, uint64_t address, void* out, size_t size) {
  const unwind::StackView& view = stack.input.stack;
  const uint64_t offset = address - view.start().value;
  if (view.bytes().size() >= size && offset <= view.bytes().size() - size) {
    std::memcpy(out, view.bytes().data() + offset, size);
    return true;
  }
  // Recordings have executable mappings only, but a file's other segments lie at the same bias.
  const unwind::UnwindMaps& maps = stack.maps->maps;
  for (size_t i = 0; i < maps.mappings.size(); ++i) {
    const unwind::UnwindMapping& mapping = maps.mappings[i];
    const RecordedFile* file = stack.maps->mappings[i].file;
    if (file == nullptr) continue;
    const ByteView bytes = file->image->BytesAt(Svma(address - mapping.bias));
    if (bytes.size() >= size) {
      std::memcpy(out, bytes.data(), size);
      return true;
    }
  }
  return false;
}

}  // namespace stackreel
