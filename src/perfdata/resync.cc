#include "perfdata/resync.h"

#include "perfdata/record_size.h"

namespace stackreel::perfdata {
namespace {

constexpr uint16_t kUnusedMisc = 0x0ff8;  // between the CPU mode and the kinds' own bits
constexpr uint16_t kHighestCpuMode = 5;

struct Header {
  uint32_t type;
  uint16_t misc, size;
};

bool IsPlausible(const Header& header) {
  if (!IsKnownRecordType(header.type) || header.size < kRecordHeaderSize) return false;
  if ((header.misc & kUnusedMisc) != 0 || (header.misc & 7) > kHighestCpuMode) return false;
  switch (static_cast<RecordType>(header.type)) {
    case RecordType::kFinishedRound:
    case RecordType::kFinishedInit:
      return header.size == kRecordHeaderSize && header.misc == 0;
    case RecordType::kCompressed:
      return header.misc == 0;
    default:
      return header.size % 8 == 0;
  }
}

// What lies behind a record and is not counted in its size; see Tokenizer::TakeExtra.
uint64_t ExtraSize(const Header& header, ByteView record, Endian endian) {
  const ByteView payload = record.subspan(kRecordHeaderSize);
  if (header.type == static_cast<uint32_t>(RecordType::kAuxtrace) && payload.size() >= 8) {
    return LoadUnaligned<uint64_t>(payload.data(), endian);
  }
  if (header.type == static_cast<uint32_t>(RecordType::kHeaderTracingData) && payload.size() >= 4) {
    return AlignTo8(LoadUnaligned<uint32_t>(payload.data(), endian));
  }
  return 0;
}

bool RecordsBeginAt(ByteView rest, bool at_end, Endian endian) {
  constexpr int kEnough = 4;
  constexpr int kEnoughAtEnd = 2;
  for (int seen = 0; seen < kEnough; ++seen) {
    if (rest.empty()) return at_end && seen >= kEnoughAtEnd;
    if (rest.size() < kRecordHeaderSize) return false;
    const Header header = {LoadUnaligned<uint32_t>(rest.data(), endian),
                           LoadUnaligned<uint16_t>(rest.data() + 4, endian),
                           LoadUnaligned<uint16_t>(rest.data() + 6, endian)};
    if (!IsPlausible(header) || header.size > rest.size()) return false;
    const bool round = header.type == static_cast<uint32_t>(RecordType::kFinishedRound);
    if (round && seen > 0) return true;
    const uint64_t extra = ExtraSize(header, rest.first(header.size), endian);
    rest = rest.subspan(header.size);
    if (extra > rest.size()) return seen > 0;  // it goes on out of sight
    rest = rest.subspan(extra);
  }
  return true;
}

}  // namespace

bool IsKnownRecordType(uint32_t type) {
  return (type >= static_cast<uint32_t>(RecordType::kMmap) &&
          type <= static_cast<uint32_t>(RecordType::kPtrAuth)) ||
         (type >= static_cast<uint32_t>(RecordType::kHeaderAttr) &&
          type <= static_cast<uint32_t>(RecordType::kSchedstatDomain)) ||
         type == kRecordTypePacMask;
}

std::optional<size_t> FindRecords(ByteView window, size_t from, bool at_end, Endian endian) {
  const size_t reach = at_end ? kRecordHeaderSize : kResyncReach;
  for (size_t at = from; window.size() >= reach && at <= window.size() - reach; ++at) {
    if (RecordsBeginAt(window.subspan(at), at_end, endian)) return at;
  }
  return std::nullopt;
}

}  // namespace stackreel::perfdata
