#include "cli/unwound_chains.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "analyze/chain_step.h"

namespace stackreel::cli {
namespace {

constexpr size_t kPiece = size_t{1} << 18;

// What stands before each chain.
struct Head {
  uint64_t time = 0;
  uint32_t event = 0;
  uint32_t size = 0;  // of the chain, in bytes
};

}  // namespace

Result<std::unique_ptr<UnwoundChainFile>> UnwoundChainFile::Create(Endian endian,
                                                                   perfdata::TimedSink& next) {
  std::unique_ptr<UnwoundChainFile> chains(new UnwoundChainFile(endian, next));
  TRY_ASSIGN(chains->file_, os::OutputFile::CreateUnnamed());
  return chains;
}

void UnwoundChainFile::SetEvents(const std::vector<perfdata::Event>& recorded,
                                 std::vector<perfdata::Event> unwound) {
  had_stack_.clear();
  for (const perfdata::Event& event : recorded) {
    had_stack_.push_back(analyze::HasDumpedStack(event.attr));
  }
  unwound_ = std::move(unwound);
}

Status UnwoundChainFile::OnTimedRecord(const perfdata::TimedRecord& record) {
  const bool had_stack = record.raw.record_type() == perfdata::RecordType::kSample &&
                         record.event && *record.event < had_stack_.size() &&
                         had_stack_[*record.event];
  if (had_stack) TRY(Write(record));
  return next_.OnTimedRecord(record);
}

Status UnwoundChainFile::Write(const perfdata::TimedRecord& record) {
  // One that does not decode is in no output either.
  if (!perfdata::DecodeSample(record.raw, unwound_[*record.event].attr, endian_, sample_)) {
    return {};
  }
  const ByteView chain = sample_.callchain.bytes();
  const Head head = {sample_.time, *record.event, static_cast<uint32_t>(chain.size())};
  const size_t at = written_.size();
  written_.resize(at + sizeof(head) + chain.size());
  std::memcpy(written_.data() + at, &head, sizeof(head));
  std::ranges::copy(chain, written_.data() + at + sizeof(head));
  if (written_.size() < kPiece) return {};
  TRY(file_->Write(written_));
  size_ += written_.size();
  written_.clear();
  return {};
}

// The next bytes; fewer at the end.
Result<ByteView> UnwoundChainFile::Read(size_t size) {
  if (end_ - at_ < size) {
    std::copy(window_.data() + at_, window_.data() + end_, window_.data());
    end_ -= at_;
    at_ = 0;
    window_.resize(std::max(kPiece, size));
    while (end_ < size && read_ < size_) {
      const size_t room = std::min<uint64_t>(window_.size() - end_, size_ - read_);
      TRY_ASSIGN(const size_t n, file_->ReadAt(read_, std::span(window_).subspan(end_, room)));
      if (n == 0) return Fail(ErrorKind::kIo, "a temporary file was cut short");
      read_ += n;
      end_ += n;
    }
  }
  const ByteView bytes = ByteView(window_).subspan(at_, std::min(size, end_ - at_));
  at_ += bytes.size();
  return bytes;
}

Result<std::optional<anonymize::UnwoundChain>> UnwoundChainFile::Next() {
  if (!written_.empty()) {
    TRY(file_->Write(written_));
    size_ += written_.size();
    written_.clear();
  }
  Head head;
  TRY_ASSIGN(const ByteView bytes, Read(sizeof(head)));
  if (bytes.size() < sizeof(head)) return std::nullopt;
  std::memcpy(&head, bytes.data(), sizeof(head));
  TRY_ASSIGN(const ByteView chain, Read(head.size));
  return anonymize::UnwoundChain{head.event, head.time, perfdata::U64Array(chain, endian_)};
}

std::unique_ptr<anonymize::RecordStep> UnwoundToVerify::StandBehind(
    const anonymize::RecordingHead& head, perfdata::TimedSink& next,
    const std::function<std::unique_ptr<anonymize::RecordStep>(perfdata::TimedSink&)>& make) {
  file_ = nullptr;
  const auto has_stack = [](const perfdata::Event& event) {
    return analyze::HasDumpedStack(event.attr);
  };
  if (std::ranges::none_of(head.events, has_stack)) return make(next);
  file_ = UnwoundChainFile::Create(head.endian, next);
  if (!file_) return make(next);  // Chains() tells why
  std::unique_ptr<anonymize::RecordStep> step = make(**file_);
  if (step != nullptr) (*file_)->SetEvents(head.events, step->Events());
  return step;
}

Result<anonymize::UnwoundChains*> UnwoundToVerify::Chains() {
  if (!file_) return std::unexpected(file_.error());
  return file_->get();
}

}  // namespace stackreel::cli
