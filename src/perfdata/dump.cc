#include "perfdata/dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "perfdata/features.h"
#include "perfdata/field_text.h"
#include "perfdata/pac_mask.h"
#include "perfdata/record_layout.h"
#include "perfdata/record_size.h"

namespace stackreel::perfdata {

namespace {

void Append(std::vector<std::string>& lines, std::vector<std::string> more) {
  lines.insert(lines.end(), std::make_move_iterator(more.begin()),
               std::make_move_iterator(more.end()));
}

std::string_view CpuModeName(uint16_t misc) {
  switch (static_cast<CpuMode>(misc & kMiscCpuModeMask)) {
    case CpuMode::kUnknown:
      return "";
    case CpuMode::kKernel:
      return "kernel";
    case CpuMode::kUser:
      return "user";
    case CpuMode::kHypervisor:
      return "hypervisor";
    case CpuMode::kGuestKernel:
      return "guest kernel";
    case CpuMode::kGuestUser:
      return "guest user";
  }
  return "cpumode?";
}

// Bits 13 and up mean something else in each type.
std::string_view Bit13Name(RecordType type) {
  switch (type) {
    case RecordType::kMmap:
    case RecordType::kMmap2:
      return "data";
    case RecordType::kComm:
      return "exec";
    case RecordType::kFork:
      return "exec";
    case RecordType::kSwitch:
    case RecordType::kSwitchCpuWide:
      return "out";
    default:
      return "bit 13";
  }
}
std::string_view Bit14Name(RecordType type) {
  switch (type) {
    case RecordType::kSample:
      return "exact ip";
    case RecordType::kSwitch:
    case RecordType::kSwitchCpuWide:
      return "preempted";
    case RecordType::kMmap2:
      return "build-id";
    default:
      return "bit 14";
  }
}
std::string_view Bit15Name(RecordType type) {
  return type == RecordType::kHeaderBuildId ? "build-id size" : "bit 15";
}

FieldLines::Options OptionsOf(const DumpContext& context) {
  FieldLines::Options options;
  options.arch = context.arch;
  return options;
}

// Decodes `bytes`, which begin at `base` in the record, as T; a line each field.
template <typename T>
std::vector<std::string> LinesOf(ByteView bytes, size_t base, const RawRecord& raw,
                                 const DumpContext& context) {
  ByteReader in(bytes, context.endian);
  FieldLines lines(bytes, context.endian, base, OptionsOf(context));
  const WireScope scope{raw.misc, context.attr};
  T value;
  DecodeFields(in, value, scope, lines);
  if (in.ok() && !in.AtEnd()) {
    lines.lines().push_back(
        fmt::format("  +{:#06x} {} bytes more", base + in.offset(), in.remaining()));
  }
  return std::move(lines.lines());
}

void DumpSample(const RawRecord& raw, const DumpContext& context, std::vector<std::string>& lines) {
  if (context.attr == nullptr) {
    lines.push_back("  no event is known, so its fields are not");
    return;
  }
  Append(lines, LinesOf<Sample>(raw.payload(), kRecordHeaderSize, raw, context));
  Sample sample;
  if (const Status status = DecodeSample(raw, *context.attr, context.endian, sample); !status) {
    lines.push_back("  damaged: " + status.error().message);
  }
}

// What our records carry (docs/file-format.md): a process's mask, a feature.
void DumpCarried(const Record& record, const DumpContext& context,
                 std::vector<std::string>& lines) {
  const auto* update = std::get_if<EventUpdate>(&record.body);
  std::optional<PacMask> mask;
  if (const auto* own = std::get_if<PacMask>(&record.body)) mask = *own;
  if (const auto* kernels = std::get_if<PtrAuth>(&record.body)) mask = MaskOfRecord(*kernels, 0);
  if (update != nullptr) mask = PacMaskOf(*update, context.endian);
  if (mask) {
    lines.push_back(
        fmt::format("    pointer authentication of process {}{}: {}", mask->pid,
                    mask->tid == mask->pid ? "" : fmt::format(", thread {}", mask->tid),
                    MaskText(mask->enabled_keys, mask->insn_mask, mask->data_mask, mask->source)));
  }
  if (update == nullptr) return;
  const auto feature = FeatureOf(*update, context.endian);
  if (!feature) return;
  for (const std::string& line :
       DescribeFeature(feature->first, feature->second, context.endian, 0))
    lines.push_back("    " + line);
}

void DumpOther(const RawRecord& raw, const DumpContext& context, std::vector<std::string>& lines) {
  const Result<Record> record = DecodeRecord(raw, {context.endian, context.attr});
  const size_t trailer = record && record->sample_id ? SampleIdSize(*context.attr) : 0;
  const ByteView body = raw.payload().first(raw.payload().size() - trailer);
  WithRecordBody(raw.type, [&]<typename Body>() {
    Append(lines, LinesOf<Body>(body, kRecordHeaderSize, raw, context));
  });
  if (trailer != 0) {
    lines.push_back("  sample_id");
    Append(lines, LinesOf<SampleId>(raw.payload().last(trailer), kRecordHeaderSize + body.size(),
                                    raw, context));
  }
  if (record) {
    DumpCarried(*record, context, lines);
  } else {
    lines.push_back("  damaged: " + record.error().message);
  }
}

// What is in a HEADER_FEATURE record.
void DumpFeature(const RawRecord& raw, const DumpContext& context,
                 std::vector<std::string>& lines) {
  if (raw.record_type() != RecordType::kHeaderFeature || raw.payload().size() < 8) return;
  const auto feature = LoadUnaligned<uint64_t>(raw.payload().data(), context.endian);
  if (feature >= kFeatureBits) return;
  const auto number = static_cast<uint32_t>(feature);
  for (const std::string& line :
       DescribeFeature(number, raw.payload().subspan(8), context.endian, 0)) {
    lines.push_back("    " + line);
  }
}

}  // namespace

std::string MiscText(uint32_t type, uint16_t misc) {
  const auto record_type = static_cast<RecordType>(type);
  std::string out(CpuModeName(misc));
  const auto add = [&](uint16_t bit, std::string_view name) {
    if ((misc & bit) == 0) return;
    if (!out.empty()) out += ", ";
    out += name;
  };
  add(kMiscProcMapParseTimeout, "maps cut off by a timeout");
  add(kMiscMmapData, Bit13Name(record_type));
  add(kMiscExactIp, Bit14Name(record_type));
  add(kMiscExtReserved, Bit15Name(record_type));
  return out;
}

std::vector<std::string> HexLines(ByteView bytes) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < bytes.size(); at += 16) {
    std::string hex;
    std::string text;
    for (size_t i = at; i < std::min(at + 16, bytes.size()); ++i) {
      hex += fmt::format("{:02x} ", bytes[i]);
      const bool printable = bytes[i] >= 0x20 && bytes[i] < 0x7f;
      text += printable ? static_cast<char>(bytes[i]) : '.';
    }
    lines.push_back(fmt::format("  {:04x}: {:<48} {}", at, hex, text));
  }
  return lines;
}

std::vector<std::string> DumpRecord(const RawRecord& raw, const DumpContext& context) {
  std::vector<std::string> lines;
  const std::string misc = MiscText(raw.type, raw.misc);
  lines.push_back(fmt::format("{:#x}{} {} misc {:#x}{} size {}", raw.file_offset,
                              raw.decompressed ? " (unpacked)" : "", RecordTypeName(raw.type),
                              raw.misc, misc.empty() ? misc : " (" + misc + ")", raw.bytes.size()));
  if (raw.bytes.size() < kRecordHeaderSize) {
    lines.push_back("  damaged: shorter than a record's header");
    return lines;
  }
  if (raw.record_type() == RecordType::kSample) {
    DumpSample(raw, context, lines);
  } else {
    DumpOther(raw, context, lines);
    DumpFeature(raw, context, lines);
  }
  if (raw.extra_size != 0) lines.push_back(fmt::format("  {} bytes behind it", raw.extra_size));
  if (context.raw_bytes) Append(lines, HexLines(raw.bytes));
  return lines;
}

}  // namespace stackreel::perfdata
