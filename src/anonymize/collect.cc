#include "anonymize/collect.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <variant>

#include "session/limits.h"
#include "session/module.h"

namespace stackreel::anonymize {
namespace {

using perfdata::CpuMode;

constexpr uint64_t kKernelBit = uint64_t{1} << 63;
constexpr unsigned kUserBits = 47;      // x86-64 with four levels of page tables
constexpr unsigned kMostUserBits = 56;  // with five
constexpr unsigned kUserBitsArm64 = 48;
constexpr unsigned kLeastUserBits = 36;  // arm64 with pages of 16 KB and two levels
constexpr uint64_t kSmallestPageSize = 4096, kLargestPageSize = 65536;

// Reads a source from its start by ReadAt, whoever reads it besides.
class SourceFromStart : public FileSource {
 public:
  explicit SourceFromStart(FileSource& source) : source_(source) {}
  [[nodiscard]] std::string_view name() const override { return source_.name(); }
  [[nodiscard]] std::optional<uint64_t> size() const override { return source_.size(); }
  Result<size_t> Read(std::span<uint8_t> out) override {
    TRY_ASSIGN(const size_t n, source_.ReadAt(at_, out));
    at_ += n;
    return n;
  }
  Result<size_t> ReadAt(uint64_t offset, std::span<uint8_t> out) override {
    return source_.ReadAt(offset, out);
  }
  FileImagePtr MapAt(uint64_t offset, size_t size) override { return source_.MapAt(offset, size); }

 private:
  FileSource& source_;
  uint64_t at_ = 0;
};

// Whether a machine's name says so. Others say nothing: a kernel of 64 bits calls itself i686 for
// who asks it to (personality(2)), and a name may be damaged.
bool IsNamed64Bit(std::string_view arch) {
  return arch.find("64") != std::string_view::npos || arch == "s390x" || arch == "alpha";
}

// Mappings as they were recorded, until all is known that says what to make of them.
class Collector : public perfdata::TimedSink {
 public:
  Collector(const perfdata::Reader& reader, Collected& out) : reader_(reader), out_(out) {}
  Status OnTimedRecord(const perfdata::TimedRecord& timed) override;
  void Finish();

 private:
  struct KernelMapping {
    SpaceId space = 0;
    MappingRecord record;
    StringInterner::Id module = 0;
    MappingKind kind = MappingKind::kKernel;
  };
  void OnMapping(const MappingRecord& mapping);
  void OnBuildId(const BuildId& id, std::string_view filename) {
    if (!id.empty()) out_.build_ids.emplace(id, out_.names.Intern(filename));
  }
  void MeasureWidth();
  void NoteImpossible(const MappingRecord& record);

  const perfdata::Reader& reader_;
  Collected& out_;
  SpaceTracker spaces_;
  std::vector<KernelMapping> kernel_;
  uint64_t user_bits_seen_ = 0;  // of all user addresses, or'ed
  uint64_t user_end_ = 0;
  bool has_wide_address_ = false, has_narrow_address_ = false;
};

// Of mappings and binaries.
bool IsCollected(uint32_t type) {
  using perfdata::RecordType;
  switch (static_cast<RecordType>(type)) {
    case RecordType::kMmap:
    case RecordType::kMmap2:
    case RecordType::kComm:
    case RecordType::kFork:
    case RecordType::kKsymbol:
    case RecordType::kHeaderBuildId:
      return true;
    default:
      return false;
  }
}

Status Collector::OnTimedRecord(const perfdata::TimedRecord& timed) {
  if (!IsCollected(timed.raw.type)) return {};
  const perfdata::Attr* attr =
      timed.event ? &reader_.events().events()[*timed.event].attr : nullptr;
  const auto record = perfdata::DecodeRecord(timed.raw, {reader_.endian(), attr});
  if (!record) {  // the second pass drops it
    out_.counters.Add("anonymize.bad_record");
    return {};
  }
  spaces_.Apply(*record);
  if (const auto mapping = MappingOf(*record)) OnMapping(*mapping);
  if (const auto* mmap = std::get_if<perfdata::Mmap2>(&record->body)) {
    OnBuildId(mmap->build_id, mmap->filename);
  } else if (const auto* binary = std::get_if<perfdata::HeaderBuildId>(&record->body)) {
    OnBuildId(binary->build_id, binary->filename);
  }
  return {};
}

void Collector::OnMapping(const MappingRecord& mapping) {
  const SpaceId space = spaces_.MappingSpace(mapping.mode, mapping.pid);
  const bool is_kernel = space < kFirstUserSpace;
  const StringInterner::Id module = out_.names.Intern(mapping.filename);
  const MappingKind kind = KindOf(mapping, is_kernel);
  const uint64_t wide = mapping.addr | (kind == MappingKind::kKernel ? mapping.pgoff : 0);
  has_wide_address_ = has_wide_address_ || wide > UINT32_MAX;
  has_narrow_address_ = has_narrow_address_ || (wide != 0 && wide <= UINT32_MAX);
  if (is_kernel) {
    kernel_.push_back({space, mapping, module, kind});
    kernel_.back().record.filename = out_.names.Text(module);
    return;
  }
  if (session::ReachesBeyondMemory(mapping.addr, mapping.len)) {
    const uint64_t last = mapping.addr + std::min(mapping.len, UINT64_MAX - mapping.addr) - 1;
    out_.impossible.push_back({mapping.addr, mapping.addr + 1});
    out_.impossible.push_back({last, last + 1});
    return;
  }
  if (out_.spaces.size() <= space) out_.spaces.resize(space + 1);
  const uint64_t end = mapping.addr + mapping.len;
  if (mapping.addr >= end) return;
  out_.spaces[space].mappings.insert({mapping.addr, end, mapping.pgoff, module, kind});
  if ((mapping.addr & kKernelBit) != 0) return;  // [vsyscall]
  user_bits_seen_ |= mapping.addr | end;
  user_end_ = std::max(user_end_, end);
}

void Collector::MeasureWidth() {
  out_.width.is_64_bit = IsNamed64Bit(out_.features.arch) || has_wide_address_ ||
                         (out_.features.arch.empty() && !has_narrow_address_);
  out_.width.has_signatures = out_.features.arch == "aarch64";
  const auto bits = static_cast<unsigned>(std::bit_width(user_end_ - 1));
  if (!out_.width.is_64_bit) {
    out_.width.user_bits = 32;
  } else if (out_.width.has_signatures) {
    out_.width.user_bits =
        user_end_ == 0 ? kUserBitsArm64 : std::clamp(bits, kLeastUserBits, kMostUserBits);
  } else if (user_end_ != 0) {
    out_.width.user_bits = std::clamp(bits, kUserBits, kMostUserBits);
  }
  const bool is_x86 = out_.features.arch == "x86_64" || out_.features.arch.ends_with("86");
  if (!is_x86 && user_bits_seen_ != 0) {
    const uint64_t lowest = user_bits_seen_ & (~user_bits_seen_ + 1);
    out_.page_size = std::clamp(lowest, kSmallestPageSize, kLargestPageSize);
  }
}

void Collector::NoteImpossible(const MappingRecord& record) {
  if (record.addr == 0 || record.len == 0) return;
  const uint64_t end = record.addr + std::min(record.len, UINT64_MAX - record.addr);
  if (record.len <= session::kMostKernelModuleBytes) {
    out_.impossible.push_back({record.addr, end});
  } else {
    out_.impossible.push_back({record.addr, record.addr + 1});
    out_.impossible.push_back({end - 1, end});
  }
}

void Collector::Finish() {
  MeasureWidth();
  out_.spaces.resize(std::max(spaces_.count(), kFirstUserSpace));
  for (const KernelMapping& mapping : kernel_) {
    const MappingRecord& record = mapping.record;
    const KernelExtent extent =
        ExtentOfKernel(mapping.kind, record.addr, record.len, record.pgoff, out_.width);
    if (extent.start >= extent.end) {
      NoteImpossible(record);
      continue;
    }
    out_.spaces[mapping.space].mappings.insert(
        {extent.start, extent.end, record.pgoff, mapping.module, mapping.kind});
  }
}

}  // namespace

Result<RereadableRecording::Opened> RereadableRecording::Open() const {
  Opened opened;
  std::vector<FileSource*> parts;
  for (FileSource* source : parts_) {
    opened.sources.push_back(std::make_unique<SourceFromStart>(*source));
    parts.push_back(opened.sources.back().get());
  }
  if (!data_->size()) return Fail(ErrorKind::kUnsupported, "a pipe cannot be read twice");
  opened.sources.push_back(std::make_unique<SourceFromStart>(*data_));
  TRY_ASSIGN(opened.reader,
             perfdata::Reader::OpenDirectory(*opened.sources.back(), std::move(parts)));
  return opened;
}

Result<std::shared_ptr<const RereadableRecording::SideBandRead>> RereadableRecording::ReadSideBand(
    const std::function<perfdata::TimedSink&(const perfdata::Reader&)>& sink) const {
  if (side_band_ != nullptr) {
    TRY(side_band_->side_band.Repeat(sink(*side_band_->opened.reader)));
    return side_band_;
  }
  auto read = std::make_shared<SideBandRead>();
  TRY_ASSIGN(read->opened, Open());
  TRY(read->side_band.Read(*read->opened.reader, sink(*read->opened.reader)));
  if (read->side_band.is_kept()) side_band_ = read;
  return read;
}

KernelExtent ExtentOfKernel(MappingKind kind, uint64_t addr, uint64_t len, uint64_t pgoff,
                            const AddressWidth& width) {
  constexpr uint64_t kImageAlignment = uint64_t{2} << 20;
  constexpr uint64_t kTop = 4096;  // is never mapped
  const uint64_t limit = width.is_64_bit ? UINT64_MAX - kTop + 1 : (uint64_t{1} << 32) - kTop;
  const uint64_t end = std::min(addr + std::min(len, UINT64_MAX - addr), limit);
  if (kind == MappingKind::kModule) {
    return addr == 0 || len > session::kMostKernelModuleBytes ? KernelExtent{}
                                                              : KernelExtent{addr, end};
  }
  if (pgoff != 0 && pgoff >= addr + std::min(len, UINT64_MAX - addr)) return {};
  uint64_t start = addr;
  const bool starts_below = width.is_64_bit ? (addr & kKernelBit) == 0 : addr == 0;
  if (starts_below) start = pgoff & ~(kImageAlignment - 1);
  if (start == 0 || start >= end) return {};
  return {start, start + std::min(end - start, session::MostKernelBytes(start))};
}

std::optional<MappingRecord> MappingOf(const perfdata::Record& record) {
  const auto mode = static_cast<CpuMode>(record.misc & perfdata::kMiscCpuModeMask);
  if (const auto* mmap = std::get_if<perfdata::Mmap>(&record.body)) {
    const bool executable = (record.misc & perfdata::kMiscMmapData) == 0;
    return MappingRecord{mode,        mmap->pid,  mmap->addr, mmap->len,
                         mmap->pgoff, executable, 0,          mmap->filename};
  }
  if (const auto* mmap2 = std::get_if<perfdata::Mmap2>(&record.body)) {
    return MappingRecord{mode,         mmap2->pid,     mmap2->addr,
                         mmap2->len,   mmap2->pgoff,   session::IsExecutable(mmap2->prot),
                         mmap2->flags, mmap2->filename};
  }
  constexpr uint16_t kUnregister = 1;
  const auto* symbol = std::get_if<perfdata::Ksymbol>(&record.body);
  if (symbol == nullptr || (symbol->flags & kUnregister) != 0) return std::nullopt;
  return MappingRecord{CpuMode::kKernel, UINT32_MAX, symbol->addr, symbol->len, 0, true, 0,
                       symbol->name};
}

MappingKind KindOf(const MappingRecord& mapping, bool is_kernel_space) {
  const std::string_view name = mapping.filename;
  if (is_kernel_space) {
    const bool is_kernel =
        name.starts_with("[kernel.kallsyms") || name.starts_with("[guest.kernel.kallsyms");
    return is_kernel ? MappingKind::kKernel : MappingKind::kModule;
  }
  // The kernel names memory without a file so; its pgoff is an address then.
  const bool has_no_file = name.empty() || name.starts_with("//") || name.starts_with("[");
  return has_no_file ? MappingKind::kAnonymous : MappingKind::kFile;
}

Result<std::unique_ptr<Collected>> Collect(const RereadableRecording& recording) {
  auto collected = std::make_unique<Collected>();
  std::optional<Collector> collector;
  TRY_ASSIGN(const auto in,
             recording.ReadSideBand([&](const perfdata::Reader& reader) -> perfdata::TimedSink& {
               return collector.emplace(reader, *collected);
             }));
  collected->read = in->side_band.read();
  const perfdata::Reader& reader = *in->opened.reader;
  collected->container = reader.container();
  collected->endian = reader.endian();
  collected->events = reader.events().events();
  collected->features = reader.features();
  collected->counters.Merge(reader.counters());
  collector->Finish();
  return collected;
}

}  // namespace stackreel::anonymize
