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

namespace {

// How far an address is from a mapping; 0 inside.
uint64_t Distance(const RecordedMapping& mapping, uint64_t address) {
  if (address < mapping.start) return mapping.start - address;
  return address < mapping.end ? 0 : address - mapping.end + 1;
}

// Recordings have executable mappings only, but a file's other segments lie at the same bias. The
// nearest mapping tells: what dlclose took away is still known, so another file's segments can seem
// to lie at the address, too.
bool ReadMappedFile(const RecordedStack& stack, uint64_t address, void* out, size_t size) {
  ByteView nearest;
  uint64_t least = UINT64_MAX;
  for (size_t i = 0; i < stack.maps->mappings.size(); ++i) {
    const RecordedMapping& mapping = stack.maps->mappings[i];
    if (mapping.file == nullptr || !mapping.executable) continue;
    const uint64_t distance = Distance(mapping, address);
    if (distance >= least) continue;
    const uint64_t bias = stack.maps->maps.mappings[i].bias;
    const ByteView bytes = mapping.file->image->BytesAt(Svma(address - bias));
    if (bytes.empty()) continue;
    nearest = bytes;
    least = distance;
  }
  if (nearest.empty()) return false;
  // libunwind reads whole words: the last of a segment is filled up, as its page is.
  std::memset(out, 0, size);
  std::memcpy(out, nearest.data(), std::min(size, nearest.size()));
  return true;
}

}  // namespace

bool ReadRecordedMemory(const RecordedStack& stack, uint64_t address, void* out, size_t size) {
  const unwind::StackView& view = stack.input.stack;
  const uint64_t offset = address - view.start().value;
  if (view.bytes().size() >= size && offset <= view.bytes().size() - size) {
    std::memcpy(out, view.bytes().data() + offset, size);
    return true;
  }
  return ReadMappedFile(stack, address, out, size);
}

}  // namespace stackreel
