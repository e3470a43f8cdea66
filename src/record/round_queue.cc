#include "record/round_queue.h"

#include <zstd.h>

#include <numeric>
#include <utility>

namespace stackreel::record {

namespace {

// Stacks compress well, and falling behind means that there is no time to waste.
constexpr int kSpillLevel = -1;
// Beyond the limit by this much nothing more is taken when the file fails.
constexpr size_t kOverdraft = 2;
constexpr size_t kFreeBuffers = 64;

}  // namespace

size_t Round::bytes() const {
  return std::accumulate(rings.begin(), rings.end(), size_t{0},
                         [](size_t sum, const auto& ring) { return sum + ring.size(); });
}

void RoundQueue::Push(Round round) {
  Item item;
  item.bytes = round.bytes();
  item.round = std::move(round);
  std::unique_lock lock(mutex_);
  if (memory_bytes_ + item.bytes > memory_limit_ && !items_.empty()) {
    lock.unlock();
    item.spilled = Spill(item);
    lock.lock();
    if (item.spilled) {
      spilled_bytes_ += item.bytes;
    } else {
      changed_.wait(
          lock, [this] { return memory_bytes_ <= memory_limit_ * kOverdraft || items_.empty(); });
    }
  }
  if (!item.spilled) memory_bytes_ += item.bytes;
  items_.push_back(std::move(item));
  changed_.notify_all();
}

Result<std::optional<Round>> RoundQueue::Pop() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return closed_ || !items_.empty(); });
  if (items_.empty()) return std::nullopt;
  Item item = std::move(items_.front());
  items_.pop_front();
  if (!item.spilled) {
    memory_bytes_ -= item.bytes;
    changed_.notify_all();
    return std::optional(std::move(item.round));
  }
  lock.unlock();
  TRY(Unspill(item));
  return std::optional(std::move(item.round));
}

void RoundQueue::Close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

Round RoundQueue::TakeEmpty(size_t rings) {
  Round round;
  round.rings.resize(rings);
  const std::lock_guard lock(mutex_);
  for (auto& ring : round.rings) {
    if (free_.empty()) break;
    ring = std::move(free_.back());
    free_.pop_back();
  }
  return round;
}

void RoundQueue::Recycle(Round round) {
  const std::lock_guard lock(mutex_);
  for (auto& ring : round.rings) {
    if (free_.size() >= kFreeBuffers) break;
    ring.clear();
    free_.push_back(std::move(ring));
  }
}

uint64_t RoundQueue::spilled_bytes() const {
  const std::lock_guard lock(mutex_);
  return spilled_bytes_;
}

size_t RoundQueue::memory_bytes() const {
  const std::lock_guard lock(mutex_);
  return memory_bytes_;
}

bool RoundQueue::Spill(Item& item) {
  const std::lock_guard lock(file_mutex_);
  if (file_ == nullptr) {
    auto file = os::OutputFile::CreateUnnamed();
    if (!file) return false;
    file_ = std::move(*file);
  }
  const uint64_t start = file_size_;
  std::vector<uint8_t> compressed;
  for (const auto& ring : item.round.rings) {
    compressed.resize(ZSTD_compressBound(ring.size()));
    const size_t stored =
        ZSTD_compress(compressed.data(), compressed.size(), ring.data(), ring.size(), kSpillLevel);
    const bool written =
        ZSTD_isError(stored) == 0 && file_->Write(ByteView(compressed).first(stored)).has_value();
    if (!written) {
      (void)file_->Truncate(start);
      file_size_ = start;
      item.pieces.clear();
      return false;
    }
    item.pieces.push_back({.offset = file_size_, .stored = stored, .size = ring.size()});
    file_size_ += stored;
  }
  ++in_file_;
  Recycle(std::exchange(item.round, {}));
  return true;
}

Status RoundQueue::Unspill(Item& item) {
  item.round = TakeEmpty(item.pieces.size());
  const std::lock_guard lock(file_mutex_);
  std::vector<uint8_t> compressed;
  for (size_t i = 0; i < item.pieces.size(); ++i) {
    const Piece& piece = item.pieces[i];
    std::vector<uint8_t>& ring = item.round.rings[i];
    compressed.resize(piece.stored);
    TRY_ASSIGN(const size_t n, file_->ReadAt(piece.offset, compressed));
    ring.resize(piece.size);
    const size_t size =
        n == piece.stored ? ZSTD_decompress(ring.data(), ring.size(), compressed.data(), n) : 0;
    if (size != piece.size) {
      return Fail(ErrorKind::kIo, "stacks put aside in the temporary file cannot be read back");
    }
  }
  if (--in_file_ == 0) {
    (void)file_->Truncate(0);
    file_size_ = 0;
  }
  return {};
}

}  // namespace stackreel::record
