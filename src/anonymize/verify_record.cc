#include "anonymize/verify_record.h"

#include <variant>

#include "perfdata/feature_layout.h"
#include "perfdata/pac_mask.h"
#include "perfdata/record_layout.h"
#include "perfdata/record_size.h"

namespace stackreel::anonymize {
namespace {

using perfdata::kRecordHeaderSize;
using perfdata::RawRecord;
using perfdata::WireScope;

template <typename Body>
bool DecodeBody(ByteView bytes, Endian endian, uint32_t nr_cpus, FieldSpans& fields) {
  ByteReader in(bytes, endian);
  Body body;
  WireScope scope;
  scope.nr_cpus = nr_cpus;
  perfdata::DecodeFields(in, body, scope, fields);
  return in.ok();
}

// Decodes `bytes` as a feature; they lie in what `fields` was begun with.
bool DecodeFeatureFields(uint32_t feature, ByteView bytes, Endian endian, uint32_t nr_cpus,
                         FieldSpans& fields) {
  fields.BeginFeature(bytes);
  return perfdata::WithFeatureBody(
      feature, [&]<typename Body>() { return DecodeBody<Body>(bytes, endian, nr_cpus, fields); });
}

// The feature that a record carries, and where in the record its bytes begin.
struct Carried {
  uint32_t feature = 0;
  size_t begin = 0, size = 0;
};
std::optional<Carried> CarriedFeature(const perfdata::Record& record, const RawRecord& raw,
                                      Endian endian) {
  if (const auto* header = std::get_if<perfdata::HeaderFeature>(&record.body)) {
    const size_t begin = kRecordHeaderSize + sizeof(uint64_t);
    if (header->feature >= perfdata::kFeatureBits || raw.bytes.size() < begin) return std::nullopt;
    return Carried{static_cast<uint32_t>(header->feature), begin, raw.bytes.size() - begin};
  }
  const auto* update = std::get_if<perfdata::EventUpdate>(&record.body);
  if (update == nullptr) return std::nullopt;
  const auto feature = perfdata::FeatureOf(*update, endian);
  if (!feature) return std::nullopt;
  // Behind header, type, id, version, feature and size: see perfdata::kUpdateFeature.
  const size_t begin = kRecordHeaderSize + (4 * sizeof(uint64_t));
  if (begin > raw.bytes.size() || feature->second.size() > raw.bytes.size() - begin) {
    return std::nullopt;
  }
  return Carried{feature->first, begin, feature->second.size()};
}

}  // namespace

bool FindFieldsOfSample(const RawRecord& raw, const perfdata::Attr& attr, Endian endian,
                        perfdata::Sample& sample, FieldSpans& fields) {
  fields.Begin(raw.bytes);
  fields.AddHeader(0, kRecordHeaderSize, sizeof(uint32_t));
  ByteReader in(raw.payload(), endian);
  sample = perfdata::Sample();
  sample.present = attr.sample_type;
  perfdata::DecodeFields(in, sample, WireScope{raw.misc, &attr}, fields);
  return in.ok();
}

std::optional<perfdata::Record> FindFields(const RawRecord& raw, const perfdata::Attr* attr,
                                           Endian endian, uint32_t nr_cpus, FieldSpans& fields) {
  fields.Begin(raw.bytes);
  fields.AddHeader(0, std::min(raw.bytes.size(), kRecordHeaderSize), sizeof(uint32_t));
  Result<perfdata::Record> record = perfdata::DecodeRecord(raw, {endian, attr});
  if (!record) return std::nullopt;
  if (const auto carried = CarriedFeature(*record, raw, endian)) {
    // Type and id are of 64 bits each; version and feature, of an EVENT_UPDATE, are not.
    const bool is_update = std::holds_alternative<perfdata::EventUpdate>(record->body);
    constexpr size_t kWord = sizeof(uint64_t), kVersion = kRecordHeaderSize + (2 * kWord);
    const size_t numbers_end = is_update ? kVersion : carried->begin;
    fields.AddHeader(kRecordHeaderSize, numbers_end);
    if (is_update) {
      fields.AddHeader(kVersion, kVersion + kWord, sizeof(uint32_t));
      fields.AddHeader(kVersion + kWord, carried->begin);
    }
    if (!DecodeFeatureFields(carried->feature, raw.bytes.subspan(carried->begin, carried->size),
                             endian, nr_cpus, fields)) {
      return std::nullopt;
    }
    return std::move(*record);
  }
  const auto* update = std::get_if<perfdata::EventUpdate>(&record->body);
  if (update != nullptr && perfdata::PacMaskOf(*update, endian)) {
    // Behind type and id.
    const size_t begin = kRecordHeaderSize + (2 * sizeof(uint64_t));
    fields.AddHeader(kRecordHeaderSize, begin);
    DecodeBody<perfdata::PacMask>(raw.bytes.subspan(begin), endian, nr_cpus, fields);
    return std::move(*record);
  }
  const WireScope scope{raw.misc, attr};
  const size_t trailer = record->sample_id ? perfdata::SampleIdSize(*attr) : 0;
  ByteReader in(raw.payload().first(raw.payload().size() - trailer), endian);
  perfdata::WithRecordBody(raw.type, [&]<typename Body>() {
    Body body;
    perfdata::DecodeFields(in, body, scope, fields);
  });
  if (trailer != 0) {
    ByteReader behind(raw.payload().last(trailer), endian);
    perfdata::SampleId id;
    perfdata::DecodeFields(behind, id, scope, fields);
  }
  return std::move(*record);
}

bool FindFieldsOfFeature(uint32_t feature, ByteView bytes, Endian endian, uint32_t nr_cpus,
                         FieldSpans& fields) {
  fields.Begin(bytes);
  return DecodeFeatureFields(feature, bytes, endian, nr_cpus, fields);
}

}  // namespace stackreel::anonymize
