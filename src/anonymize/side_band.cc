#include "anonymize/side_band.h"

#include <algorithm>
#include <utility>

namespace stackreel::anonymize {
namespace {

constexpr size_t kBlockSize = size_t{64} << 10;

}  // namespace

Status SideBand::Read(perfdata::Reader& reader, perfdata::TimedSink& sink) {
  // What it counts who reads samples counts, too.
  Counters ignored;
  perfdata::RoundSorter sorter(reader, *this, ignored);
  sorter.LeaveOutSamples();
  sorter_ = &sorter;
  sink_ = &sink;
  TRY_ASSIGN(read_, reader.ReadAll(static_cast<perfdata::RecordSink&>(*this)));
  TRY(sorter.Finish());
  if (samples_ != 0) counts_[static_cast<uint32_t>(perfdata::RecordType::kSample)] = samples_;
  sorter_ = nullptr;
  block_.reset();
  return {};
}

Status SideBand::Repeat(perfdata::TimedSink& sink) const {
  for (const perfdata::TimedRecord& record : records_) TRY(sink.OnTimedRecord(record));
  return {};
}

Status SideBand::OnRecord(const perfdata::RawRecord& raw) {
  if (raw.record_type() == perfdata::RecordType::kSample) {
    ++samples_;
  } else {
    ++counts_[raw.type];
  }
  return sorter_->OnRecord(raw);
}

Status SideBand::OnTimedRecord(const perfdata::TimedRecord& record) {
  if (is_kept_) Keep(record);
  return sink_->OnTimedRecord(record);
}

void SideBand::Keep(const perfdata::TimedRecord& record) {
  const size_t size = record.raw.bytes.size() + record.raw.extra.size();
  bytes_ += size + sizeof(perfdata::TimedRecord);
  if (bytes_ > kMostKept) {
    is_kept_ = false;
    records_ = {};
    block_.reset();
    return;
  }
  if (block_ == nullptr || block_->bytes.capacity() - block_->bytes.size() < size) {
    block_ = std::make_shared<perfdata::Block>();
    block_->bytes.reserve(std::max(size, kBlockSize));
  }
  const auto copy = [this](ByteView bytes) {
    const size_t at = block_->bytes.size();
    block_->bytes.insert(block_->bytes.end(), bytes.begin(), bytes.end());
    return ByteView(block_->bytes).subspan(at);
  };
  perfdata::TimedRecord& kept = records_.emplace_back(record);
  kept.raw.bytes = copy(record.raw.bytes);
  kept.raw.extra = copy(record.raw.extra);
  kept.raw.block = block_;
}

}  // namespace stackreel::anonymize
