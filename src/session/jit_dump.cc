#include "session/jit_dump.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace stackreel::session {
namespace {

// "JiTD", as a number of the machine that wrote it.
constexpr uint32_t kMagic = 0x4a695444;
constexpr size_t kJitHeaderSize = 40;
constexpr size_t kJitRecordHeaderSize = 16;
constexpr uint64_t kFlagCpuClock = 1;

enum RecordId : uint32_t { kLoad = 0, kMove = 1, kDebugInfo = 2, kClose = 3, kUnwindingInfo = 4 };

}  // namespace

//   header   magic 4 · version 4 · size 4 · EM_* 4 · pad 4 · pid 4 · time 8 · flags 8
//   record   id 4 · size 4 · time 8 · …
Result<JitDump> JitDump::Parse(ByteView bytes) {
  if (bytes.size() < kJitHeaderSize) return Fail(ErrorKind::kDamaged, "too short to be a jitdump");
  JitDump dump;
  if (LoadUnaligned<uint32_t>(bytes.data(), Endian::kLittle) == kMagic) {
    dump.endian_ = Endian::kLittle;
  } else if (LoadUnaligned<uint32_t>(bytes.data(), Endian::kBig) == kMagic) {
    dump.endian_ = Endian::kBig;
  } else {
    return Fail(ErrorKind::kDamaged, "not a jitdump: it does not begin with JiTD");
  }
  ByteReader reader(bytes, dump.endian_);
  reader.Skip(8);
  const uint32_t header_size = reader.U32();
  dump.machine_ = static_cast<uint16_t>(reader.U32());
  reader.Skip(16);
  dump.has_cpu_clock_ = (reader.U64() & kFlagCpuClock) != 0;
  reader.Seek(std::max<uint64_t>(header_size, kJitHeaderSize));
  while (reader.remaining() >= kJitRecordHeaderSize) {
    const uint32_t id = reader.U32();
    const uint32_t size = reader.U32();
    const uint64_t time = reader.U64();
    const uint64_t body_at = reader.offset();
    if (size < kJitRecordHeaderSize || size - kJitRecordHeaderSize > reader.remaining()) {
      ++dump.bad_records_;
      break;
    }
    if (id == kClose) break;
    const ByteView body = reader.Bytes(size - kJitRecordHeaderSize);
    if (!dump.TakeRecord(id, time, ByteReader(body, dump.endian_), body_at)) ++dump.bad_records_;
  }
  dump.UndoElfHeaderShift();
  dump.Index();
  return dump;
}

// Records with an id that is not known are for readers to come.
bool JitDump::TakeRecord(uint32_t id, uint64_t time, ByteReader body, uint64_t body_at) {
  switch (id) {
    case kLoad: {
      const bool good = TakeLoad(time, body, body_at);
      announced_ = {};
      return good;
    }
    case kMove:
      return TakeMove(time, body);
    case kDebugInfo:
      return TakeLines(body);
    case kUnwindingInfo:
      return TakeUnwindingInfo(body);
    default:
      return true;
  }
}

// pid 4 · tid 4 · vma 8 · start 8 · size 8 · number 8 · name, NUL · code
bool JitDump::TakeLoad(uint64_t time, ByteReader body, uint64_t body_at) {
  JitCode code;
  code.time = time;
  body.Skip(16);
  code.start = body.U64();
  code.size = body.U64();
  const uint64_t number = body.U64();
  code.name = body.CString();
  code.offset = body_at + body.offset();
  // The bytes may be left out, but the offset must be this code's alone.
  if (!body.ok() || code.size == 0 || code.size > body.remaining() ||
      code.start + code.size < code.start) {
    return false;
  }
  code.eh_frame = announced_.eh_frame;
  if (announced_.code_start == code.start) {
    code.first_line = announced_.first_line;
    code.line_count = announced_.line_count;
  }
  by_number_[number] = codes_.size();
  codes_.push_back(code);
  return true;
}

// pid 4 · tid 4 · vma 8 · old start 8 · new start 8 · size 8 · number 8
bool JitDump::TakeMove(uint64_t time, ByteReader body) {
  body.Skip(16);
  body.Skip(8);
  const uint64_t new_start = body.U64();
  const uint64_t size = body.U64();
  const auto moved = by_number_.find(body.U64());
  if (!body.ok() || size == 0 || new_start + size < new_start || moved == by_number_.end())
    return false;
  JitCode code = codes_[moved->second];
  code.time = time;
  code.start = new_start;
  code.size = std::min(code.size, size);
  codes_.push_back(code);
  return true;
}

// start 8 · entries 8 · {address 8 · line 4 · column or discriminator 4 · file, NUL}…
// "\xff", NUL stands for the file before.
bool JitDump::TakeLines(ByteReader body) {
  constexpr std::string_view kSameFile = "\xff";
  announced_.code_start = body.U64();
  const uint64_t count = body.U64();
  announced_.first_line = lines_.size();
  announced_.line_count = 0;
  std::string_view file;
  for (uint64_t i = 0; i < count; ++i) {
    JitLine line;
    line.offset = body.U64() - announced_.code_start;
    line.line = body.U32();
    body.Skip(4);
    const std::string_view name = body.CString();
    if (!body.ok()) {
      lines_.resize(announced_.first_line);
      announced_.line_count = 0;
      return false;
    }
    if (name != kSameFile) file = name;
    line.file = file;
    lines_.push_back(line);
    ++announced_.line_count;
  }
  const auto first = lines_.begin() + static_cast<std::ptrdiff_t>(announced_.first_line);
  std::stable_sort(first, lines_.end(),
                   [](const JitLine& a, const JitLine& b) { return a.offset < b.offset; });
  return true;
}

// size 8 · of which .eh_frame_hdr 8 · mapped 8 · .eh_frame · .eh_frame_hdr
bool JitDump::TakeUnwindingInfo(ByteReader body) {
  const uint64_t size = body.U64();
  const uint64_t header_size = body.U64();
  body.Skip(8);
  announced_.eh_frame = {};
  if (!body.ok() || header_size > size || size > body.remaining()) return false;
  announced_.eh_frame = body.Bytes(size - header_size);
  return true;
}

// V8 adds the size of an ELF header to each address, which perf's first reader did not take off
// again. Who does not do so has, in some function, an entry below that.
void JitDump::UndoElfHeaderShift() {
  constexpr uint64_t kElfHeaderSize = 64;
  if (std::any_of(lines_.begin(), lines_.end(),
                  [](const JitLine& line) { return line.offset < kElfHeaderSize; })) {
    return;
  }
  for (JitLine& line : lines_) line.offset -= kElfHeaderSize;
}

void JitDump::Index() {
  std::stable_sort(codes_.begin(), codes_.end(), [](const JitCode& a, const JitCode& b) {
    return a.start != b.start ? a.start < b.start : a.time < b.time;
  });
  reach_.resize(codes_.size());
  IndexRange(0, codes_.size());
  by_number_.clear();
  by_svma_.resize(codes_.size());
  std::iota(by_svma_.begin(), by_svma_.end(), 0u);
  std::stable_sort(by_svma_.begin(), by_svma_.end(), [this](uint32_t a, uint32_t b) {
    // Of one that was moved in part the whole is found.
    return std::pair(codes_[a].offset, codes_[a].size) <
           std::pair(codes_[b].offset, codes_[b].size);
  });
}

// A balanced tree laid over the sorted codes: the root of a range is its middle, and knows how far
// the codes of the range reach.
uint64_t JitDump::IndexRange(size_t first, size_t last) {
  if (first == last) return 0;
  const size_t middle = first + (last - first) / 2;
  const uint64_t end = codes_[middle].start + codes_[middle].size;
  reach_[middle] = std::max({end, IndexRange(first, middle), IndexRange(middle + 1, last)});
  return reach_[middle];
}

void JitDump::FindIn(size_t first, size_t last, uint64_t avma, uint64_t time,
                     const JitCode*& best) const {
  if (first == last) return;
  const size_t middle = first + (last - first) / 2;
  if (reach_[middle] <= avma) return;
  const JitCode& code = codes_[middle];
  FindIn(first, middle, avma, time, best);
  if (avma < code.start) return;
  if (avma - code.start < code.size && code.time <= time &&
      (best == nullptr || code.time >= best->time)) {
    best = &code;
  }
  FindIn(middle + 1, last, avma, time, best);
}

const JitCode* JitDump::FindBySvma(Svma svma) const {
  const auto above =
      std::upper_bound(by_svma_.begin(), by_svma_.end(), svma.value,
                       [this](uint64_t offset, uint32_t i) { return offset < codes_[i].offset; });
  if (above == by_svma_.begin()) return nullptr;
  const JitCode& code = codes_[*(above - 1)];
  return svma.value - code.offset < code.size ? &code : nullptr;
}

const JitCode* JitDump::Find(Avma avma, uint64_t time) const {
  const JitCode* best = nullptr;
  FindIn(0, codes_.size(), avma.value, time, best);
  return best;
}

}  // namespace stackreel::session
