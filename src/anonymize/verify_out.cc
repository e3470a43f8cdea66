#include "anonymize/verify_out.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <variant>

#include "anonymize/address_fields.h"
#include "anonymize/chance_hits.h"
#include "anonymize/clean_samples.h"
#include "anonymize/public_names.h"
#include "anonymize/verify_attr.h"
#include "anonymize/verify_bytes.h"
#include "anonymize/verify_tracing.h"
#include "perfdata/header.h"
#include "perfdata/kernel_record_layout.h"
#include "perfdata/record_layout.h"

namespace stackreel::anonymize {
namespace {

using perfdata::FieldInfo;
using perfdata::RawRecord;
using perfdata::Reader;
using perfdata::Sensitivity;

bool IsPayload(Level level, Sensitivity sensitivity) {
  return TreatmentOf(level, sensitivity) == Treatment::kDrop;
}

std::string_view TextOf(ByteView bytes, const FieldSpan& field) {
  std::string_view text = AsText(bytes.subspan(field.begin, field.end - field.begin));
  while (text.ends_with('\0')) text.remove_suffix(1);
  return text;
}

// Whether what begins at `offset` lies in the name of memory that has no file, and zeros behind:
// the same in all recordings.
bool IsInNameOfMemory(ByteView bytes, const FieldSpan& field, size_t offset) {
  if (field.info->sensitivity != Sensitivity::kPath || field.form != FieldForm::kBytes)
    return false;
  if (offset + sizeof(uint64_t) > field.end) return false;
  return IsNameOfMemory(TextOf(bytes, field));
}

// Whether the text at `offset` begins with bytes of numbers, and the rest of it is all of a name
// that is public.
bool IsBehindNumbers(ByteView bytes, std::span<const FieldSpan> fields, size_t offset,
                     std::string_view text, const HiddenValues& hidden) {
  const FieldSpan* name = nullptr;
  for (const FieldSpan& field : fields) {
    if (field.end <= offset || field.begin >= offset + text.size()) continue;
    if (field.form == FieldForm::kNumbers && field.info != nullptr) continue;
    if (field.info == nullptr || field.begin <= offset || name != nullptr) return false;
    name = &field;
  }
  if (name == nullptr) return false;
  const std::string_view rest = text.substr(name->begin - offset);
  return TextOf(bytes, *name) == rest && hidden.IsPublicPath(*name->info, rest);
}

constexpr size_t kAttrPlace = 16;  // of an attr's ids, behind it in a file: offset, size

constexpr std::string_view kTracingDataName = "feature TRACING_DATA";

// Some bytes of OUT: a record, a feature, or what is between.
struct Piece {
  std::string_view name;  // "SAMPLE"
  ByteView bytes;
  uint64_t file_offset = 0;
};

class OutPass : public perfdata::RecordSink {
 public:
  OutPass(const Reader& reader, const OutCheck& check, Findings& findings)
      : reader_(reader),
        check_(check),
        findings_(findings),
        chance_(check.recording, check.in.pmu_names, findings),
        counts_({SampleDigests(check.level), 0}),
        clean_(check.in.originals, check.places, reader.endian()) {}
  Status OnRecord(const RawRecord& raw) override;
  // The file around the records. Features are decoded, the rest are numbers.
  Status AroundRecords(FileSource& source);
  void Events();
  void HiddenInFeatures();
  // All has been looked at.
  Status Finish() { return chance_.Resolve(); }
  OutCounts TakeCounts() { return std::move(counts_); }

 private:
  // False if there is more to be looked at.
  bool Sample(const Piece& piece, const RawRecord& raw);
  void CompareSample(const Piece& piece, const RawRecord& raw, uint32_t event);
  void Other(const Piece& piece, const RawRecord& raw);
  template <typename Body>
  void BodyAddresses(const Piece& piece, const Body& body, const perfdata::WireScope& scope,
                     const uint8_t* passed_over = nullptr);
  void Address(const Piece& piece, const FieldInfo& field, size_t back, uint64_t address);
  void Payload(const Piece& piece);
  void TracingData(const Piece& piece, ByteView bytes);
  void Times(const Piece& piece);
  HiddenValues::Tell Hidden(const Piece& piece);
  void Bytes(const Piece& piece);
  void Attr(const perfdata::Attr& attr, const Piece& piece);
  void Add(FindingKind kind, const Piece& piece, std::string_view field, uint64_t offset,
           std::string value);
  Status Attrs(FileSource& source, const perfdata::FilePlaces& places);
  Status Gap(FileSource& source, uint64_t begin, uint64_t end);
  Status Sections(FileSource& source, const perfdata::FilePlaces& places, uint64_t size);
  [[nodiscard]] const perfdata::Attr* AttrOf(std::optional<uint32_t> event) const {
    const auto& events = reader_.events().events();
    return event && *event < events.size() ? &events[*event].attr : nullptr;
  }
  [[nodiscard]] uint32_t nr_cpus() const { return NrCpusOf(reader_.features()); }

  const Reader& reader_;
  const OutCheck& check_;
  Findings& findings_;
  ChanceHits chance_;
  OutCounts counts_;
  FieldSpans fields_;
  perfdata::Sample sample_;
  CleanSamples clean_;
};

void OutPass::Add(FindingKind kind, const Piece& piece, std::string_view field, uint64_t offset,
                  std::string value) {
  findings_.Add({kind, std::string(piece.name), std::string(field), piece.file_offset, offset,
                 std::move(value)});
}

void OutPass::Address(const Piece& piece, const FieldInfo& field, size_t back, uint64_t address) {
  const bool outside = clean_.IsOutside(address), low = clean_.IsLow(address);
  if (!outside && !low) return;
  uint64_t offset = 0;
  for (const FieldSpan& span : fields_.spans()) {
    if (span.info == &field && span.end >= back * span.width) offset = span.end - back * span.width;
  }
  if (outside) {
    Add(FindingKind::kAddressOutside, piece, field.name, offset,
        fmt::format("{:#x}, in no mapping", address));
  }
  if (low) {
    Add(FindingKind::kOriginalValue, piece, field.name, offset,
        fmt::format("{:#x}, an address in {}", address, check_.in.originals.Describe(address)));
  }
}

void OutPass::TracingData(const Piece& piece, ByteView bytes) {
  const std::string what = WhatElseIsInTracingData(bytes);
  if (!what.empty()) Add(FindingKind::kPayload, piece, "bytes", 0, what);
}

void OutPass::Payload(const Piece& piece) {
  const bool is_tracing_data = piece.name == kTracingDataName;
  for (const FieldSpan& span : fields_.spans()) {
    if (span.info == nullptr || !IsPayload(check_.level, span.info->sensitivity)) continue;
    if (check_.keeps_raw && piece.name == "SAMPLE" && span.info->name == "raw") continue;
    if (is_tracing_data) {
      TracingData(piece, piece.bytes);
      continue;
    }
    const ByteView bytes = piece.bytes.subspan(span.begin, span.end - span.begin);
    const auto first = std::ranges::find_if(bytes, [](uint8_t byte) { return byte != 0; });
    if (first == bytes.end()) continue;
    Add(FindingKind::kPayload, piece, span.info->name, span.begin,
        fmt::format("{} bytes of {}", bytes.size(),
                    perfdata::SensitivityName(span.info->sensitivity)));
  }
}

void OutPass::Times(const Piece& piece) {
  // Where they are shifted, they are greater than addresses of processes, and less than a kernel's.
  const bool shifted = check_.level >= Level::kIdentity;
  for (const FieldSpan& span : fields_.spans()) {
    if (span.info == nullptr || span.info->sensitivity != Sensitivity::kTime) continue;
    if (span.width != 8 || span.end - span.begin != 8) continue;
    const auto time = LoadUnaligned<uint64_t>(piece.bytes.data() + span.begin, reader_.endian());
    if (shifted ? !check_.in.originals.HasAddress(time) : check_.in.times.Has(*span.info, time)) {
      continue;
    }
    Add(FindingKind::kOriginalValue, piece, span.info->name, span.begin,
        fmt::format("{:#x}, a time when IN has none", time));
  }
}

void OutPass::Bytes(const Piece& piece) {
  counts_.bytes += piece.bytes.size();
  SearchBytes(piece.bytes, fields_.spans(), reader_.endian(), check_.in.originals,
              [&](const ByteHit& hit) {
                const bool named = hit.field != nullptr && hit.field->info != nullptr;
                if (named && IsInNameOfMemory(piece.bytes, *hit.field, hit.offset)) return;
                const Finding finding = {FindingKind::kOriginalValue,
                                         std::string(piece.name),
                                         std::string(named ? hit.field->info->name : ""),
                                         piece.file_offset,
                                         hit.offset,
                                         hit.value};
                if (!hit.in_numbers) return findings_.Add(finding);
                chance_.Add(finding, piece.bytes, fields_.spans(), hit.offset, sizeof(uint64_t),
                            reader_.endian());
              });
  const auto tell_text = [&](size_t offset, std::string_view text) {
    if (IsBehindNumbers(piece.bytes, fields_.spans(), offset, text, check_.hidden)) return;
    const Finding finding = {
        FindingKind::kText,         std::string(piece.name), "", piece.file_offset, offset,
        fmt::format("\"{}\"", text)};
    chance_.Add(finding, piece.bytes, fields_.spans(), offset, text.size(), reader_.endian());
  };
  check_.texts.Find(piece.bytes, tell_text);
  const bool has_functions = std::ranges::any_of(fields_.spans(), [](const FieldSpan& span) {
    return span.info != nullptr && span.info->sensitivity == Sensitivity::kFunction;
  });
  if (!has_functions && !check_.modules.empty()) check_.modules.Find(piece.bytes, tell_text);
}

void OutPass::Attr(const perfdata::Attr& attr, const Piece& piece) {
  for (AttrFault& fault :
       CheckAttr(attr, check_.level, check_.keeps_raw, check_.in.pmu_names, check_.places)) {
    Add(FindingKind::kEventConfig, piece, fault.field, 0, std::move(fault.value));
  }
}

void OutPass::CompareSample(const Piece& piece, const RawRecord& raw, uint32_t event) {
  if (check_.side_by_side != nullptr) {
    const auto difference = check_.side_by_side->Difference(raw, sample_);
    if (difference) Add(FindingKind::kDifference, piece, "callchain", 0, *difference);
  }
  const auto different = check_.differences.find(counts_.samples.count());
  if (different != check_.differences.end()) {
    Add(FindingKind::kDifference, piece, "callchain", 0, different->second);
  }
  counts_.samples.Add({event, sample_.time, sample_.period});
}

bool OutPass::Sample(const Piece& piece, const RawRecord& raw) {
  const Endian endian = reader_.endian();
  const auto event = reader_.events().IndexOf(raw, endian);
  const perfdata::Attr* attr = AttrOf(event);
  // Texts may be anywhere, and what the levels above hide is no address.
  const bool has_addresses_only =
      check_.level == Level::kAddresses && check_.texts.empty() && check_.modules.empty();
  if (attr != nullptr && has_addresses_only && clean_.HasShapeOf(*event) &&
      perfdata::DecodeSample(raw, *attr, endian, sample_) &&
      clean_.IsClean(raw.bytes, *event, sample_)) {
    CompareSample(piece, raw, *event);
    counts_.bytes += raw.bytes.size();
    return true;
  }
  if (attr == nullptr || !FindFieldsOfSample(raw, *attr, endian, sample_, fields_)) {
    Add(FindingKind::kDifference, piece, "", 0, "it does not decode");
    return false;
  }
  clean_.LearnShape(*event, *attr, fields_.spans(), raw.bytes.size(), check_.level);
  CompareSample(piece, raw, *event);
  check_.hidden.CheckSample(sample_, Hidden(piece));
  const uint8_t* clean_chain = nullptr;
  if (clean_.IsCleanChain(sample_.callchain, sample_.tid)) {
    clean_chain = sample_.callchain.bytes().data();
    fields_.SetSearched(static_cast<size_t>(clean_chain - raw.bytes.data()));
  }
  BodyAddresses(piece, sample_, perfdata::WireScope{raw.misc, attr}, clean_chain);
  return false;
}

template <typename Body>
void OutPass::BodyAddresses(const Piece& piece, const Body& body, const perfdata::WireScope& scope,
                            const uint8_t* passed_over) {
  perfdata::VisitFields(
      body, scope,
      AddressFields(passed_over, [&](const FieldInfo& field, size_t back, uint64_t address) {
        Address(piece, field, back, address);
      }));
}

void OutPass::Other(const Piece& piece, const RawRecord& raw) {
  const auto event = reader_.events().IndexOf(raw, reader_.endian());
  const perfdata::Attr* attr = AttrOf(event);
  const auto record = FindFields(raw, attr, reader_.endian(), nr_cpus(), fields_);
  const auto* tracing = record ? std::get_if<perfdata::HeaderTracingData>(&record->body) : nullptr;
  if (tracing != nullptr) {
    TracingData(piece, tracing->bytes);
  } else if (raw.extra_size != 0) {
    Add(FindingKind::kPayload, piece, "", raw.bytes.size(),
        fmt::format("{} bytes behind the record", raw.extra_size));
  }
  if (!record) return Add(FindingKind::kDifference, piece, "", 0, "it does not decode");
  check_.hidden.CheckRecord(*record, attr, reader_.endian(), check_.records, Hidden(piece));
  Times(piece);
  // What is mapped is in a mapping; that it moved is seen where mappings are compared.
  const bool maps = std::holds_alternative<perfdata::Mmap>(record->body) ||
                    std::holds_alternative<perfdata::Mmap2>(record->body);
  if (!maps) {
    std::visit(
        [&](const auto& body) { BodyAddresses(piece, body, perfdata::WireScope{raw.misc, attr}); },
        record->body);
  }
  if (const auto* header = std::get_if<perfdata::HeaderAttr>(&record->body)) {
    Attr(header->attr, piece);
  }
}

Status OutPass::OnRecord(const RawRecord& raw) {
  const bool is_sample = raw.record_type() == perfdata::RecordType::kSample;
  const std::string name = is_sample ? "SAMPLE" : perfdata::RecordTypeName(raw.type);
  const Piece piece = {name, raw.bytes, raw.file_offset};
  if (is_sample) {
    if (Sample(piece, raw)) return {};
  } else {
    Other(piece, raw);
  }
  // Of TRACING_DATA the bytes lie behind the record, and have been looked at.
  if (raw.record_type() != perfdata::RecordType::kHeaderTracingData) Payload(piece);
  Bytes(piece);
  if (!raw.extra.empty()) {
    fields_.Begin(raw.extra);
    Bytes({name, raw.extra, raw.file_offset + raw.bytes.size()});
  }
  return chance_.full() ? chance_.Resolve() : Status();
}

// Tells of a field of the piece, whose fields are in hand, that is not hidden.
HiddenValues::Tell OutPass::Hidden(const Piece& piece) {
  return [this, &piece](const FieldInfo& field, std::string what) {
    size_t offset = 0;
    for (const FieldSpan& span : fields_.spans()) {
      if (span.info == &field) offset = span.begin;
    }
    Add(FindingKind::kText, piece, field.name, offset, std::move(what));
  };
}

// What records carry and the file has behind them; and what only all of OUT shows.
void OutPass::HiddenInFeatures() {
  for (const auto& [feature, bytes] : reader_.features().raw) {
    const std::string name = "feature " + perfdata::FeatureName(feature);
    const Piece piece = {name, bytes, 0};
    if (!FindFieldsOfFeature(feature, bytes, reader_.endian(), nr_cpus(), fields_)) continue;
    check_.hidden.CheckFeature(feature, bytes, reader_.endian(), nr_cpus(), Hidden(piece));
  }
  check_.hidden.Finish([&](const std::string& record, const FieldInfo& field, std::string what) {
    Add(FindingKind::kText, {record, {}, 0}, field.name, 0, std::move(what));
  });
}

void OutPass::Events() {
  const auto& events = reader_.events().events();
  for (const perfdata::Event& event : events) Attr(event.attr, {"attr", {}, 0});
  for (const perfdata::Event& event : reader_.features().event_desc) {
    Attr(event.attr, {"feature EVENT_DESC", {}, 0});
  }
  if (events.size() == check_.in.events) return;
  Add(FindingKind::kDifference, {"attr", {}, 0}, "", 0,
      fmt::format("{} events, in IN {}", events.size(), check_.in.events));
}

// Searches what is no feature and no record: header, attrs with their ids, places of sections.
Status OutPass::Gap(FileSource& source, uint64_t begin, uint64_t end) {
  constexpr uint64_t kChunk = uint64_t{1} << 20, kOverlap = 32;
  std::vector<uint8_t> bytes;
  while (begin < end) {
    bytes.resize(std::min(end - begin, kChunk));
    TRY_ASSIGN(const size_t n, source.ReadAt(begin, bytes));
    if (n == 0) break;
    const ByteView read = ByteView(bytes).first(n);
    fields_.Begin(read);
    fields_.AddNumbersOfNoField(0, n);
    Bytes({"", read, begin});
    begin += n;
    if (begin < end && n > kOverlap) begin -= kOverlap;
  }
  return {};
}

Status OutPass::Sections(FileSource& source, const perfdata::FilePlaces& places, uint64_t size) {
  std::array<uint8_t, perfdata::kFileHeaderSize> head;
  TRY_ASSIGN(const size_t n, source.ReadAt(0, head));
  TRY_ASSIGN(const perfdata::FileHeader header, perfdata::ParseHeader(ByteView(head).first(n)));
  uint64_t begin = places.data_offset + places.data_size;
  std::map<uint64_t, uint32_t> features;  // by offset
  std::array<uint8_t, 16> place;
  uint64_t at = places.features_offset;
  for (const uint32_t feature : header.FeatureList()) {
    TRY_ASSIGN(const size_t read, source.ReadAt(at, place));
    if (read < place.size()) break;
    features[LoadUnaligned<uint64_t>(place.data(), header.endian)] = feature;
    at += place.size();
  }
  for (const auto& [offset, feature] : features) {
    const auto known = reader_.features().raw.find(feature);
    if (known == reader_.features().raw.end() || offset < begin) continue;
    TRY(Gap(source, begin, offset));
    const std::string name = "feature " + perfdata::FeatureName(feature);
    const Piece piece = {name, known->second, offset};
    if (!FindFieldsOfFeature(feature, piece.bytes, header.endian, nr_cpus(), fields_)) {
      Add(FindingKind::kDifference, piece, "", 0, "it does not decode");
    }
    Payload(piece);
    Times(piece);
    Bytes(piece);
    begin = offset + known->second.size();
  }
  return Gap(source, begin, size);
}

Status OutPass::AroundRecords(FileSource& source) {
  const auto places = reader_.places();
  const auto size = source.size();
  if (!size) return {};
  // The magic is no recording's own, whatever it looks like.
  if (!places) return Gap(source, sizeof(uint64_t), perfdata::kPipeHeaderSize);
  const uint64_t data = std::min(places->data_offset, *size);
  const uint64_t attrs = places->attrs_offset;
  const bool holds_attrs = attrs <= data && places->attr_size > kAttrPlace &&
                           places->attr_count <= (data - attrs) / places->attr_size;
  TRY(Gap(source, sizeof(uint64_t), holds_attrs ? attrs : data));
  if (holds_attrs) {
    TRY(Attrs(source, *places));
    TRY(Gap(source, attrs + (places->attr_count * places->attr_size), data));
  }
  return Sections(source, *places, *size);
}

// The table of attrs, each with the place of its ids.
Status OutPass::Attrs(FileSource& source, const perfdata::FilePlaces& places) {
  std::vector<uint8_t> bytes(places.attr_size);
  for (uint64_t i = 0; i < places.attr_count; ++i) {
    const uint64_t at = places.attrs_offset + (i * places.attr_size);
    TRY_ASSIGN(const size_t n, source.ReadAt(at, bytes));
    if (n < bytes.size()) break;
    fields_.Begin(bytes);
    fields_.AddAttr(0, n - kAttrPlace);
    fields_.AddNumbersOfNoField(n - kAttrPlace, n);
    Bytes({"attr", bytes, at});
  }
  return {};
}

}  // namespace

Result<OutCounts> CheckOut(const RereadableRecording::Opened& output, const OutCheck& check,
                           Findings& findings) {
  OutPass pass(*output.reader, check, findings);
  if (check.side_by_side != nullptr) {
    TRY(check.side_by_side->Read(pass));
  } else {
    TRY(output.reader->ReadAll(pass));
  }
  // A pipe's events and features are known at its end.
  pass.Events();
  pass.HiddenInFeatures();
  TRY(pass.AroundRecords(*output.sources.back()));
  TRY(pass.Finish());
  return pass.TakeCounts();
}

}  // namespace stackreel::anonymize
