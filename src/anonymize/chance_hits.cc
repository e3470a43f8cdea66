#include "anonymize/chance_hits.h"

#include <algorithm>

#include "anonymize/verify_attr.h"
#include "anonymize/verify_record.h"
#include "base/byte_writer.h"
#include "perfdata/attr_layout.h"
#include "perfdata/context_marker.h"
#include "session/limits.h"

namespace stackreel::anonymize {
namespace {

using perfdata::FieldInfo;
using perfdata::Sensitivity;

constexpr size_t kWord = 8;

// Of what no address can be, as it is kept: see TreatmentOf.
bool IsNoAddress(Sensitivity sensitivity) {
  switch (sensitivity) {
    case Sensitivity::kNone:
    case Sensitivity::kPid:
    case Sensitivity::kTime:
    case Sensitivity::kWallTime:
    case Sensitivity::kCycles:
    case Sensitivity::kFileId:
    case Sensitivity::kMachine:
      return true;
    default:
      return false;
  }
}

// Attrs stand in several places, whole; all are the same field here.
constexpr FieldInfo kAttr("attr", Sensitivity::kEventConfig);
bool IsAttr(const FieldInfo& field) {
  return field.sensitivity == kAttr.sensitivity && field.name == kAttr.name;
}
// An event's ids stand in several places, too, and in records, which may have two: of a damaged one
// they may differ, and what becomes of it has one.
constexpr FieldInfo kEventId("id", Sensitivity::kNone);
bool IsEventId(const FieldSpan& span) {
  return span.info != nullptr && span.info->sensitivity == kEventId.sensitivity &&
         span.width == kWord &&
         (span.info->name == kEventId.name || span.info->name == "identifier");
}
// The field that what stood in a field of IN stood in.
const FieldInfo* FieldOf(const FieldSpan& span) { return IsEventId(span) ? &kEventId : span.info; }

// Of a branch stack the flags of a branch, the last of three words.
bool IsBranches(const FieldSpan& span) {
  return span.IsAddresses() && span.info->name == "branches";
}
bool IsFlags(const FieldSpan& span, size_t at) { return (span.end - at) / kWord % 3 == 1; }

uint64_t LoadNumber(const uint8_t* bytes, size_t width, Endian endian) {
  switch (width) {
    case 1:
      return *bytes;
    case 2:
      return LoadUnaligned<uint16_t>(bytes, endian);
    case 4:
      return LoadUnaligned<uint32_t>(bytes, endian);
    default:
      return LoadUnaligned<uint64_t>(bytes, endian);
  }
}

bool IsNoAddressThere(const FieldSpan& span, size_t at, uint64_t value) {
  if (IsNoAddress(span.info->sensitivity)) return true;
  if (IsBranches(span)) return IsFlags(span, at);
  if (span.info->sensitivity == Sensitivity::kMapOffset) {
    return value < session::kCodeOffsetEnd || value == UINT64_MAX;
  }
  // Among a chain's addresses are markers, which are none.
  return span.IsAddresses() && value >= perfdata::kContextMax;
}

}  // namespace

std::vector<ChanceHits::Number> ChanceHits::NumbersAt(ByteView bytes,
                                                      std::span<const FieldSpan> fields,
                                                      size_t begin, size_t size, Endian endian) {
  const size_t end = begin + size;
  size_t covered = 0;
  std::vector<Number> numbers;
  for (const FieldSpan& span : fields) {
    if (span.end <= begin || span.begin >= end || span.info == nullptr) continue;
    const size_t from = std::max(begin, span.begin), to = std::min(end, span.end);
    covered += to - from;
    if (IsAttr(*span.info)) {
      // Eight bytes each, from wherever they begin; the last ones may be some of those before.
      if (span.end - span.begin < kWord) return {};
      for (size_t at = from; at < to; at += kWord) {
        const size_t word = std::min(at, span.end - kWord);
        numbers.push_back(
            {&kAttr, word - span.begin, LoadNumber(bytes.data() + word, kWord, endian)});
      }
      continue;
    }
    if (span.form == FieldForm::kBytes) return {};
    for (size_t at = from - ((from - span.begin) % span.width); at < to; at += span.width) {
      if (at + span.width > span.end) return {};
      const uint64_t value = LoadNumber(bytes.data() + at, span.width, endian);
      if (!IsNoAddressThere(span, at, value)) return {};
      numbers.push_back({FieldOf(span), 0, value});
    }
  }
  return covered == size ? numbers : std::vector<Number>();
}

void ChanceHits::Add(const Finding& finding, ByteView bytes, std::span<const FieldSpan> fields,
                     size_t begin, size_t size, Endian endian) {
  const std::vector<Number> numbers = NumbersAt(bytes, fields, begin, size, endian);
  if (numbers.empty()) return findings_.Add(finding);
  const auto [held, is_new] = held_.try_emplace({finding.record, numbers}, Held{finding, 0});
  ++held->second.count;
  if (!is_new) return;
  for (const Number& number : numbers) {
    wanted_.try_emplace(number);
    wanted_fields_.insert(number.field);
    wanted_values_.insert(number.value);
  }
}

void ChanceHits::See(ByteView bytes, std::span<const FieldSpan> fields, Endian endian) {
  for (const FieldSpan& span : fields) {
    const FieldInfo* field = FieldOf(span);
    if (!wanted_fields_.contains(field) || span.form == FieldForm::kBytes) continue;
    const bool is_branches = IsBranches(span);
    for (size_t at = span.begin; at + span.width <= span.end; at += span.width) {
      if (is_branches && !IsFlags(span, at)) continue;
      const auto wanted =
          wanted_.find({field, 0, LoadNumber(bytes.data() + at, span.width, endian)});
      if (wanted != wanted_.end()) wanted->second = true;
    }
  }
}

void ChanceHits::SeeEvents(const perfdata::Reader& reader) {
  for (const perfdata::Event& event : reader.events().events()) {
    for (const uint64_t id : event.ids) {
      if (wanted_values_.contains(id)) wanted_[{&kEventId, 0, id}] = true;
    }
    perfdata::Attr attr = event.attr;
    attr.tail.clear();
    if (MayHaveAddress(attr.type, pmu_names_)) {
      attr.config = attr.config1 = attr.config2 = attr.config3 = attr.config4 = 0;
    }
    attr.sig_data = 0;
    ByteWriter out(reader.endian());
    perfdata::EncodeFields(out, attr, perfdata::WireScope());
    std::vector<uint8_t> bytes = out.Take();
    const auto see = [&](size_t at) {
      const auto wanted =
          wanted_.find({&kAttr, at, LoadNumber(bytes.data() + at, kWord, reader.endian())});
      if (wanted != wanted_.end()) wanted->second = true;
    };
    for (size_t at = 0; at + kWord <= bytes.size(); ++at) see(at);
    // Behind the type, of four bytes, is the attr's size: as much as the Writer made of it.
    for (uint32_t size = perfdata::kAttrSizeFirst; size <= perfdata::kAttrSizeLast; size += 8) {
      StoreUnaligned(bytes.data() + sizeof(uint32_t), size, reader.endian());
      for (size_t at = 0; at < kWord; ++at) see(at);
    }
  }
}

class ChanceHits::InPass : public perfdata::RecordSink {
 public:
  InPass(const perfdata::Reader& reader, ChanceHits& hits) : reader_(reader), hits_(hits) {}
  Status OnRecord(const perfdata::RawRecord& raw) override {
    const Endian endian = reader_.endian();
    const auto& events = reader_.events().events();
    const auto event = reader_.events().IndexOf(raw, endian);
    const perfdata::Attr* attr = event && *event < events.size() ? &events[*event].attr : nullptr;
    const bool is_sample = raw.record_type() == perfdata::RecordType::kSample;
    const bool decoded =
        is_sample
            ? attr != nullptr && FindFieldsOfSample(raw, *attr, endian, sample_, fields_)
            : FindFields(raw, attr, endian, NrCpusOf(reader_.features()), fields_).has_value();
    if (decoded) hits_.See(raw.bytes, fields_.spans(), endian);
    return {};
  }

 private:
  const perfdata::Reader& reader_;
  ChanceHits& hits_;
  perfdata::Sample sample_;
  FieldSpans fields_;
};

bool ChanceHits::WasInIn(const std::vector<Number>& numbers) const {
  return std::ranges::all_of(numbers, [&](const Number& number) {
    const auto is_seen = [&](const Number& wanted) {
      const auto found = wanted_.find(wanted);
      return found != wanted_.end() && found->second;
    };
    return is_seen(number) || (number.field->sensitivity == Sensitivity::kNone &&
                               is_seen({&kEventId, 0, number.value}));
  });
}

Status ChanceHits::Resolve() {
  if (held_.empty()) return {};
  TRY_ASSIGN(const RereadableRecording::Opened input, in_.Open());
  const perfdata::Reader& reader = *input.reader;
  InPass pass(reader, *this);
  TRY(input.reader->ReadAll(pass));
  FieldSpans fields;
  for (const auto& [feature, bytes] : reader.features().raw) {
    const uint32_t nr_cpus = NrCpusOf(reader.features());
    if (FindFieldsOfFeature(feature, bytes, reader.endian(), nr_cpus, fields)) {
      See(bytes, fields.spans(), reader.endian());
    }
  }
  SeeEvents(reader);
  for (const auto& [where, held] : held_) {
    if (!WasInIn(where.second)) findings_.Add(held.first, held.count);
  }
  held_.clear();
  wanted_.clear();
  wanted_fields_.clear();
  wanted_values_.clear();
  return {};
}

}  // namespace stackreel::anonymize
