#include "anonymize/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "anonymize/field_spans.h"
#include "anonymize/originals.h"
#include "anonymize/verify_out.h"
#include "anonymize/verify_samples.h"
#include "anonymize/verify_text.h"
#include "perfdata/feature_layout.h"
#include "perfdata/pac_mask.h"
#include "perfdata/sorter.h"
#include "session/limits.h"

namespace stackreel::anonymize {
namespace {

using perfdata::RawRecord;
using perfdata::Reader;

Status CheckWhole(const perfdata::ReadEnd& read, std::string_view name) {
  if (read.complete || !read.damage) return {};
  Error error = *read.damage;
  if (error.file.empty()) error.file = name;
  return Fail(std::move(error));
}

const perfdata::Attr* AttrOf(const Reader& reader, std::optional<uint32_t> event) {
  const auto& events = reader.events().events();
  return event && *event < events.size() ? &events[*event].attr : nullptr;
}

// Reads what of IN is no sample, in order of time.
class InPass : public perfdata::TimedSink {
 public:
  InPass(const Reader& reader, InFacts& facts, DenyList& denied, HiddenValues& hidden)
      : reader_(reader), facts_(facts), denied_(denied), hidden_(hidden) {
    hidden_.SetPmuNames(reader.features().pmu_names);
  }
  Status OnTimedRecord(const perfdata::TimedRecord& timed) override;

 private:
  const Reader& reader_;
  InFacts& facts_;
  DenyList& denied_;
  HiddenValues& hidden_;
  FieldSpans fields_;
};

// Reads IN's samples, in order of time.
class InSamplesPass : public perfdata::TimedSink {
 public:
  InSamplesPass(const Reader& reader, InFacts& facts, HiddenValues& hidden)
      : reader_(reader), facts_(facts), hidden_(hidden) {}
  Status OnTimedRecord(const perfdata::TimedRecord& timed) override {
    const perfdata::Attr* attr = AttrOf(reader_, timed.event);
    if (timed.raw.record_type() != perfdata::RecordType::kSample || attr == nullptr) return {};
    if (!perfdata::DecodeSample(timed.raw, *attr, reader_.endian(), sample_)) return {};
    facts_.samples.Add({*timed.event, sample_.time, sample_.period});
    hidden_.AddSample(sample_);
    return {};
  }

 private:
  const Reader& reader_;
  InFacts& facts_;
  HiddenValues& hidden_;
  perfdata::Sample sample_;
};

Status InPass::OnTimedRecord(const perfdata::TimedRecord& timed) {
  const RawRecord& raw = timed.raw;
  const Endian endian = reader_.endian();
  const perfdata::Attr* attr = AttrOf(reader_, timed.event);
  if (raw.extra_size != 0) return {};
  const auto record = FindFields(raw, attr, endian, 0, fields_);
  if (!record) return {};
  facts_.times.Add(raw.bytes, fields_.spans(), endian);
  facts_.mappings.Add(*record, raw.file_offset);
  denied_.AddRecord(*record);
  hidden_.AddRecord(*record, attr, endian, /*goes_out=*/!MapsBeyondMemory(*record));
  return {};
}

// Reads the mappings of OUT, as they come, and counts its records by type.
class OutMappingPass : public perfdata::RecordSink {
 public:
  OutMappingPass(const Reader& reader, SeenMappings& mappings,
                 std::map<uint32_t, uint64_t>& records)
      : reader_(reader), mappings_(mappings), records_(records) {}
  // Whether who sorts its records by time gets them as they stand.
  [[nodiscard]] bool is_sorted() const { return is_sorted_; }
  Status OnRecord(const RawRecord& raw) override {
    if (raw.type != last_type_) records_of_last_ = &records_[last_type_ = raw.type];
    ++*records_of_last_;
    SeeTime(raw);
    switch (raw.record_type()) {
      case perfdata::RecordType::kMmap:
      case perfdata::RecordType::kMmap2:
      case perfdata::RecordType::kKsymbol:
        break;
      default:
        return {};
    }
    const Endian endian = reader_.endian();
    const perfdata::Attr* attr = AttrOf(reader_, reader_.events().IndexOf(raw, endian));
    const auto record = perfdata::DecodeRecord(raw, {endian, attr});
    if (record) mappings_.Add(*record, raw.file_offset);
    return {};
  }

 private:
  void SeeTime(const RawRecord& raw) {
    constexpr uint32_t kFirstUserType = 64;
    const Endian endian = reader_.endian();
    uint64_t time = reader_.events().TimeOf(raw, endian).value_or(0);
    if (raw.type >= kFirstUserType) {
      if (const auto read = perfdata::SideBandTime(raw, endian)) time = *read;
    }
    // What has no time passes those by that wait for theirs.
    const bool has_none = time == 0 || time == UINT64_MAX;
    if (has_none ? raw.type < kFirstUserType && last_time_ != 0 : time < last_time_) {
      is_sorted_ = false;
    }
    if (!has_none) last_time_ = time;
  }

  const Reader& reader_;
  SeenMappings& mappings_;
  std::map<uint32_t, uint64_t>& records_;
  uint64_t* records_of_last_ = nullptr;
  uint32_t last_type_ = UINT32_MAX;
  uint64_t last_time_ = 0;
  bool is_sorted_ = true;
};

// A block of samples, read again because it is not the same.
struct Block {
  uint64_t number = 0, at = 0;  // the block; the sample that comes next
  std::vector<SampleFacts> samples;
  std::vector<uint64_t> file_offsets;
  void Add(const SampleFacts& facts, uint64_t file_offset) {
    if (at++ / SampleDigests::kBlock != number) return;
    samples.push_back(facts);
    file_offsets.push_back(file_offset);
  }
};

class BlockPass : public perfdata::TimedSink, public perfdata::RecordSink {
 public:
  BlockPass(const Reader& reader, Block& block) : reader_(reader), block_(block) {}
  Status OnTimedRecord(const perfdata::TimedRecord& timed) override {
    const perfdata::Attr* attr = AttrOf(reader_, timed.event);
    if (timed.raw.record_type() != perfdata::RecordType::kSample || attr == nullptr) return {};
    if (!perfdata::DecodeSample(timed.raw, *attr, reader_.endian(), sample_)) return {};
    block_.Add({*timed.event, sample_.time, sample_.period}, timed.raw.file_offset);
    return {};
  }
  Status OnRecord(const RawRecord& raw) override {
    return OnTimedRecord({raw, 0, reader_.events().IndexOf(raw, reader_.endian())});
  }

 private:
  const Reader& reader_;
  Block& block_;
  perfdata::Sample sample_;
};

// Finds the first sample that is not the same; they differ.
Status LocateDifference(const RereadableRecording& in, const RereadableRecording& out,
                        uint64_t number, Findings& findings) {
  Block before, after;
  before.number = after.number = number;
  TRY_ASSIGN(const RereadableRecording::Opened from, in.Open());
  BlockPass in_pass(*from.reader, before);
  Counters ignored;
  perfdata::RoundSorter sorter(*from.reader, in_pass, ignored);
  TRY(from.reader->ReadAll(sorter));
  TRY(sorter.Finish());
  TRY_ASSIGN(const RereadableRecording::Opened to, out.Open());
  BlockPass out_pass(*to.reader, after);
  TRY(to.reader->ReadAll(out_pass));
  size_t i = 0;
  while (i < std::min(before.samples.size(), after.samples.size()) &&
         before.samples[i] == after.samples[i]) {
    ++i;
  }
  Finding finding;
  finding.kind = FindingKind::kDifference;
  finding.record = "SAMPLE";
  const uint64_t ordinal = (number * SampleDigests::kBlock) + i;
  const auto text = [i](const Block& block) {
    if (i >= block.samples.size()) return std::string("none");
    const SampleFacts& facts = block.samples[i];
    return fmt::format("event {} time {} period {}", facts.event, facts.time, facts.period);
  };
  if (i < after.file_offsets.size()) finding.file_offset = after.file_offsets[i];
  finding.value = fmt::format("sample {}: {}; in IN: {}", ordinal, text(after), text(before));
  findings.Add(finding);
  return {};
}

// What both say of their mappings, one by one.
class MappingCheck {
 public:
  MappingCheck(const InFacts& in, const SeenMappings& out, const AllowedPlaces& places,
               Findings& findings)
      : in_(in), out_(out), places_(places), findings_(findings) {}
  void Run();

 private:
  void Pair(const SeenMapping& was, const SeenMapping& is);
  void Add(FindingKind kind, const SeenMapping& is, std::string_view field, std::string value);
  [[nodiscard]] bool MustMove(const SeenMapping& was) const;
  [[nodiscard]] bool StayedByChance() const;

  const InFacts& in_;
  const SeenMappings& out_;
  const AllowedPlaces& places_;
  Findings& findings_;
  bool some_stay_by_chance_ = false;
};

void MappingCheck::Add(FindingKind kind, const SeenMapping& is, std::string_view field,
                       std::string value) {
  Finding finding;
  finding.kind = kind;
  finding.record = is.symbol ? "KSYMBOL" : "MMAP";
  finding.field = field;
  finding.file_offset = is.file_offset;
  finding.value = std::move(value);
  findings_.Add(finding);
}

// In a crowded space there may be no other place.
bool MappingCheck::MustMove(const SeenMapping& was) const {
  constexpr uint64_t kCrowded = uint64_t{1} << 30, kHuge = uint64_t{1} << 44;
  if (was.addr == 0 || was.len == 0 || was.len >= kHuge || was.IsOfUnknownPlace()) return false;
  return was.addr >= k4GB || in_.originals.low_bytes() < kCrowded;
}

// In 32 bits there are few places, and of hundreds of mappings one gets its own now and then.
bool MappingCheck::StayedByChance() const {
  if (in_.originals.is_64_bit()) return false;
  constexpr size_t kOneOf = 8;
  size_t stayed = 0, all = 0;
  for (size_t i = 0; i < out_.all().size(); ++i) {
    if (!MustMove(in_.mappings.all()[i])) continue;
    ++all;
    stayed += out_.all()[i].addr == in_.mappings.all()[i].addr ? 1 : 0;
  }
  return stayed * kOneOf < all;
}

void MappingCheck::Pair(const SeenMapping& was, const SeenMapping& is) {
  if (is.addr == was.addr && !some_stay_by_chance_ && MustMove(was)) {
    Add(FindingKind::kOriginalValue, is, "addr", fmt::format("{:#x}, where it was", is.addr));
  }
  if (!was.kernel && is.len != was.len) {
    Add(FindingKind::kDifference, is, "len", fmt::format("{:#x}, in IN {:#x}", is.len, was.len));
  }
  const bool is_offset = !was.anonymous && !was.kernel_image && is.pgoff == was.pgoff;
  const bool may_be_address =
      was.anonymous || was.kernel || was.pgoff >= session::kCodeOffsetEnd;  // of no code
  const bool good = is.pgoff == 0 || is_offset || (may_be_address && places_.Has(is.pgoff));
  if (!good) {
    Add(FindingKind::kAddressOutside, is, "pgoff",
        fmt::format("{:#x}, which is neither an offset nor in a mapping", is.pgoff));
  }
}

void MappingCheck::Run() {
  for (const SeenMapping& mapping : out_.impossible()) {
    Add(FindingKind::kDifference, mapping, "len",
        fmt::format("{:#x}, beyond all memory", mapping.len));
  }
  const auto &before = in_.mappings.all(), &after = out_.all();
  if (before.size() != after.size()) {
    Finding finding;
    finding.kind = FindingKind::kDifference;
    finding.record = "MMAP";
    finding.value = fmt::format("{} mappings, in IN {}", after.size(), before.size());
    return findings_.Add(finding);
  }
  some_stay_by_chance_ = StayedByChance();
  for (size_t i = 0; i < before.size(); ++i) Pair(before[i], after[i]);
}

// Kernel records that are more than in IN; perf's own the Writer makes as its container needs.
void CheckRecordCounts(const InFacts& in, const std::map<uint32_t, uint64_t>& out,
                       Findings& findings) {
  constexpr uint32_t kFirstUserType = 64;
  for (const auto& [type, count] : out) {
    if (type >= kFirstUserType) break;
    const auto known = in.records.find(type);
    const uint64_t before = known == in.records.end() ? 0 : known->second;
    if (count <= before) continue;
    Finding finding;
    finding.kind = FindingKind::kDifference;
    finding.record = perfdata::RecordTypeName(type);
    finding.value = fmt::format("{} records, in IN {}", count, before);
    findings.Add(finding);
  }
}

// At which level OUT says it was made. Its reader has read it to its end: in pipes features come
// among the records.
Result<std::optional<Level>> MarkOf(const Reader& reader, std::string_view name) {
  const auto& raw = reader.features().raw;
  const auto bytes = raw.find(static_cast<uint32_t>(perfdata::Feature::kStackreelAnonymized));
  if (bytes == raw.end()) return std::nullopt;
  const auto mark =
      perfdata::DecodeFeatureAs<perfdata::AnonymizedMark>(bytes->second, reader.endian());
  Error error(ErrorKind::kUnsupported, "its mark of how much was hidden cannot be read");
  error.file = name;
  if (!mark || mark->version == 0) return Fail(std::move(error));
  if (mark->level > static_cast<uint32_t>(Level::kSymbols)) {
    error.message = fmt::format("its mark tells of level {}, which is not known", mark->level);
    return Fail(std::move(error));
  }
  return static_cast<Level>(mark->level);
}

Status ReadIn(const RereadableRecording& in, bool salvaged, InFacts& facts, DenyList& denied,
              HiddenValues& hidden, bool has_unwound) {
  std::optional<InPass> pass;
  TRY_ASSIGN(const auto read, in.ReadSideBand([&](const Reader& reader) -> perfdata::TimedSink& {
    return pass.emplace(reader, facts, denied, hidden);
  }));
  if (!salvaged) TRY(CheckWhole(read->side_band.read(), in.name()));
  facts.records = read->side_band.counts();
  const Reader& reader = *read->opened.reader;
  const perfdata::Features& features = reader.features();
  facts.pmu_names = features.pmu_names;
  facts.events = reader.events().events().size();
  hidden.SetPmuNames(features.pmu_names);
  denied.AddFeatures(features);
  for (const perfdata::Event& event : reader.events().events()) hidden.AddEventName(event.name);
  FieldSpans fields;
  for (const auto& [feature, bytes] : features.raw) {
    if (FindFieldsOfFeature(feature, bytes, reader.endian(), 0, fields)) {
      facts.times.Add(bytes, fields.spans(), reader.endian());
    }
    hidden.AddFeature(feature, bytes, reader.endian(), NrCpusOf(features));
  }
  facts.endian = reader.endian();
  facts.fits_side_by_side = SideBySide::Fits(reader, facts.mappings, has_unwound);
  facts.originals = OriginalValues(facts.mappings, facts.mappings.Width(features));
  return {};
}

Status ReadSamplesOfIn(const RereadableRecording& in, InFacts& facts, HiddenValues& hidden) {
  TRY_ASSIGN(const RereadableRecording::Opened input, in.Open());
  InSamplesPass pass(*input.reader, facts, hidden);
  Counters ignored;
  perfdata::RoundSorter sorter(*input.reader, pass, ignored);
  TRY(input.reader->ReadAll(sorter));
  return sorter.Finish();
}

// By number of the sample.
Result<std::map<uint64_t, std::string>> CompareAnalyses(const VerifyOptions& options, Level level,
                                                        Findings& findings) {
  std::map<uint64_t, std::string> differences;
  if (options.in_samples == nullptr || options.out_samples == nullptr) return differences;
  TRY(CompareFrames(*options.in_samples, *options.out_samples, level,
                    [&](uint64_t sample, std::string what) {
                      if (differences.size() < options.findings_kept) {
                        differences.emplace(sample, std::move(what));
                      } else {
                        findings.Add({FindingKind::kDifference, "SAMPLE", "callchain", 0, 0, what});
                      }
                    }));
  return differences;
}

}  // namespace

Result<Verdict> Verify(const RereadableRecording& in, const RereadableRecording& out,
                       const VerifyOptions& options) {
  SeenMappings mappings;
  std::map<uint32_t, uint64_t> records;
  std::optional<Level> mark;
  bool out_is_sorted = false;
  {
    TRY_ASSIGN(const RereadableRecording::Opened output, out.Open());
    OutMappingPass pass(*output.reader, mappings, records);
    TRY_ASSIGN(const perfdata::ReadEnd read, output.reader->ReadAll(pass));
    TRY(CheckWhole(read, out.name()));
    TRY_ASSIGN(mark, MarkOf(*output.reader, out.name()));
    out_is_sorted = pass.is_sorted();
  }
  const Level level = std::max(options.level.value_or(Level::kAddresses), mark.value_or(Level()));
  DenyList denied(level);
  for (const std::string& text : options.denied) denied.Add(text);
  InFacts facts(level);
  HiddenValues hidden({level, options.publics, {}});
  TRY(ReadIn(in, options.salvaged, facts, denied, hidden, options.unwound != nullptr));

  Verdict verdict;
  verdict.level = level;
  verdict.mark = mark;
  Findings findings(verdict, options.findings_kept);
  if (options.must_be_marked && mark != options.level) {
    findings.Add({FindingKind::kDifference, "feature STACKREEL_ANONYMIZED", "level", 0, 0,
                  mark ? std::string(LevelName(*mark)) : "no mark"});
  }
  facts.originals.AddMoves(facts.mappings, mappings);
  const AllowedPlaces places(mappings, facts.originals.width());
  MappingCheck(facts, mappings, places, findings).Run();

  TRY_ASSIGN(const RereadableRecording::Opened input, in.Open());
  TRY_ASSIGN(const RereadableRecording::Opened output, out.Open());
  SideBySide side_by_side(*input.reader, *output.reader, level, facts.samples, hidden,
                          options.unwound);
  const bool reads_side_by_side = facts.fits_side_by_side && out_is_sorted;
  std::map<uint64_t, std::string> differences;
  if (!reads_side_by_side) {
    TRY(ReadSamplesOfIn(in, facts, hidden));
    TRY_ASSIGN(differences, CompareAnalyses(options, level, findings));
  }
  const TextSearch texts(denied.texts());
  const TextSearch modules(hidden.DeniedTexts());
  const OutCheck check = {level,
                          in,
                          facts,
                          places,
                          texts,
                          modules,
                          hidden,
                          records,
                          differences,
                          options.keeps_raw,
                          reads_side_by_side ? &side_by_side : nullptr};
  TRY_ASSIGN(const OutCounts counts, CheckOut(output, check, findings));
  CheckRecordCounts(facts, records, findings);
  if (counts.samples != facts.samples) {
    TRY(LocateDifference(in, out, facts.samples.FirstDifference(counts.samples), findings));
  }
  findings.Finish();
  verdict.samples = counts.samples.count();
  verdict.mappings = mappings.all().size();
  verdict.bytes = counts.bytes;
  return verdict;
}

}  // namespace stackreel::anonymize
