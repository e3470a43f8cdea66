#include "anonymize/sample_shape.h"

#include <utility>

namespace stackreel::anonymize {
namespace {

// Fields of eight bytes, and the call chain; not READ, RAW, stacks and other lists.
constexpr uint64_t kOfOneLength =
    perfdata::kSampleIdentifier | perfdata::kSampleIp | perfdata::kSampleTid |
    perfdata::kSampleTime | perfdata::kSampleAddr | perfdata::kSampleId |
    perfdata::kSampleStreamId | perfdata::kSampleCpu | perfdata::kSamplePeriod |
    perfdata::kSampleWeight | perfdata::kSampleWeightStruct | perfdata::kSampleDataSrc |
    perfdata::kSampleTransaction | perfdata::kSamplePhysAddr | perfdata::kSampleCgroup |
    perfdata::kSampleDataPageSize | perfdata::kSampleCodePageSize | perfdata::kSampleCallchain;

constexpr size_t kWord = sizeof(uint64_t);

}  // namespace

// Takes up one field after the other.
class SampleShape::Maker {
 public:
  explicit Maker(Level level) : level_(level) {}

  // False if samples with this field have no shape.
  bool Add(const FieldSpan& span) {
    const bool touches = span.begin == end_;
    const size_t length = span.end - span.begin;
    if (span.begin < end_ || span.begin - end_ >= kWord || span.form != FieldForm::kNumbers) {
      return false;
    }
    end_ = span.end;
    const Run run = {span.begin - chain_bytes_, span.end - chain_bytes_, shape_.chain_.has_value()};
    const bool joins = std::exchange(joins_, false) && touches;
    if (span.info == nullptr) {  // the header, which counts whole
      shape_.numbers_.push_back(run);
      return length == kWord;
    }
    if (TreatmentOf(level_, span.info->sensitivity) == Treatment::kDrop) return false;
    if (span.info->name == "callchain") {
      shape_.chain_ = run.begin;
      chain_bytes_ = length - kWord;
      return length % kWord == 0;
    }
    if (span.IsAddress()) {
      shape_.addresses_.push_back(run);
      return length == kWord;
    }
    // Times do not count, and numbers of processes and files do only as numbers of eight bytes.
    if (span.IsNoAddress()) {
      if (span.IsTime() || span.width < kWord) return true;
      shape_.numbers_.push_back(run);
      return length == kWord;
    }
    if (joins) {
      shape_.numbers_.back().end = run.end;
    } else {
      shape_.numbers_.push_back(run);
    }
    joins_ = true;
    return true;
  }
  std::optional<SampleShape> Finish(size_t size) {
    if (end_ > size || size - end_ >= kWord) return std::nullopt;
    shape_.size_ = size - chain_bytes_;
    return std::move(shape_);
  }

 private:
  Level level_;
  SampleShape shape_;
  size_t end_ = 0;          // of the fields seen
  size_t chain_bytes_ = 0;  // of its entries
  bool joins_ = false;      // the last run goes on if the next field is such, too
};

std::optional<SampleShape> SampleShape::Make(const perfdata::Attr& attr,
                                             std::span<const FieldSpan> fields, size_t size,
                                             Level level) {
  if ((attr.sample_type & ~kOfOneLength) != 0) return std::nullopt;
  Maker maker(level);
  for (const FieldSpan& span : fields) {
    if (!maker.Add(span)) return std::nullopt;
  }
  return maker.Finish(size);
}

bool SampleShape::Fits(ByteView sample, Endian endian) const {
  if (!chain_) return sample.size() == size_;
  if (sample.size() < size_) return false;
  const size_t grown = sample.size() - size_;
  return grown % kWord == 0 &&
         LoadUnaligned<uint64_t>(sample.data() + *chain_, endian) == grown / kWord;
}

}  // namespace stackreel::anonymize
