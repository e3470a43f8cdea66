// Writes perf.data that perf reads: file and pipe mode, features, compressed records.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "base/counters.h"
#include "base/error.h"
#include "base/io.h"
#include "perfdata/features.h"
#include "perfdata/reader.h"
#include "perfdata/record.h"
#include "perfdata/sample.h"

namespace stackreel::perfdata {

struct WriterOptions {
  Container container = Container::kFile;
  Endian endian = kNativeEndian;
  // zstd level of kernel records (0: none). Compressed as PERF_RECORD_COMPRESSED (81), one stream,
  // which perf 5.2 and later read.
  int compression_level = 0;
};

class Writer {
 public:
  // Writes the header and the attrs. Every Event needs its ids. `sink` must outlive the writer.
  static Result<std::unique_ptr<Writer>> Create(ByteSink& sink, const WriterOptions& options,
                                                std::vector<Event> events);
  virtual ~Writer() = default;

  virtual Status WriteRecord(const Record& record) = 0;
  virtual Status WriteSample(const Sample& sample, uint16_t misc, uint32_t event) = 0;
  // A record encoded already, in the writer's byte order, with its header. Kernel records are
  // gathered for compression; user records (from 64 up) go between compressed blocks.
  virtual Status WriteEncoded(ByteView record) = 0;
  // Writes out what is gathered. FINISHED_ROUND does so by itself.
  virtual Status Flush() = 0;
  // No record is to come: gives what is compressed its last checksum. That needs a record; where
  // all are written out already, a FINISHED_ROUND more.
  virtual Status EndRecords() = 0;
  // Ends the file: features (in the writer's byte order), then the header again with the sizes.
  // EVENT_DESC is added if it is missing, and COMPRESSED is always the writer's own. In pipe mode
  // features go out as HEADER_FEATURE records, from 128 up as by WriteFeature; those that
  // WriteEarlyFeatures wrote do not again. Those of more than 65,000 bytes cannot go into a pipe:
  // they are left out and counted.
  virtual Status Finish(const std::map<uint32_t, std::vector<uint8_t>>& features) = 0;
  [[nodiscard]] virtual uint64_t bytes_written() const = 0;
  // Kernel-record bytes before compression.
  [[nodiscard]] virtual uint64_t bytes_before_compression() const = 0;
  // What could not be written: "perfdata.feature_not_for_pipes".
  [[nodiscard]] virtual const Counters& counters() const = 0;
  // Writes a feature as it is now among the records, see kUpdateFeature: for those who read a pipe,
  // or a recording that nobody finished. False if it is too large for a record.
  virtual Result<bool> WriteFeature(uint32_t feature, ByteView bytes) = 0;
  // Pipe mode: writes the features now; a no-op in file mode.
  virtual Status WriteEarlyFeatures(const std::map<uint32_t, std::vector<uint8_t>>& features) = 0;
};

}  // namespace stackreel::perfdata
