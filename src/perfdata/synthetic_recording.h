// For tests: recordings put together byte by byte, without the code under test.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/byte_writer.h"
#include "base/memory_io.h"
#include "perfdata/reader.h"
#include "perfdata/sorter.h"

namespace stackreel::perfdata::synthetic {

using Bytes = std::vector<uint8_t>;

inline Bytes RecordBytes(uint32_t type, const Bytes& payload, uint16_t misc = 0,
                         Endian endian = Endian::kLittle) {
  ByteWriter out(endian);
  out.U32(type);
  out.U16(misc);
  out.U16(static_cast<uint16_t>(8 + payload.size()));
  out.Bytes(payload);
  return out.Take();
}
inline Bytes RecordBytes(RecordType type, const Bytes& payload, uint16_t misc = 0,
                         Endian endian = Endian::kLittle) {
  return RecordBytes(static_cast<uint32_t>(type), payload, misc, endian);
}

// All of `bytes` as the one record that begins there.
inline RawRecord AsRaw(ByteView bytes, Endian endian) {
  RawRecord raw;
  raw.type = LoadUnaligned<uint32_t>(bytes.data(), endian);
  raw.misc = LoadUnaligned<uint16_t>(bytes.data() + 4, endian);
  raw.bytes = bytes;
  return raw;
}

inline Bytes Join(const std::vector<Bytes>& parts) {
  Bytes all;
  for (const Bytes& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// What the events made here have: IDENTIFIER, TID, TIME in SAMPLE and in the trailer.
inline constexpr uint64_t kSampleType = kSampleIdentifier | kSampleTid | kSampleTime;

// An attr of `size` bytes with sample_id_all.
inline Bytes AttrBytes(uint64_t config, uint64_t sample_type = kSampleType, uint32_t size = 112,
                       Endian endian = Endian::kLittle) {
  ByteWriter out(endian);
  out.U32(kTypeSoftware);
  out.U32(size);
  out.U64(config);
  out.U64(4000);
  out.U64(sample_type);
  out.U64(0);
  // A bitfield begins at the other end of each byte on a big-endian machine: bit 18 is bit 2 of the
  // third byte, or bit 5.
  for (int byte = 0; byte < 8; ++byte) {
    out.U8(byte == 2 ? (endian == Endian::kLittle ? 0x04 : 0x20) : 0);
  }
  out.Zeros(size - 48);
  return out.Take();
}

inline Bytes Numbers(const std::vector<uint64_t>& numbers, Endian endian = Endian::kLittle) {
  ByteWriter out(endian);
  for (const uint64_t number : numbers) out.U64(number);
  return out.Take();
}

// A SAMPLE of kSampleType.
inline Bytes SampleBytes(uint64_t id, uint64_t time, Endian endian = Endian::kLittle) {
  ByteWriter out(endian);
  out.U64(id);
  out.U32(10);
  out.U32(11);
  out.U64(time);
  return RecordBytes(RecordType::kSample, out.Take(), 2, endian);
}

// A COMM with the trailer of kSampleType.
inline Bytes CommBytes(const std::string& comm, uint64_t id, uint64_t time,
                       Endian endian = Endian::kLittle) {
  ByteWriter out(endian);
  out.U32(10);
  out.U32(11);
  out.Text(comm);
  out.U8(0);
  out.AlignTo(8);
  out.U32(10);
  out.U32(11);
  out.U64(time);
  out.U64(id);
  return RecordBytes(RecordType::kComm, out.Take(), 0, endian);
}

inline Bytes RoundBytes() { return RecordBytes(RecordType::kFinishedRound, {}); }

struct FileParts {
  Endian endian = Endian::kLittle;
  uint32_t attr_size = 112;
  std::vector<std::pair<Bytes, std::vector<uint64_t>>> events;  // attr, ids
  Bytes data;
  std::map<uint32_t, Bytes> features;
  bool unfinished = false;
  bool attrs_behind_data = false;
};

// header | ids | attrs | data | feature table | features; or, as perf inject writes what it got
// from a pipe, the attrs behind the data (then there are no features).
inline Bytes FileBytes(const FileParts& parts) {
  const uint64_t attrs_size = parts.events.size() * (parts.attr_size + 16);
  uint64_t ids_size = 0;
  for (const auto& [attr, ids] : parts.events) ids_size += 8 * ids.size();
  const uint64_t data_at = 104 + ids_size + (parts.attrs_behind_data ? 0 : attrs_size);
  const uint64_t attrs_at = parts.attrs_behind_data ? data_at + parts.data.size() : 104 + ids_size;

  ByteWriter out(parts.endian);
  out.Text(parts.endian == Endian::kLittle ? "PERFILE2" : "2ELIFREP");
  out.U64(104);
  out.U64(parts.attr_size + 16);
  out.U64(attrs_at);
  out.U64(attrs_size);
  out.U64(data_at);
  out.U64(parts.unfinished ? 0 : parts.data.size());
  out.Zeros(16);
  for (uint32_t word = 0; word < 4; ++word) {
    uint64_t bits = 0;
    for (const auto& [feature, bytes] : parts.features) {
      if (feature / 64 == word) bits |= uint64_t{1} << (feature % 64);
    }
    out.U64(bits);
  }
  for (const auto& [attr, ids] : parts.events) out.Bytes(Numbers(ids, parts.endian));
  if (parts.attrs_behind_data) out.Bytes(parts.data);
  uint64_t ids_at = 104;
  for (const auto& [attr, ids] : parts.events) {
    out.Bytes(attr);
    out.U64(ids_at);
    out.U64(8 * ids.size());
    ids_at += 8 * ids.size();
  }
  if (!parts.attrs_behind_data) out.Bytes(parts.data);
  uint64_t feature_at = out.size() + 16 * parts.features.size();
  for (const auto& [feature, bytes] : parts.features) {
    out.U64(feature_at);
    out.U64(bytes.size());
    feature_at += bytes.size();
  }
  for (const auto& [feature, bytes] : parts.features) out.Bytes(bytes);
  return out.Take();
}

// A file with one event of id 100.
inline Bytes FileBytes(const Bytes& data) {
  FileParts parts;
  parts.events = {{AttrBytes(0), {100}}};
  parts.data = data;
  return FileBytes(parts);
}

// A pipe with one event of id 100.
inline Bytes PipeBytes(const Bytes& records, Endian endian = Endian::kLittle) {
  ByteWriter out(endian);
  out.Text(endian == Endian::kLittle ? "PERFILE2" : "2ELIFREP");
  out.U64(16);
  out.Bytes(RecordBytes(RecordType::kHeaderAttr,
                        Join({AttrBytes(0, kSampleType, 112, endian), Numbers({100}, endian)}), 0,
                        endian));
  out.Bytes(records);
  return out.Take();
}

// A feature's or a name's text, as perf pads it.
inline Bytes StringBytes(const std::string& text, Endian endian = Endian::kLittle) {
  ByteWriter out(endian);
  const size_t padded = (text.size() + 64) / 64 * 64;
  out.U32(static_cast<uint32_t>(padded));
  out.Text(text);
  out.Zeros(padded - text.size());
  return out.Take();
}

// Keeps the records.
class KeepingSink : public RecordSink, public TimedSink {
 public:
  Status OnRecord(const RawRecord& raw) override {
    records.push_back(raw);
    return {};
  }
  Status OnTimedRecord(const TimedRecord& record) override {
    records.push_back(record.raw);
    times.push_back(record.time);
    return {};
  }
  [[nodiscard]] std::vector<uint32_t> types() const {
    std::vector<uint32_t> types;
    types.reserve(records.size());
    for (const RawRecord& raw : records) types.push_back(raw.type);
    return types;
  }
  // All of them, one behind the other.
  [[nodiscard]] Bytes bytes() const {
    Bytes all;
    for (const RawRecord& raw : records) {
      all.insert(all.end(), raw.bytes.begin(), raw.bytes.end());
    }
    return all;
  }

  std::vector<RawRecord> records;
  std::vector<uint64_t> times;
};

}  // namespace stackreel::perfdata::synthetic
