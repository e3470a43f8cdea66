#include "patch/journal.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/byte_reader.h"
#include "base/byte_writer.h"

namespace stackreel::patch {
namespace {

constexpr uint32_t kMagic = 0x4a505253;
constexpr uint16_t kVersion = 1;
constexpr size_t kHeaderSize = 12;
constexpr size_t kMapSize = 2 * x86::RelocationMap::kCapacity;
constexpr size_t kEncodedSize = 3 * 8 + 4 + 4 + 2 * kMaxSiteLength + kMapSize;

void EncodeSite(const Site& site, ByteWriter& out) {
  out.U64(site.address.value);
  out.U64(site.stub.value);
  out.U64(site.out_of_line.value);
  out.U32(site.function);
  out.U8(static_cast<uint8_t>(site.kind));
  out.U8(site.before);
  out.U8(site.original.length);
  out.U8(static_cast<uint8_t>(site.map.size()));
  out.Bytes(site.original.bytes);
  out.Bytes(site.patched.bytes);
  for (size_t i = 0; i < site.map.size(); ++i) {
    out.U8(site.map.entry(i).from);
    out.U8(site.map.entry(i).to);
  }
  out.Zeros(kMapSize - 2 * site.map.size());
}

Result<Site> DecodeSite(ByteReader in) {
  Site site;
  site.address = Avma(in.U64());
  site.stub = Avma(in.U64());
  site.out_of_line = Avma(in.U64());
  site.function = in.U32();
  site.kind = static_cast<SiteKind>(in.U8());
  site.before = in.U8();
  const uint8_t length = in.U8();
  const uint8_t entries = in.U8();
  const ByteView original = in.Bytes(kMaxSiteLength);
  const ByteView patched = in.Bytes(kMaxSiteLength);
  if (length > kMaxSiteLength || entries > x86::RelocationMap::kCapacity) {
    return Fail(ErrorKind::kDamaged,
                fmt::format("a site of {} bytes, {} instructions", length, entries));
  }
  site.original = SiteBytes(original.first(length));
  site.patched = SiteBytes(patched.first(length));
  for (uint8_t i = 0; i < entries; ++i) {
    const uint8_t from = in.U8();
    site.map.Add({from, in.U8()});
  }
  TRY(CheckSite(site));
  return site;
}

}  // namespace

uint64_t EncodedSize(size_t sites) { return kHeaderSize + uint64_t{sites} * kEncodedSize; }

std::vector<uint8_t> EncodeSites(std::span<const Site* const> sites) {
  ByteWriter out(Endian::kLittle);
  out.U32(kMagic);
  out.U16(kVersion);
  out.U16(kEncodedSize);
  out.U32(static_cast<uint32_t>(sites.size()));
  for (const Site* site : sites) EncodeSite(*site, out);
  return out.Take();
}

Result<std::vector<Site>> DecodeSites(ByteView bytes) {
  ByteReader in(bytes);
  const uint32_t magic = in.U32();
  const uint16_t version = in.U16();
  const uint16_t size = in.U16();
  const uint32_t count = in.U32();
  if (!in.ok() || magic != kMagic) return Fail(ErrorKind::kDamaged, "no list of patch sites");
  if (version != kVersion || size != kEncodedSize) {
    return Fail(ErrorKind::kUnsupported,
                fmt::format("patch sites of version {}, not {}", version, kVersion));
  }
  if (count > in.remaining() / kEncodedSize) {
    return std::unexpected(
        Error(ErrorKind::kDamaged, "the list of patch sites is cut off").AtOffset(kHeaderSize));
  }
  std::vector<Site> sites;
  sites.reserve(count);
  for (uint32_t i = 0; i < count; ++i) {
    const size_t at = in.offset();
    auto site = DecodeSite(ByteReader(in.Bytes(kEncodedSize)));
    if (!site) return std::unexpected(std::move(site.error()).AtOffset(at));
    if (!sites.empty() && site->begin() < sites.back().end()) {
      return std::unexpected(Error(ErrorKind::kDamaged, "patch sites overlap").AtOffset(at));
    }
    sites.push_back(*site);
  }
  return sites;
}

}  // namespace stackreel::patch
