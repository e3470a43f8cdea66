#include "anonymize/transform.h"

#include <variant>

#include "perfdata/pac_mask.h"
#include "perfdata/record_layout.h"
#include "perfdata/sample_layout.h"
#include "session/limits.h"

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

Error SalvageCures(Error error) {
  if (error.cure.empty()) error.cure = "--salvage   to anonymise what can be read";
  return error;
}

Transform::Transform(Endian endian, const std::vector<perfdata::Event>& recorded,
                     const std::vector<perfdata::Event>& written, FieldTransform& fields,
                     Remap& remap, perfdata::Writer& writer, Report& report, RawFields* raw_fields,
                     bool salvage)
    : endian_(endian),
      recorded_(recorded),
      written_(written),
      fields_(fields),
      remap_(remap),
      writer_(writer),
      report_(report),
      raw_fields_(raw_fields),
      salvage_(salvage),
      sample_tally_(
          report.Structure(perfdata::RecordTypeName(static_cast<uint32_t>(RecordType::kSample)))),
      trailer_tally_(report.Structure("sample_id")),
      plans_(recorded.size()) {
  for (const perfdata::Event& event : written) written_table_.Add(event);
}

Status Transform::Drop(const RawRecord& raw, std::string_view why) {
  report_.AddDropped(perfdata::RecordTypeName(raw.type), why, raw.bytes.size() + raw.extra_size);
  return {};
}

Status Transform::DropBad(const RawRecord& raw, Error error) {
  if (!salvage_) return Fail(SalvageCures(std::move(error)));
  ++bad_records_;
  return Drop(raw, kWhyDamaged);
}

Status Transform::OnTimedRecord(const perfdata::TimedRecord& timed) {
  if (IsWriters(timed.raw)) return {};
  return timed.raw.record_type() == RecordType::kSample ? OnSample(timed) : OnOther(timed);
}

SpaceId Transform::UserSpaceOf(Machine machine, uint32_t pid) {
  if (!last_space_ || last_space_->machine != machine || last_space_->pid != pid) {
    last_space_ = {machine, pid, spaces_.UserSpace(machine, pid)};
  }
  return last_space_->space;
}

Result<bool> Transform::RewriteSample(const perfdata::TimedRecord& timed) {
  const RawRecord& raw = timed.raw;
  std::optional<SamplePlan>& plan = plans_[*timed.event].plan;
  if (!plan || !plan->Fits(raw.bytes)) return false;
  const Machine machine = MachineOf(raw.cpu_mode());
  rewritten_.resize(raw.bytes.size());
  const uint32_t pid = plan->PidOf(raw.bytes);
  AddressContext context = {UserSpaceOf(machine, pid), machine, raw.cpu_mode(), {}};
  context.thread = plan->TidOf(raw.bytes);
  context.pid = pid;
  context.spaces = &spaces_;
  fields_.Begin(context, sample_tally_);
  plan->Rewrite(raw.bytes, fields_, rewritten_.data());
  ++samples_;
  TRY(writer_.WriteEncoded(rewritten_));
  return true;
}

Status Transform::OnSample(const perfdata::TimedRecord& timed) {
  const RawRecord& raw = timed.raw;
  if (!timed.event || *timed.event >= recorded_.size()) {
    return DropBad(raw, Error(ErrorKind::kDamaged, "a sample of no event that the recording has")
                            .AtOffset(raw.file_offset));
  }
  TRY_ASSIGN(const bool rewritten, RewriteSample(timed));
  if (rewritten) return {};
  const perfdata::Attr& attr = recorded_[*timed.event].attr;
  if (auto decoded = perfdata::DecodeSample(raw, attr, endian_, sample_); !decoded) {
    return DropBad(raw, std::move(decoded.error()));
  }
  const Machine machine = MachineOf(raw.cpu_mode());
  AddressContext context = {UserSpaceOf(machine, sample_.pid), machine, raw.cpu_mode(), {}};
  context.thread = sample_.tid;
  context.pid = sample_.pid;
  context.spaces = &spaces_;
  if ((written_[*timed.event].attr.sample_type & perfdata::kSampleRaw) != 0) {
    safe_raw_ = raw_fields_->Safe(attr, sample_.raw);
    context.safe_raw = &safe_raw_;
  }
  fields_.Begin(context, sample_tally_);
  perfdata::VisitFields(sample_, perfdata::WireScope{raw.misc, &attr}, fields_);
  ++samples_;
  PlanOfEvent& of = plans_[*timed.event];
  if (!of.made) {
    of = {true, SamplePlan::Make(attr, written_[*timed.event].attr, fields_.level(), endian_)};
  }
  return writer_.WriteSample(sample_, raw.misc, *timed.event);
}

AddressContext Transform::ContextOf(const Record& record) const {
  AddressContext context;
  context.mode = static_cast<CpuMode>(record.misc & perfdata::kMiscCpuModeMask);
  context.machine = MachineOf(context.mode);
  context.pid = PidOf(record);
  context.spaces = &spaces_;
  context.user = spaces_.UserSpace(context.machine, context.pid);
  if (std::holds_alternative<perfdata::CallchainDeferred>(record.body)) {
    context.mode = CpuMode::kUser;  // the kernel says so by the marker only
  }
  return context;
}

FieldTally& Transform::TallyOf(uint32_t type) {
  const auto [it, is_new] = tallies_.try_emplace(type);
  if (is_new) it->second = &report_.Structure(perfdata::RecordTypeName(type));
  return *it->second;
}

// A mask of pointer authentication, which an EVENT_UPDATE carries.
Status Transform::OnMask(perfdata::PacMask& mask) {
  fields_.Begin(AddressContext(), TallyOf(perfdata::kRecordTypePacMask));
  perfdata::VisitFields(mask, perfdata::WireScope(), fields_);
  Record record;
  record.type = static_cast<uint32_t>(RecordType::kEventUpdate);
  record.body = perfdata::MakePacMaskUpdate(mask, endian_);
  return writer_.WriteRecord(record);
}

Status Transform::OnOther(const perfdata::TimedRecord& timed) {
  const RawRecord& raw = timed.raw;
  // What follows a record outside its size is payload.
  if (raw.extra_size != 0) return Drop(raw, "payload");
  const perfdata::Attr* attr =
      timed.event && *timed.event < recorded_.size() ? &recorded_[*timed.event].attr : nullptr;
  Result<Record> record = perfdata::DecodeRecord(raw, {endian_, attr});
  if (!record) return DropBad(raw, std::move(record.error()));
  if (IsWriters(*record)) return {};
  if (std::holds_alternative<perfdata::Opaque>(record->body)) return Drop(raw, "unknown");

  if (const auto* update = std::get_if<perfdata::EventUpdate>(&record->body)) {
    if (auto mask = perfdata::PacMaskOf(*update, endian_)) return OnMask(*mask);
  }

  spaces_.Apply(*record);
  last_space_.reset();
  AddressContext context = ContextOf(*record);
  if (const auto mapping = MappingOf(*record)) {
    const SpaceId space = spaces_.MappingSpace(mapping->mode, mapping->pid);
    if (space >= kFirstUserSpace && session::ReachesBeyondMemory(mapping->addr, mapping->len)) {
      return DropBad(raw, Error(ErrorKind::kDamaged, "a mapping that reaches beyond all memory")
                              .AtOffset(raw.file_offset));
    }
    context.mapping = remap_.Mapping(space, *mapping);
    if (auto* mmap = std::get_if<perfdata::Mmap>(&record->body)) mmap->len = context.mapping.len;
    if (auto* mmap = std::get_if<perfdata::Mmap2>(&record->body)) mmap->len = context.mapping.len;
  }
  const perfdata::WireScope scope{record->misc, attr};
  fields_.Begin(context, TallyOf(raw.type));
  std::visit([&](auto& body) { perfdata::VisitFields(body, scope, fields_); }, record->body);
  if (fields_.dropped_content()) return Drop(raw, "payload");
  if (record->sample_id) {
    fields_.Begin(context, trailer_tally_);
    perfdata::VisitFields(*record->sample_id, scope, fields_);
  }
  const perfdata::Attr* written = attr == nullptr ? nullptr : &written_[*timed.event].attr;
  auto encoded = perfdata::EncodeRecord(*record, {endian_, written});
  if (!encoded) return DropBad(raw, std::move(encoded.error()));
  return Write(timed, *encoded);
}

// What a damaged record has behind its fields does not go out, so it ends otherwise: there may
// stand then what is an event's id.
Status Transform::Write(const perfdata::TimedRecord& timed, ByteView encoded) {
  const RawRecord& raw = timed.raw;
  constexpr uint32_t kFirstUserType = 64;
  RawRecord written;
  written.type = raw.type;
  written.misc = raw.misc;
  written.bytes = encoded;
  const bool is_kernels = raw.type < kFirstUserType && timed.event.has_value();
  if (is_kernels && written_table_.IndexOf(written, endian_) != timed.event) {
    return DropBad(raw,
                   Error(ErrorKind::kDamaged, "a record that does not end as those of its event do")
                       .AtOffset(raw.file_offset));
  }
  return writer_.WriteEncoded(encoded);
}

}  // namespace stackreel::anonymize
