#include "anonymize/hidden_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <variant>

#include "anonymize/verify_text.h"
#include "perfdata/feature_layout.h"
#include "perfdata/pac_mask.h"
#include "perfdata/record_layout.h"
#include "perfdata/sample_layout.h"

namespace stackreel::anonymize {
namespace {

using perfdata::FieldInfo;
using perfdata::Sensitivity;

std::string Unpadded(ByteView bytes) {
  while (!bytes.empty() && bytes.back() == 0) bytes = bytes.first(bytes.size() - 1);
  return std::string(AsText(bytes));
}

bool IsNobody(uint64_t pid) { return pid == 0 || pid == UINT32_MAX || pid == UINT64_MAX; }
bool IsNoTime(uint64_t time) { return time == 0 || time == UINT64_MAX; }

bool IsCompared(Sensitivity sensitivity) {
  switch (sensitivity) {
    case Sensitivity::kPid:
    case Sensitivity::kFileId:
    case Sensitivity::kTime:
    case Sensitivity::kWallTime:
    case Sensitivity::kMachine:
      return true;
    default:
      return false;
  }
}

// Takes a visit of fields apart into numbers, texts and build-ids.
template <typename Values>
class EachValue {
 public:
  explicit EachValue(Values& values) : values_(values) {}
  template <std::integral N>
  void operator()(const FieldInfo& field, const N& number) {
    values_.Number(field, static_cast<uint64_t>(number));
  }
  void operator()(const FieldInfo& field, const std::vector<uint64_t>& numbers) {
    for (const uint64_t number : numbers) values_.Number(field, number);
  }
  void operator()(const FieldInfo& field, const perfdata::Bitmap& bitmap) {
    values_.Number(field, bitmap.bits);
    for (const uint64_t word : bitmap.words) values_.Number(field, word);
  }
  void operator()(const FieldInfo& field, const std::string& text) { values_.Text(field, text); }
  void operator()(const FieldInfo& field, const std::vector<std::string>& texts) {
    for (const std::string& text : texts) values_.Text(field, text);
  }
  void operator()(const FieldInfo& field, const BuildId& id) {
    values_.Build(field, Unpadded(id.bytes()));
  }
  template <size_t kSize>
  void operator()(const FieldInfo& field, const std::array<uint8_t, kSize>& tag) {
    if (field.sensitivity == Sensitivity::kBuildId) values_.Build(field, Unpadded(tag));
  }
  template <typename Other>
  void operator()(const FieldInfo&, const Other&) {}

 private:
  Values& values_;
};

template <typename Values>
void VisitRecord(const perfdata::Record& record, const perfdata::Attr* attr, Endian endian,
                 Values& values) {
  const perfdata::WireScope scope{record.misc, attr};
  EachValue<Values> each(values);
  const auto* update = std::get_if<perfdata::EventUpdate>(&record.body);
  if (update != nullptr) {
    if (const auto mask = perfdata::PacMaskOf(*update, endian)) {
      return perfdata::VisitFields(*mask, scope, each);
    }
  }
  std::visit([&](const auto& body) { perfdata::VisitFields(body, scope, each); }, record.body);
  if (record.sample_id) perfdata::VisitFields(*record.sample_id, scope, each);
}

template <typename Values>
void VisitFeature(uint32_t feature, ByteView bytes, Endian endian, uint32_t nr_cpus,
                  Values& values) {
  perfdata::WithFeatureBody(feature, [&]<typename Body>() {
    const auto body = perfdata::DecodeFeatureAs<Body>(bytes, endian, nr_cpus);
    perfdata::WireScope scope;
    scope.nr_cpus = nr_cpus;
    if (body) perfdata::VisitFields(*body, scope, EachValue<Values>(values));
  });
}

// Masks stand in EVENT_UPDATE records, among others.
uint32_t SequenceOf(const perfdata::Record& record, Endian endian) {
  const auto* update = std::get_if<perfdata::EventUpdate>(&record.body);
  const bool is_mask = update != nullptr && perfdata::PacMaskOf(*update, endian).has_value();
  return is_mask ? perfdata::kRecordTypePacMask : record.type;
}

}  // namespace

// Gathers what IN has.
class HiddenValues::Adding {
 public:
  Adding(HiddenValues& all, Sequence& sequence) : all_(all), sequence_(sequence) {}
  void Number(const FieldInfo& field, uint64_t number) {
    if (IsCompared(field.sensitivity)) sequence_.in.push_back(number);
  }
  void Text(const FieldInfo& field, std::string_view text) {
    auto& known = all_.parts_[field.sensitivity];
    for (const std::string_view part : PrivateParts(field.sensitivity, text, all_.rules_)) {
      known.emplace(part);
    }
    if (field.sensitivity != Sensitivity::kPath) return;
    const std::string_view module = PrivateModuleName(text, all_.rules_);
    if (all_.rules_.level >= Level::kSymbols && !module.empty()) all_.modules_.emplace(module);
    if (module.empty()) all_.public_parts_.emplace(text);
    if (!build_.empty() && module.empty()) all_.public_builds_.insert(build_);
    build_.clear();
  }
  void Build(const FieldInfo&, std::string id) {
    if (id.empty()) return;
    all_.builds_.insert(id);
    build_ = std::move(id);
  }

 private:
  HiddenValues& all_;
  Sequence& sequence_;
  std::string build_;  // whose path comes next
};

// Looks for it in OUT.
class HiddenValues::Checking {
 public:
  // `sequence`: null if OUT's numbers do not correspond to IN's.
  Checking(HiddenValues& all, Sequence* sequence, const Tell& tell)
      : all_(all), sequence_(sequence), tell_(tell) {}
  void Number(const FieldInfo& field, uint64_t number) {
    if (field.sensitivity == Sensitivity::kMachine && number != 0) {
      tell_(field, fmt::format("{}, of the machine", number));
    }
    if (!IsCompared(field.sensitivity) || sequence_ == nullptr) return;
    if (sequence_->next >= sequence_->in.size()) {
      sequence_ = nullptr;
      return;
    }
    all_.Compare(sequence_->name, field, sequence_->in[sequence_->next++], number, tell_);
  }
  void Text(const FieldInfo& field, std::string_view text) { all_.CheckText(field, text, tell_); }
  void Build(const FieldInfo& field, const std::string& id) {
    if (all_.rules_.level < Level::kSymbols || !all_.IsPrivateBuild(id)) return;
    tell_(field, "of a module or program that is not public");
  }

 private:
  HiddenValues& all_;
  Sequence* sequence_;
  const Tell& tell_;
};

void HiddenValues::FirstSeen::Add(uint64_t number) {
  const auto [found, is_new] = ordinals.try_emplace(number, order.size());
  if (is_new) order.push_back(number);
  digest = std::rotl((digest ^ found->second) * 0x9e3779b97f4a7c15, 29);
}

void HiddenValues::AddSample(const perfdata::Sample& sample) {
  if (rules_.level < Level::kIdentity) return;
  if (!has_first_time_) first_time_ = sample.time;
  has_first_time_ = true;
  in_pids_.Add(sample.pid);
  in_tids_.Add(sample.tid);
  in_files_.Add(sample.cgroup);  // 0 if there is none
}

void HiddenValues::AddRecord(const perfdata::Record& record, const perfdata::Attr* attr,
                             Endian endian, bool goes_out) {
  if (rules_.level < Level::kIdentity) return;
  Sequence of_none;
  Sequence& sequence = goes_out ? sequences_[SequenceOf(record, endian)] : of_none;
  if (sequence.records++ == 0) sequence.name = perfdata::RecordTypeName(record.type);
  Adding adding(*this, sequence);
  VisitRecord(record, attr, endian, adding);
}

void HiddenValues::AddFeature(uint32_t feature, ByteView bytes, Endian endian, uint32_t nr_cpus) {
  if (rules_.level < Level::kIdentity) return;
  Sequence& sequence = sequences_[kFeatures + feature];
  sequence.name = "feature " + perfdata::FeatureName(feature);
  Adding adding(*this, sequence);
  VisitFeature(feature, bytes, endian, nr_cpus, adding);
}

void HiddenValues::AddEventName(const std::string& name) {
  const auto parts = PrivateParts(Sensitivity::kEventName, name, rules_);
  for (const std::string_view part : parts) parts_[Sensitivity::kEventName].emplace(part);
  if (parts.empty()) public_parts_.insert(name);
}

std::set<std::string> HiddenValues::DeniedTexts() const {
  // Shorter ones, and public words, would be found everywhere.
  constexpr size_t kShortest = 6, kShortestBuild = 8;
  std::set<std::string> texts;
  if (rules_.level < Level::kSymbols) return texts;
  for (const std::string& name : modules_) {
    const auto is_name = [&](const std::string& text) { return text.contains(name); };
    const bool is_pmu = std::ranges::any_of(
        rules_.pmu_names, [&](const auto& pmu) { return pmu.second.contains(name); });
    const bool is_public = IsPublicComm(name, rules_.publics) || IsPublicFolder(name) ||
                           IsPublicArgument(name) || IsPublicEventWord(name) || is_pmu ||
                           std::ranges::any_of(public_parts_, is_name);
    // That no name of a module is an original one is seen where names are.
    if (name.size() >= kShortest && IsText(name) && !is_public) texts.insert(name);
  }
  for (const std::string& id : builds_) {
    if (id.size() < kShortestBuild || public_builds_.contains(id)) continue;
    std::string hex;
    for (const uint8_t byte : AsBytes(id)) hex += fmt::format("{:02x}", byte);
    texts.insert(hex);
  }
  return texts;
}

void HiddenValues::CompareTime(const FieldInfo& field, uint64_t in, uint64_t out,
                               const Tell& tell) {
  if (IsNoTime(in)) {
    if (out != in) tell(field, fmt::format("{}, in IN no time", out));
    return;
  }
  if (field.sensitivity == Sensitivity::kWallTime) {
    if (out == in) tell(field, fmt::format("{}, as in IN", out));
    return;
  }
  if (!has_shift_) shift_ = out - in;
  has_shift_ = true;
  if (out == in || out - in != shift_) {
    tell(field, fmt::format("{}, in IN {}: shifted by {}, others by {}", out, in,
                            static_cast<int64_t>(out - in), static_cast<int64_t>(shift_)));
  }
}

void HiddenValues::Compare(const std::string& record, const FieldInfo& field, uint64_t in,
                           uint64_t out, const Tell& tell) {
  const bool is_pid = field.sensitivity == Sensitivity::kPid;
  if (field.sensitivity == Sensitivity::kTime || field.sensitivity == Sensitivity::kWallTime) {
    return CompareTime(field, in, out, tell);
  }
  if (!is_pid && field.sensitivity != Sensitivity::kFileId) return;
  if (is_pid) {  // of 32 bits, whatever the field has room for
    in = static_cast<uint32_t>(in);
    if (out == UINT64_MAX) out = UINT32_MAX;
  }
  if (is_pid ? IsNobody(in) : in == 0 || in == UINT64_MAX) {
    if (out != in) tell(field, fmt::format("{}, in IN {}, which is none", out, in));
    return;
  }
  constexpr size_t kKept = 4;
  Evidence& evidence = evidence_[{record, &field}];
  if (in != out) evidence.changed = true;
  if (in == out && evidence.unchanged.size() < kKept) evidence.unchanged.insert(in);
  const uint64_t known = (is_pid ? pids_ : files_).try_emplace(in, out).first->second;
  const bool is_others = is_pid && pids_back_.try_emplace(out, in).first->second != in;
  if (known != out || is_others) {
    tell(field, fmt::format("{} stands for {}, {}", out, in,
                            is_others ? "and for another" : fmt::format("as {} does", known)));
  }
}

void HiddenValues::CheckText(const FieldInfo& field, std::string_view text, const Tell& tell) {
  if (field.sensitivity == Sensitivity::kPath) path_ = text;
  if (field.sensitivity == Sensitivity::kFunction && rules_.level >= Level::kSymbols &&
      !text.empty() && !IsPublicModule(path_, rules_.publics) && !IsPseudonymOfFunction(text)) {
    tell(field, fmt::format("\"{}\", a function of a module that is not public", text));
  }
  const auto known = parts_.find(field.sensitivity);
  if (known == parts_.end()) return;
  for (const std::string_view part : PrivateParts(field.sensitivity, text, rules_)) {
    if (known->second.contains(part)) tell(field, fmt::format("\"{}\"", part));
  }
}

void HiddenValues::CheckSample(const perfdata::Sample& sample, const Tell& tell) {
  if (rules_.level < Level::kIdentity) return;
  static constexpr FieldInfo kTime("time", Sensitivity::kTime);
  if (has_first_time_) CompareTime(kTime, first_time_, sample.time, tell);
  has_first_time_ = false;  // all others are compared with it
  out_pids_.Add(sample.pid);
  out_tids_.Add(sample.tid);
  out_files_.Add(sample.cgroup);
}

void HiddenValues::CheckRecord(const perfdata::Record& record, const perfdata::Attr* attr,
                               Endian endian, const std::map<uint32_t, uint64_t>& out_records,
                               const Tell& tell) {
  if (rules_.level < Level::kIdentity) return;
  const auto sequence = sequences_.find(SequenceOf(record, endian));
  const auto count = out_records.find(record.type);
  const bool correspond =
      sequence != sequences_.end() &&
      (sequence->first == perfdata::kRecordTypePacMask ||
       (count != out_records.end() && count->second == sequence->second.records));
  Checking checking(*this, correspond ? &sequence->second : nullptr, tell);
  VisitRecord(record, attr, endian, checking);
}

void HiddenValues::CheckFeature(uint32_t feature, ByteView bytes, Endian endian, uint32_t nr_cpus,
                                const Tell& tell) {
  if (rules_.level < Level::kIdentity) return;
  const auto sequence = sequences_.find(kFeatures + feature);
  Checking checking(*this, sequence == sequences_.end() ? nullptr : &sequence->second, tell);
  VisitFeature(feature, bytes, endian, nr_cpus, checking);
}

void HiddenValues::Finish(
    const std::function<void(const std::string& record, const FieldInfo& field, std::string what)>&
        tell) {
  static constexpr FieldInfo kPid("pid", Sensitivity::kPid);
  static constexpr FieldInfo kTid("tid", Sensitivity::kPid);
  static constexpr FieldInfo kCgroup("cgroup", Sensitivity::kFileId);
  for (const auto& [field, in, out] :
       {std::tuple(&kPid, &in_pids_, &out_pids_), std::tuple(&kTid, &in_tids_, &out_tids_),
        std::tuple(&kCgroup, &in_files_, &out_files_)}) {
    if (in->digest != out->digest || in->order.size() != out->order.size()) {
      tell("SAMPLE", *field, "numbers do not stand for IN's one for one");
      continue;
    }
    const Tell in_sample = [&](const FieldInfo& of, std::string what) {
      tell("SAMPLE", of, std::move(what));
    };
    for (size_t i = 0; i < in->order.size(); ++i) {
      Compare("SAMPLE", *field, in->order[i], out->order[i], in_sample);
    }
  }
  // One number may have become itself by chance: a pid with 2^-22, a file of more than 12 bits with
  // 2^-20. Those of 12 bits never do.
  constexpr int kSure = 20, kMostBits = 22;
  for (const auto& [where, evidence] : evidence_) {
    const auto& [record, field] = where;
    if (evidence.changed) continue;
    int bits = 0;
    for (const uint64_t number : evidence.unchanged) {
      bits += field->sensitivity == Sensitivity::kPid
                  ? kMostBits
                  : std::clamp(static_cast<int>(std::bit_width(number)), kSure, kMostBits);
    }
    if (bits >= kSure) {
      tell(record, *field, fmt::format("{} and all others as in IN", *evidence.unchanged.begin()));
    }
  }
}

}  // namespace stackreel::anonymize
