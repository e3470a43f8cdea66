#include "record/sample_trim.h"

#include <bit>

#include "base/byte_reader.h"

namespace stackreel::record {

namespace {

constexpr uint64_t kOneWordFields =
    perfdata::kSampleIdentifier | perfdata::kSampleIp | perfdata::kSampleTid |
    perfdata::kSampleTime | perfdata::kSampleAddr | perfdata::kSampleId |
    perfdata::kSampleStreamId | perfdata::kSampleCpu | perfdata::kSamplePeriod;

// READ: [events] or value, [enabled], [running], then of each event [value], [id], [lost].
bool SkipRead(ByteReader& in, uint64_t format) {
  constexpr uint64_t kTimes = perfdata::kReadTotalTimeEnabled | perfdata::kReadTotalTimeRunning;
  constexpr uint64_t kOfEach = perfdata::kReadId | perfdata::kReadLost;
  const bool group = (format & perfdata::kReadGroup) != 0;
  const uint64_t first = in.U64();
  const uint64_t events = group ? first : 1;
  if (events > in.remaining() / 8) return false;
  const auto words = static_cast<uint64_t>(std::popcount(format & kOfEach)) + (group ? 1 : 0);
  in.Skip(8 * (static_cast<uint64_t>(std::popcount(format & kTimes)) + events * words));
  return in.ok();
}

// The offset of STACK_USER's size in the record; 0 if there is none to find.
size_t FindStack(ByteView record, const perfdata::Attr& attr) {
  const uint64_t type = attr.sample_type;
  if ((type & perfdata::kSampleStackUser) == 0) return 0;
  ByteReader in(record, kNativeEndian);
  in.Skip(8 + 8 * static_cast<uint64_t>(std::popcount(type & kOneWordFields)));
  if ((type & perfdata::kSampleRead) != 0 && !SkipRead(in, attr.read_format)) return 0;
  if ((type & perfdata::kSampleCallchain) != 0) {
    const uint64_t count = in.U64();
    if (count > in.remaining() / 8) return 0;
    in.Skip(8 * count);
  }
  if ((type & perfdata::kSampleRaw) != 0) in.Skip(in.U32());
  if ((type & perfdata::kSampleBranchStack) != 0) return 0;  // not with stacks
  if ((type & perfdata::kSampleRegsUser) != 0 && in.U64() != 0) {
    in.Skip(8 * static_cast<uint64_t>(std::popcount(attr.sample_regs_user)));
  }
  return in.ok() && in.remaining() >= 8 ? in.offset() : 0;
}

}  // namespace

void AppendTrimmed(ByteView record, const perfdata::Attr& attr, std::vector<uint8_t>& out) {
  const auto append = [&out](ByteView bytes) { out.insert(out.end(), bytes.begin(), bytes.end()); };
  const size_t at = FindStack(record, attr);
  if (at == 0) return append(record);
  ByteReader in(record, kNativeEndian);
  in.Seek(at);
  const uint64_t size = in.U64();
  const ByteView stack = in.Bytes(size);
  const uint64_t valid = size != 0 ? in.U64() : 0;
  if (!in.ok() || valid > size || size - valid < 16) return append(record);
  // As small as the alignment of records lets it be, and larger than what is valid.
  const uint64_t kept = (valid + 8) / 8 * 8 + 8;
  if (kept >= size) return append(record);

  const size_t start = out.size();
  append(record.first(at));
  out.resize(out.size() + 8);
  StoreUnaligned<uint64_t>(out.data() + start + at, kept, kNativeEndian);
  append(stack.first(valid));
  out.resize(out.size() + (kept - valid), 0);
  append(record.subspan(at + 8 + size));  // dyn_size, and what follows it
  StoreUnaligned<uint16_t>(out.data() + start + 6, static_cast<uint16_t>(out.size() - start),
                           kNativeEndian);
}

}  // namespace stackreel::record
