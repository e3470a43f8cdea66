// Stackreel's side-band record: a process's pointer-authentication mask from a time on; and what a
// kernel's own record says in its place.
#pragma once

#include <optional>
#include <string>

#include "perfdata/reader.h"
#include "perfdata/record.h"

namespace stackreel::perfdata {

// perf 6.1 ends at a record of a type that it does not know, but passes over an EVENT_UPDATE of an
// unknown kind with id 0, in files and pipes. So the record is written as one, and read as one or
// as a record of type 60000:
//   u64 type 60000   u64 id 0   then PacMask's fields (user_record_layout.h)
inline constexpr uint64_t kUpdatePacMask = 60000;
EventUpdate MakePacMaskUpdate(const PacMask& mask, Endian endian);
// Nothing if the update is none, or one that cannot be read.
std::optional<PacMask> PacMaskOf(const EventUpdate& update, Endian endian);

// Whether the kernel said so of the very thread, and so which keys are enabled, too.
bool IsOfKernel(uint32_t source);

// The kernel's record in the form that perf passes over: it ends at a record of type 23, too.
PacMask MaskOfRecord(const PtrAuth& record, uint64_t time);

// "keys 0xf, instruction mask 0x7f000000000000, data mask 0x7f000000000000, asked of the CPU": what
// record and feature say, source last.
std::string MaskText(uint64_t enabled_keys, uint64_t insn_mask, uint64_t data_mask,
                     uint32_t source);

// The time in a side-band record in either form, which has no trailer to say it; nothing if `raw`
// is none.
std::optional<uint64_t> SideBandTime(const RawRecord& raw, Endian endian);

}  // namespace stackreel::perfdata
