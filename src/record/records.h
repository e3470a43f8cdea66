// Records as the recorder takes them from rings and makes its own.
#pragma once

#include <cstdint>
#include <utility>

#include "base/bytes.h"
#include "perfdata/record.h"

namespace stackreel::record {

// A record out of a ring, whole.
inline perfdata::RawRecord AsRaw(ByteView record) {
  perfdata::RawRecord raw;
  raw.type = LoadUnaligned<uint32_t>(record.data(), kNativeEndian);
  raw.misc = LoadUnaligned<uint16_t>(record.data() + 4, kNativeEndian);
  raw.bytes = record;
  return raw;
}

// A record of ours; the kernel's kinds get an empty trailer, which the writer fills.
inline perfdata::Record MakeRecord(perfdata::RecordType type, uint16_t misc,
                                   perfdata::RecordBody body) {
  perfdata::Record record;
  record.type = static_cast<uint32_t>(type);
  record.misc = misc;
  record.body = std::move(body);
  if (type < perfdata::RecordType::kHeaderAttr) record.sample_id = perfdata::SampleId();
  return record;
}

}  // namespace stackreel::record
