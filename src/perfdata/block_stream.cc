#include "perfdata/block_stream.h"

#include <algorithm>
#include <utility>

namespace stackreel::perfdata {

BlockPool::Spares::~Spares() {
  for (std::atomic<Block*>& slot : slots) delete slot.load();
}

void BlockPool::Spares::Put(Block* block) {
  for (std::atomic<Block*>& slot : slots) {
    Block* empty = nullptr;
    if (slot.compare_exchange_strong(empty, block, std::memory_order_acq_rel)) return;
  }
  delete block;
}

std::shared_ptr<Block> BlockPool::Take(size_t size) {
  if (size != kBlockSize) {
    auto block = std::make_shared<Block>();
    block->bytes.resize(size);
    return block;
  }
  Block* block = nullptr;
  for (std::atomic<Block*>& slot : spares_->slots) {
    block = slot.exchange(nullptr, std::memory_order_acq_rel);
    if (block != nullptr) break;
  }
  if (block == nullptr) {
    block = new Block;
    block->bytes.resize(kBlockSize);
  }
  return {block, [spares = spares_](Block* released) { spares->Put(released); }};
}

BlockStream::BlockStream(FileSource& source, uint64_t start, uint64_t end)
    : source_(source), base_(start), seek_(true), maps_(true) {
  end_ = std::min(end, source.size().value_or(0));
}

void BlockStream::UpdateVisible() {
  const uint64_t limit = end_ > base_ ? end_ - base_ : 0;
  visible_ = std::max<size_t>(cursor_, std::min<uint64_t>(filled_, limit));
}

void BlockStream::SetEnd(uint64_t end) {
  end_ = end;
  if (seek_) end_ = std::min(end_, source_.size().value_or(0));
  UpdateVisible();
}

Result<size_t> BlockStream::EnsureSlow(size_t want) {
  while (available() < want) {
    TRY_ASSIGN(const bool more, ReadMore(want));
    if (!more) break;
  }
  return available();
}

// Reads once; false at the end.
Result<bool> BlockStream::ReadMore(size_t want) {
  if (base_ + filled_ >= end_) return false;
  if (maps_ && MapMore(want)) return true;
  const size_t capacity = writable_ ? writable_->bytes.size() : 0;
  if (filled_ >= capacity || (cursor_ > 0 && capacity - cursor_ < want)) MakeRoom(want);
  const uint64_t at = base_ + filled_;
  const size_t room = std::min<uint64_t>(writable_->bytes.size() - filled_, end_ - at);
  const std::span<uint8_t> out(writable_->bytes.data() + filled_, room);
  TRY_ASSIGN(const size_t got, seek_ ? source_.ReadAt(at, out) : source_.Read(out));
  filled_ += got;
  UpdateVisible();
  return got > 0;
}

// Maps what follows offset(), with what lies ready of it, which so becomes one piece. False where
// that cannot be done: then the rest is read.
bool BlockStream::MapMore(size_t want) {
  const uint64_t left = end_ - offset();
  FileImagePtr image;
  if (left >= kLeastMapped) {
    image = source_.MapAt(offset(), std::min<uint64_t>(left, std::max(want, kMappedBlockSize)));
  }
  if (image == nullptr) {
    maps_ = false;
    return false;
  }
  base_ += cursor_;
  cursor_ = 0;
  filled_ = image->bytes().size();
  auto block = std::make_shared<Block>();
  block->image = std::move(image);
  block_ = std::move(block);
  writable_.reset();
  UpdateVisible();
  return true;
}

// Puts what lies ready at the head of a new block that has room for more: for `want` bytes, but at
// most for as much again as there is, so that a large number read from a file allocates nothing.
void BlockStream::MakeRoom(size_t want) {
  const size_t ready = filled_ - cursor_;
  uint64_t size = next_size_;
  next_size_ = std::min(4 * next_size_, BlockPool::kBlockSize);
  if (size < want) size = std::min(want, 2 * ready + BlockPool::kBlockSize);
  if (seek_) size = std::min(size, end_ - offset());
  std::shared_ptr<Block> block = pool_.Take(size);
  if (ready > 0) std::copy_n(block_->view().data() + cursor_, ready, block->bytes.data());
  base_ += cursor_;
  cursor_ = 0;
  filled_ = ready;
  block_ = block;
  writable_ = std::move(block);
  UpdateVisible();
}

Result<uint64_t> BlockStream::Skip(uint64_t n) {
  if (n <= available()) {
    Advance(n);
    return n;
  }
  if (seek_) {
    const uint64_t skipped = std::min(n, end_ > offset() ? end_ - offset() : 0);
    base_ = offset() + skipped;
    cursor_ = visible_ = filled_ = 0;
    block_.reset();
    writable_.reset();
    return skipped;
  }
  uint64_t skipped = 0;
  while (skipped < n) {
    TRY_ASSIGN(const size_t ready, Ensure(1));
    if (ready == 0) break;
    const size_t step = std::min<uint64_t>(ready, n - skipped);
    Advance(step);
    skipped += step;
  }
  return skipped;
}

}  // namespace stackreel::perfdata
