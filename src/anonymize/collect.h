// The first pass: what the recording has. Events and features (in a pipe they come among the
// records), and every mapping of every address space.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "anonymize/side_band.h"
#include "anonymize/space.h"
#include "base/counters.h"
#include "base/error.h"
#include "base/interner.h"
#include "base/io.h"
#include "perfdata/features.h"
#include "perfdata/reader.h"

namespace stackreel::anonymize {

// A recording that can be read several times: a file (a pipe's content too), or the files of a
// directory. The sources must outlive it and be such that can be sought in.
class RereadableRecording {
 public:
  // `parts` as for perfdata::Reader::OpenDirectory.
  explicit RereadableRecording(FileSource& data, std::vector<FileSource*> parts = {})
      : data_(&data), parts_(std::move(parts)) {}

  // A reader with the sources it reads from.
  struct Opened {
    std::vector<std::unique_ptr<FileSource>> sources;
    std::unique_ptr<perfdata::Reader> reader;
  };
  // All records but samples, in order of time. They are read once and kept, unless they are many.
  struct SideBandRead {
    Opened opened;  // its reader has read to its end: what it knows of events and features is all
    SideBand side_band;
  };
  // `sink` makes who takes them, given the reader, which lives while what is returned or this does.
  Result<std::shared_ptr<const SideBandRead>> ReadSideBand(
      const std::function<perfdata::TimedSink&(const perfdata::Reader&)>& sink) const;
  // From the start, each time. kUnsupported if a source cannot be sought in.
  [[nodiscard]] Result<Opened> Open() const;
  [[nodiscard]] std::string_view name() const { return data_->name(); }

 private:
  FileSource* data_;
  std::vector<FileSource*> parts_;
  mutable std::shared_ptr<const SideBandRead> side_band_;
};

// What a mapping is of.
enum class MappingKind : uint8_t {
  kFile,       // pgoff is an offset in a file
  kAnonymous,  // pgoff may be an address
  kKernel,     // the kernel proper: pgoff is the address of a symbol
  kModule,     // a kernel module, or a BPF program's or trampoline's symbol
};

// A mapping as it was recorded; the same one is kept once a space.
struct CollectedMapping {
  uint64_t start = 0, end = 0;  // of kernel memory: as ExtentOfKernel has it
  uint64_t pgoff = 0;
  StringInterner::Id module = 0;  // its file's name
  MappingKind kind = MappingKind::kFile;
  friend auto operator<=>(const CollectedMapping&, const CollectedMapping&) = default;
};

// All that was ever mapped in a space.
struct CollectedSpace {
  std::set<CollectedMapping> mappings;
};

// How wide the recorded machine's addresses are.
struct AddressWidth {
  bool is_64_bit = true;
  // Bits of an address that vary in user space: 47, or up to 56 where something lies above; 32. On
  // arm64 as many as the highest mapping needs, as those above may be a signature (pointer
  // authentication): readers take them away, and know by that mapping how many they are.
  unsigned user_bits = 47;
  bool has_signatures = false;
};

// Of a kernel's memory.
struct KernelExtent {
  uint64_t start = 0, end = 0;
};

struct Collected {
  perfdata::Container container = perfdata::Container::kFile;
  Endian endian = Endian::kLittle;
  std::vector<perfdata::Event> events;
  perfdata::Features features;
  perfdata::ReadEnd read;
  Counters counters;
  AddressWidth width;
  uint64_t page_size = 4096;  // of the recorded machine; where that is not known, as mappings lie
  std::vector<CollectedSpace> spaces;  // by SpaceId
  // What is said of kernels and their modules, or of a process, and cannot be: nothing lies there,
  // yet the addresses may be such. Of what is too large, the first and the last byte.
  std::vector<KernelExtent> impossible;
  StringInterner names;
  // Of files that records give both of: what is mapped, and HEADER_BUILD_ID.
  std::set<std::pair<BuildId, StringInterner::Id>> build_ids;
};

// The memory that a kernel mapping is about. Of the kernel proper perf may say more than there is:
// from 0 on, or up to the end of memory; `pgoff`, the address of a symbol near its start, then
// tells where it begins, and it is cut to what a kernel may have. Of a module that is larger than
// any nothing is known, as session has it.
KernelExtent ExtentOfKernel(MappingKind kind, uint64_t addr, uint64_t len, uint64_t pgoff,
                            const AddressWidth& width);

// What an MMAP or MMAP2 record, or a KSYMBOL that registers, maps.
struct MappingRecord {
  perfdata::CpuMode mode = perfdata::CpuMode::kUnknown;
  uint32_t pid = 0;
  uint64_t addr = 0, len = 0, pgoff = 0;
  bool executable = false;
  uint32_t flags = 0;
  std::string_view filename;  // of the record
};
// Nothing if the record is none of these.
std::optional<MappingRecord> MappingOf(const perfdata::Record& record);
MappingKind KindOf(const MappingRecord& mapping, bool is_kernel_space);

// Reads it all. An Error is a failure to read; damage stands in `read`.
Result<std::unique_ptr<Collected>> Collect(const RereadableRecording& recording);

}  // namespace stackreel::anonymize
