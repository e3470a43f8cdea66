#include "perfdata/pac_mask.h"

#include <fmt/format.h>

#include "base/byte_reader.h"
#include "base/byte_writer.h"
#include "perfdata/record_size.h"
#include "perfdata/user_record_layout.h"

namespace stackreel::perfdata {
namespace {

constexpr size_t kTimeInMask = 16;  // behind version, kind, pid, tid

std::string SourceText(uint32_t source) {
  switch (source) {
    case PacMask::kAskedOfCpu:
      return "asked of the CPU";
    case PacMask::kProgramOf32Bits:
      return "a program of 32 bits";
    case PacMask::kKernelRecord:
      return "the kernel's record";
    case PacMask::kProcFile:
      return "the process's ptr_auth file";
    default:
      return fmt::format("source {}", source);
  }
}

}  // namespace

bool IsOfKernel(uint32_t source) {
  return source == PacMask::kKernelRecord || source == PacMask::kProcFile;
}

EventUpdate MakePacMaskUpdate(const PacMask& mask, Endian endian) {
  ByteWriter out(endian);
  EncodeFields(out, mask, WireScope());
  EventUpdate update;
  update.type = kUpdatePacMask;
  update.bytes = out.Take();
  return update;
}

std::optional<PacMask> PacMaskOf(const EventUpdate& update, Endian endian) {
  if (update.type != kUpdatePacMask || update.id != 0) return std::nullopt;
  ByteReader in(update.bytes, endian);
  PacMask mask;
  NoTrace trace;
  DecodeFields(in, mask, WireScope(), trace);
  if (!in.ok() || mask.version == 0) return std::nullopt;
  return mask;
}

PacMask MaskOfRecord(const PtrAuth& record, uint64_t time) {
  PacMask mask;
  mask.pid = record.pid;
  mask.tid = record.tid;
  mask.time = time;
  mask.enabled_keys = record.enabled_keys;
  mask.insn_mask = record.insn_mask;
  mask.data_mask = record.data_mask;
  mask.source = PacMask::kKernelRecord;
  return mask;
}

std::string MaskText(uint64_t enabled_keys, uint64_t insn_mask, uint64_t data_mask,
                     uint32_t source) {
  std::string keys = fmt::format("{:#x}", enabled_keys);
  if (enabled_keys == 0) keys = IsOfKernel(source) ? "none" : "not known";
  return fmt::format("keys {}, instruction mask {:#x}, data mask {:#x}, {}", keys, insn_mask,
                     data_mask, SourceText(source));
}

std::optional<uint64_t> SideBandTime(const RawRecord& raw, Endian endian) {
  constexpr size_t kUpdateHead = 16;
  size_t at = kRecordHeaderSize + kTimeInMask;
  if (raw.record_type() == RecordType::kEventUpdate) {
    if (raw.bytes.size() < kRecordHeaderSize + kUpdateHead ||
        LoadUnaligned<uint64_t>(raw.bytes.data() + kRecordHeaderSize, endian) != kUpdatePacMask) {
      return std::nullopt;
    }
    at += kUpdateHead;
  } else if (raw.type != kRecordTypePacMask) {
    return std::nullopt;
  }
  if (raw.bytes.size() < at + sizeof(uint64_t)) return std::nullopt;
  return LoadUnaligned<uint64_t>(raw.bytes.data() + at, endian);
}

}  // namespace stackreel::perfdata
