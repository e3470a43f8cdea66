#include "anonymize/sample_plan.h"

#include <algorithm>
#include <concepts>
#include <tuple>
#include <type_traits>

#include "perfdata/record_size.h"
#include "perfdata/sample_layout.h"

namespace stackreel::anonymize {

// Walks the layout of samples: what it does not know the place of makes the plan impossible.
class SamplePlanner {
 public:
  SamplePlanner(uint64_t sample_type, Level level, SamplePlan& plan)
      : sample_type_(sample_type), level_(level), plan_(plan) {}

  template <uint64_t kBit, typename... Entries>
  void On(const perfdata::WhenEntry<perfdata::OnSampleBit<kBit>, Entries...>& entry) {
    known_bits_ |= kBit;
    if ((sample_type_ & kBit) == 0) return;
    std::apply([&](const auto&... field) { (Field(field), ...); }, entry.entries);
  }
  [[nodiscard]] bool possible() const { return possible_ && (sample_type_ & ~known_bits_) == 0; }
  void Finish() { (plan_.chain_ == nullptr ? plan_.size_before_ : plan_.size_behind_) = at_; }

 private:
  template <typename Wire, typename T, typename M>
  void Field(const perfdata::FieldEntry<Wire, T, M>& entry) {
    constexpr bool kIsNumber =
        std::same_as<Wire, perfdata::Number> || std::same_as<Wire, perfdata::IdBehindIdentifier>;
    if constexpr (kIsNumber && std::unsigned_integral<M>) {
      AddNumber(entry.info, sizeof(M));
      if constexpr (std::same_as<M, uint32_t>) {
        if (entry.member == &perfdata::Sample::pid) plan_.pid_ = at_ - sizeof(M);
      }
    } else if constexpr (std::same_as<Wire, perfdata::CountedView>) {
      Chain(entry.info);
    } else {
      possible_ = false;
    }
  }
  // The same number twice: which of the two stays where they differ decoding decides.
  template <typename Entry>
  void Field(const perfdata::AgainEntry<Entry>& entry) {
    if ((sample_type_ & perfdata::kSampleIdentifier) != 0) possible_ = false;
    Field(static_cast<const Entry&>(entry));
  }
  template <typename Other>
  void Field(const Other&) {
    possible_ = false;
  }

  void AddNumber(const perfdata::FieldInfo& info, size_t width) {
    const bool stays = TreatmentOf(level_, info.sensitivity) == Treatment::kKeep;
    (plan_.chain_ == nullptr ? plan_.before_ : plan_.behind_).push_back({&info, at_, width, stays});
    at_ += width;
  }
  void Chain(const perfdata::FieldInfo& info) {
    if (info.sensitivity != perfdata::Sensitivity::kCodeAddress) possible_ = false;
    plan_.chain_ = &info;
    plan_.size_before_ = at_;
    at_ = 0;
  }

  uint64_t sample_type_;
  Level level_;
  SamplePlan& plan_;
  bool possible_ = true;
  uint64_t known_bits_ = 0;
  size_t at_ = perfdata::kRecordHeaderSize;
};

std::optional<SamplePlan> SamplePlan::Make(const perfdata::Attr& recorded,
                                           const perfdata::Attr& written, Level level,
                                           Endian endian) {
  if (recorded.sample_type != written.sample_type) return std::nullopt;
  SamplePlan plan;
  plan.endian_ = endian;
  SamplePlanner planner(recorded.sample_type, level, plan);
  std::apply([&](const auto&... entry) { (planner.On(entry), ...); },
             perfdata::kLayout<perfdata::Sample>.entries);
  planner.Finish();
  if (!planner.possible()) return std::nullopt;
  return plan;
}

bool SamplePlan::Fits(ByteView record) const {
  if (chain_ == nullptr) return record.size() == size_before_;
  const size_t least = size_before_ + sizeof(uint64_t) + size_behind_;
  if (record.size() < least) return false;
  const auto count = LoadUnaligned<uint64_t>(record.data() + size_before_, endian_);
  return (record.size() - least) % 8 == 0 && count == (record.size() - least) / 8;
}

void SamplePlan::Treat(const Number& number, FieldTransform& fields, uint8_t* at) const {
  if (number.stays) return fields.Keep(*number.field);
  if (number.width == sizeof(uint64_t)) {
    auto value = LoadUnaligned<uint64_t>(at, endian_);
    fields(*number.field, value);
    StoreUnaligned(at, value, endian_);
  } else {
    auto value = LoadUnaligned<uint32_t>(at, endian_);
    fields(*number.field, value);
    StoreUnaligned(at, value, endian_);
  }
}

void SamplePlan::Rewrite(ByteView record, FieldTransform& fields, uint8_t* out) const {
  std::copy_n(record.data(), size_before_, out);
  for (const Number& number : before_) Treat(number, fields, out + number.offset);
  if (chain_ == nullptr) return;
  const size_t begin = size_before_ + sizeof(uint64_t);
  const size_t end = record.size() - size_behind_;
  std::copy_n(record.data() + size_before_, sizeof(uint64_t), out + size_before_);
  fields.Chain(*chain_, record.subspan(begin, end - begin), out + begin);
  std::copy_n(record.data() + end, size_behind_, out + end);
  for (const Number& number : behind_) Treat(number, fields, out + end + number.offset);
}

}  // namespace stackreel::anonymize
