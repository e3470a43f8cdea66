#include "perfdata/header.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/byte_reader.h"
#include "base/byte_writer.h"
#include "perfdata/features.h"

namespace stackreel::perfdata {
namespace {

constexpr std::string_view kMagic2 = "PERFILE2";         // as a little-endian machine writes it
constexpr std::string_view kMagic2Swapped = "2ELIFREP";  // as a big-endian one does
constexpr std::string_view kMagic1 = "PERFFILE";         // text, the same in either byte order
constexpr size_t kFeatureBitsAt = 72;

std::optional<Endian> EndianOf(ByteView bytes) {
  const std::string_view magic = AsText(bytes.first(8));
  if (magic == kMagic2) return Endian::kLittle;
  if (magic == kMagic2Swapped) return Endian::kBig;
  if (magic != kMagic1) return std::nullopt;
  // The size is a small number in one byte order only.
  const auto size = LoadUnaligned<uint64_t>(bytes.data() + 8, Endian::kLittle);
  return size < 0x10000 ? Endian::kLittle : Endian::kBig;
}

using FeatureBitmap = std::array<uint64_t, 4>;

bool Has(const FeatureBitmap& bits, uint32_t feature) {
  return (bits[feature / 64] >> (feature % 64) & 1) != 0;
}

// Only features that somebody is known to write: perf's, or those from 128 up.
bool AllKnown(const FeatureBitmap& bits) {
  for (uint32_t feature = 0; feature < 128; ++feature) {
    if (Has(bits, feature) &&
        (feature == 0 || feature > static_cast<uint32_t>(Feature::kClnSize))) {
      return false;
    }
  }
  return true;
}

bool HasOurs(const FeatureBitmap& bits) {
  for (auto feature = static_cast<uint32_t>(Feature::kStackreelPacMask);
       feature <= static_cast<uint32_t>(Feature::kStackreelAnonymized); ++feature) {
    if (Has(bits, feature)) return true;
  }
  return false;
}

// The bitmap is an array of the writer's `unsigned long`. On a big-endian machine of 32 bits the
// halves of each u64 lie the other way round than on one of 64 bits, and nothing says which it was.
// HOSTNAME, which perf always writes, tells, and so do our features, which are written in words of
// 64 bits; without them, the reading that makes sense.
FeatureBitmap ParseFeatureBits(ByteView bytes, Endian endian) {
  FeatureBitmap wide = {};
  FeatureBitmap narrow = {};
  for (size_t i = 0; i < wide.size() && 8 * (i + 1) <= bytes.size(); ++i) {
    const uint8_t* word = bytes.data() + 8 * i;
    wide[i] = LoadUnaligned<uint64_t>(word, endian);
    narrow[i] = LoadUnaligned<uint32_t>(word, endian) |
                uint64_t{LoadUnaligned<uint32_t>(word + 4, endian)} << 32;
  }
  constexpr auto kHostname = static_cast<uint32_t>(Feature::kHostname);
  if (endian == Endian::kLittle || Has(wide, kHostname) || HasOurs(wide)) return wide;
  if (Has(narrow, kHostname)) return narrow;
  if (AllKnown(wide)) return wide;
  if (AllKnown(narrow)) return narrow;
  FeatureBitmap only_build_id = {};
  only_build_id[0] = uint64_t{1} << static_cast<uint32_t>(Feature::kBuildId);
  return only_build_id;
}

// A recording that another program compressed as a whole.
Status CheckUncompressed(ByteView bytes) {
  struct Format {
    std::string_view magic, name, program;
  };
  static constexpr Format kFormats[] = {
      {"\x1f\x8b", "gzip", "gzip"},         {"\xfd\x37\x7a\x58\x5a", "xz", "xz"},
      {"\x28\xb5\x2f\xfd", "zstd", "zstd"}, {"BZh", "bzip2", "bzip2"},
      {"\x04\x22\x4d\x18", "lz4", "lz4"},
  };
  for (const Format& format : kFormats) {
    if (!AsText(bytes).starts_with(format.magic)) continue;
    return Fail(Error(ErrorKind::kDamaged,
                      fmt::format("compressed as a whole by {}; perf.data begins with PERFILE2",
                                  format.name))
                    .AtOffset(0)
                    .WithCure(fmt::format("{} -dc FILE | stackreel report -i -", format.program)));
  }
  return {};
}

}  // namespace

std::vector<uint32_t> FileHeader::FeatureList() const {
  std::vector<uint32_t> list;
  for (uint32_t feature = 0; feature < kFeatureBits; ++feature) {
    if (HasFeature(feature)) list.push_back(feature);
  }
  return list;
}

Result<FileHeader> ParseHeader(ByteView bytes) {
  if (bytes.size() < kPipeHeaderSize) {
    return Fail(
        Error(ErrorKind::kDamaged,
              fmt::format("not a perf.data file: {} bytes, where the shortest header has 16",
                          bytes.size()))
            .AtOffset(0));
  }
  const std::optional<Endian> endian = EndianOf(bytes);
  if (!endian) TRY(CheckUncompressed(bytes));
  if (!endian) {
    return Fail(Error(ErrorKind::kDamaged, "not a perf.data file: it does not begin with PERFILE2")
                    .AtOffset(0));
  }
  FileHeader header;
  header.endian = *endian;
  ByteReader reader(bytes, *endian);
  reader.Skip(8);
  header.size = reader.U64();
  if (header.is_pipe()) return header;
  if (header.size < kFeatureBitsAt || header.size > 0x10000) {
    return Fail(
        Error(ErrorKind::kDamaged,
              fmt::format("the header gives its size as {}; 16 or 104 was expected", header.size))
            .AtOffset(8));
  }
  header.attr_size = reader.U64();
  header.attrs.offset = reader.U64();
  header.attrs.size = reader.U64();
  header.data.offset = reader.U64();
  header.data.size = reader.U64();
  reader.Skip(16);  // event_types: names of events in files before Linux 3.0
  if (!reader.ok()) {
    return Fail(
        Error(ErrorKind::kDamaged, fmt::format("the header is cut off: {} bytes of {} are there",
                                               bytes.size(), header.size))
            .AtOffset(bytes.size()));
  }
  const size_t bitmap_size = std::min<uint64_t>(header.size, bytes.size()) - kFeatureBitsAt;
  header.features = ParseFeatureBits(bytes.subspan(kFeatureBitsAt, bitmap_size), *endian);
  return header;
}

std::vector<uint8_t> EncodeHeader(const FileHeader& header) {
  ByteWriter out(header.endian);
  out.Text(header.endian == Endian::kLittle ? kMagic2 : kMagic2Swapped);
  out.U64(header.size);
  if (header.is_pipe()) return out.Take();
  out.U64(header.attr_size);
  for (const Section& section : {header.attrs, header.data, Section{}}) {
    out.U64(section.offset);
    out.U64(section.size);
  }
  for (const uint64_t word : header.features) out.U64(word);
  return out.Take();
}

}  // namespace stackreel::perfdata
