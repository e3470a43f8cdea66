#include "anonymize/transform.h"

#include <variant>

#include "perfdata/record_layout.h"
#include "perfdata/sample_layout.h"

namespace stackreel::anonymize {

using perfdata::CpuMode;
using perfdata::RawRecord;
using perfdata::Record;
using perfdata::RecordType;

namespace {

// What the Writer makes from events and features.
bool IsWriters(const RawRecord& raw) {
  switch (raw.record_type()) {
    case RecordType::kHeaderAttr:
    case RecordType::kHeaderEventType:
    case RecordType::kHeaderTracingData:
    case RecordType::kHeaderFeature:
      return true;
    default:
      return false;
  }
}
// The same of an EVENT_UPDATE: names of events, and features amid the data.
bool IsWriters(const Record& record) {
  constexpr uint64_t kUpdateName = 2;
  const auto* update = std::get_if<perfdata::EventUpdate>(&record.body);
  return update != nullptr &&
         (update->type == kUpdateName || update->type == perfdata::kUpdateFeature);
}

// Whose the record is: as it says itself, or as its trailer does.
uint32_t PidOf(const Record& record) {
  return std::visit(
      [&]<typename Body>(const Body& body) -> uint32_t {
        if constexpr (requires { body.pid; }) {
          return static_cast<uint32_t>(body.pid);
        } else {
          return record.sample_id ? record.sample_id->pid : UINT32_MAX;
        }
      },
      record.body);
}

}  // namespace

Transform::Transform(Endian endian, const std::vector<perfdata::Event>& recorded,
                     const std::vector<perfdata::Event>& written, FieldTransform& fields,
                     Remap& remap, perfdata::Writer& writer, Report& report)
    : endian_(endian),
      recorded_(recorded),
      written_(written),
      fields_(fields),
      remap_(remap),
      writer_(writer),
      report_(report),
      sample_tally_(
          report.Structure(perfdata::RecordTypeName(static_cast<uint32_t>(RecordType::kSample)))),
      trailer_tally_(report.Structure("sample_id")) {}

Status Transform::Drop(const RawRecord& raw, std::string_view why) {
  report_.AddDropped(perfdata::RecordTypeName(raw.type), why, raw.bytes.size() + raw.extra_size);
  return {};
}

Status Transform::DropBad(const RawRecord& raw) {
  ++bad_records_;
  return Drop(raw, "damaged");
}

Status Transform::OnTimedRecord(const perfdata::TimedRecord& timed) {
  if (IsWriters(timed.raw)) return {};
  return timed.raw.record_type() == RecordType::kSample ? OnSample(timed) : OnOther(timed);
}

Status Transform::OnSample(const perfdata::TimedRecord& timed) {
  const RawRecord& raw = timed.raw;
  if (!timed.event || *timed.event >= recorded_.size()) return DropBad(raw);
  const perfdata::Attr& attr = recorded_[*timed.event].attr;
  if (!perfdata::DecodeSample(raw, attr, endian_, sample_)) return DropBad(raw);
  const Machine machine = MachineOf(raw.cpu_mode());
  const AddressContext context = {
      spaces_.UserSpace(machine, sample_.pid), machine, raw.cpu_mode(), {}};
  fields_.Begin(context, sample_tally_);
  perfdata::VisitFields(sample_, perfdata::WireScope{raw.misc, &attr}, fields_);
  ++samples_;
  return writer_.WriteSample(sample_, raw.misc, *timed.event);
}

AddressContext Transform::ContextOf(const Record& record) const {
  AddressContext context;
  context.mode = static_cast<CpuMode>(record.misc & perfdata::kMiscCpuModeMask);
  context.machine = MachineOf(context.mode);
  context.user = spaces_.UserSpace(context.machine, PidOf(record));
  if (std::holds_alternative<perfdata::CallchainDeferred>(record.body)) {
    context.mode = CpuMode::kUser;  // the kernel says so by the marker only
  }
  return context;
}

Status Transform::OnOther(const perfdata::TimedRecord& timed) {
  const RawRecord& raw = timed.raw;
  // What follows a record outside its size is payload.
  if (raw.extra_size != 0) return Drop(raw, "payload");
  const perfdata::Attr* attr =
      timed.event && *timed.event < recorded_.size() ? &recorded_[*timed.event].attr : nullptr;
  Result<Record> record = perfdata::DecodeRecord(raw, {endian_, attr});
  if (!record) return DropBad(raw);
  if (IsWriters(*record)) return {};
  if (std::holds_alternative<perfdata::Opaque>(record->body)) return Drop(raw, "unknown");

  spaces_.Apply(*record);
  AddressContext context = ContextOf(*record);
  if (const auto mapping = MappingOf(*record)) {
    context.mapping = remap_.Mapping(spaces_.MappingSpace(mapping->mode, mapping->pid), *mapping);
    if (auto* mmap = std::get_if<perfdata::Mmap>(&record->body)) mmap->len = context.mapping.len;
    if (auto* mmap = std::get_if<perfdata::Mmap2>(&record->body)) mmap->len = context.mapping.len;
  }
  const perfdata::WireScope scope{record->misc, attr};
  fields_.Begin(context, report_.Structure(perfdata::RecordTypeName(raw.type)));
  std::visit([&](auto& body) { perfdata::VisitFields(body, scope, fields_); }, record->body);
  if (fields_.dropped_content()) return Drop(raw, "payload");
  if (record->sample_id) {
    fields_.Begin(context, trailer_tally_);
    perfdata::VisitFields(*record->sample_id, scope, fields_);
  }
  const perfdata::Attr* written = attr == nullptr ? nullptr : &written_[*timed.event].attr;
  const auto encoded = perfdata::EncodeRecord(*record, {endian_, written});
  if (!encoded) return DropBad(raw);
  return writer_.WriteEncoded(*encoded);
}

}  // namespace stackreel::anonymize
