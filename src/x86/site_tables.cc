#include "x86/site_tables.h"

#include <algorithm>

namespace stackreel::x86 {
namespace {

constexpr size_t kAddressSize = 8;
constexpr size_t kSledEntrySize = 32;
constexpr size_t kSledFunction = 8;
constexpr size_t kSledKind = 16;
constexpr size_t kSledAlways = 17;
constexpr size_t kSledVersion = 18;
constexpr uint8_t kNewestSledVersion = 2;

// The 8 bytes at `offset`, which are within the section, after relocation.
uint64_t AddressAt(const SiteSection& section, size_t offset) {
  const Svma place = section.start + offset;
  const auto found =
      std::ranges::lower_bound(section.relocations, place, {}, &RelativeRelocation::place);
  if (found != section.relocations.end() && found->place == place) return found->value.value;
  return LoadUnaligned<uint64_t>(section.bytes.data() + offset, Endian::kLittle);
}

}  // namespace

std::vector<Svma> ReadAddressTable(const SiteSection& section) {
  std::vector<Svma> addresses;
  for (size_t at = 0; at + kAddressSize <= section.bytes.size(); at += kAddressSize) {
    const uint64_t address = AddressAt(section, at);
    if (address != 0) addresses.emplace_back(address);
  }
  std::ranges::sort(addresses);
  const auto repeated = std::ranges::unique(addresses);
  addresses.erase(repeated.begin(), repeated.end());
  return addresses;
}

SledTable ReadSledTable(const SiteSection& section) {
  SledTable table;
  for (size_t at = 0; at + kSledEntrySize <= section.bytes.size(); at += kSledEntrySize) {
    const uint8_t kind = section.bytes[at + kSledKind];
    const uint8_t version = section.bytes[at + kSledVersion];
    if (kind > static_cast<uint8_t>(SledKind::kTypedEvent) || version > kNewestSledVersion) {
      ++table.unknown;
      continue;
    }
    Sled sled;
    sled.address = Svma(AddressAt(section, at));
    sled.function = Svma(AddressAt(section, at + kSledFunction));
    if (version >= 2) {
      sled.address = sled.address + (section.start.value + at);
      sled.function = sled.function + (section.start.value + at + kSledFunction);
    }
    sled.kind = static_cast<SledKind>(kind);
    sled.always = section.bytes[at + kSledAlways] != 0;
    sled.version = version;
    table.sleds.push_back(sled);
  }
  std::ranges::sort(table.sleds, {}, &Sled::address);
  return table;
}

}  // namespace stackreel::x86
