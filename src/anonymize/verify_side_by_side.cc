#include "anonymize/verify_side_by_side.h"

#include <algorithm>

namespace stackreel::anonymize {
namespace {

using perfdata::RecordType;

constexpr uint64_t kStack = perfdata::kSampleRegsUser | perfdata::kSampleStackUser;
constexpr uint64_t kBranchCallStack = uint64_t{1} << 11;  // PERF_SAMPLE_BRANCH_CALL_STACK

bool HasStack(const perfdata::Attr& attr) { return (attr.sample_type & kStack) == kStack; }

bool HasCallsAsBranches(const perfdata::Attr& attr) {
  return (attr.sample_type & perfdata::kSampleBranchStack) != 0 &&
         (attr.branch_sample_type & kBranchCallStack) != 0;
}

bool HasSignedAddresses(const perfdata::Reader& reader) {
  constexpr uint16_t kAarch64 = 183;
  Counters ignored;
  return session::Session(reader.features(), reader.endian(), ignored).machine() == kAarch64;
}

}  // namespace

bool SideBySide::Fits(const perfdata::Reader& in, const SeenMappings& mappings, bool unwound) {
  if (mappings.has_deferred_chains() || HasSignedAddresses(in)) return false;
  return std::ranges::none_of(in.events().events(), [&](const perfdata::Event& event) {
    return HasCallsAsBranches(event.attr) || (HasStack(event.attr) && !unwound);
  });
}

Status SideBySide::Read(perfdata::RecordSink& out_pass) {
  out_pass_ = &out_pass;
  Counters ignored;
  perfdata::RoundSorter sorter(in_, *this, ignored);
  TRY(in_.ReadAll(sorter));
  TRY(sorter.Finish());
  bool more = true;
  while (more) {
    TRY_ASSIGN(more, out_.Next(out_raw_));
    if (more) TRY(out_pass.OnRecord(out_raw_));
  }
  return {};
}

Status SideBySide::ReadOutToItsNextSample() {
  while (true) {
    TRY_ASSIGN(const bool more, out_.Next(out_raw_));
    if (!more) return {};
    const bool is_sample = out_raw_.record_type() == RecordType::kSample;
    if (!is_sample) {
      chains_.ApplyOut({out_raw_, 0, out_.events().IndexOf(out_raw_, out_.endian())});
    }
    TRY(out_pass_->OnRecord(out_raw_));
    if (is_sample) return {};
  }
}

// The chain of a sample whose stack was dumped.
Result<bool> SideBySide::TakeUnwound(const perfdata::TimedRecord& timed,
                                     const perfdata::Attr& attr) {
  if (!HasStack(attr) || unwound_ == nullptr) return true;
  TRY_ASSIGN(const std::optional<UnwoundChain> chain, unwound_->Next());
  if (!chain || chain->event != *timed.event || chain->time != sample_.time) return false;
  expected_->chain = chain->chain;
  return true;
}

Status SideBySide::OnTimedRecord(const perfdata::TimedRecord& timed) {
  if (timed.raw.record_type() != RecordType::kSample) {
    chains_.ApplyIn(timed);
    return {};
  }
  const auto& events = in_.events().events();
  const perfdata::Attr* attr =
      timed.event && *timed.event < events.size() ? &events[*timed.event].attr : nullptr;
  if (attr == nullptr || !perfdata::DecodeSample(timed.raw, *attr, in_.endian(), sample_)) {
    return {};
  }
  samples_.Add({*timed.event, sample_.time, sample_.period});
  hidden_.AddSample(sample_);
  expected_ = ChainedSampleOf(sample_, timed.raw.cpu_mode());
  no_chain_.reset();
  TRY_ASSIGN(const bool has_chain, TakeUnwound(timed, *attr));
  if (!has_chain) no_chain_ = "no stack of IN's was unwound for it";
  TRY(ReadOutToItsNextSample());
  expected_.reset();
  return {};
}

std::optional<std::string> SideBySide::Difference(const perfdata::RawRecord& raw,
                                                  const perfdata::Sample& sample) {
  if (!expected_) return std::nullopt;
  if (no_chain_) return no_chain_;
  return chains_.Difference(*expected_, ChainedSampleOf(sample, raw.cpu_mode()));
}

}  // namespace stackreel::anonymize
