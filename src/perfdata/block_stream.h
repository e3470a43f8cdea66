// Reads a FileSource front to back into shared blocks that records point into, or has it mapped.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "base/bytes.h"
#include "base/error.h"
#include "base/io.h"
#include "perfdata/record.h"

namespace stackreel::perfdata {

// Hands out blocks, and takes those of kBlockSize back when the last record that points into one is
// gone: steady reading neither allocates nor touches new pages. Blocks may outlive the pool and be
// released by any thread (a record may be decoded elsewhere than it is read), hence the atomics.
class BlockPool {
 public:
  static constexpr size_t kBlockSize = size_t{256} << 10;

  BlockPool() : spares_(std::make_shared<Spares>()) {}
  // A block of `size` bytes with any content.
  std::shared_ptr<Block> Take(size_t size);

 private:
  struct Spares {
    // A batch of samples lets go many at once.
    std::array<std::atomic<Block*>, 32> slots = {};
    ~Spares();
    void Put(Block* block);
  };
  std::shared_ptr<Spares> spares_;
};

// A window on a FileSource that moves forward:
//
//     block:  | passed already | available() bytes | free |
//                               ^ offset()
//
// What a record points at stays where it is; when a record does not fit behind what was read, its
// first part is copied to the head of a new block.
//
// Of a large file that can be mapped a block is a piece of the file, all of it available, and the
// next one begins where a record does not fit. That spares copying what nobody looks at, which is
// most of a dumped stack, and brings what is looked at to the CPU that does.
class BlockStream {
 public:
  static constexpr uint64_t kToTheEnd = UINT64_MAX;

  // Reads forward with Read() from where the source is, which is called `offset`.
  explicit BlockStream(FileSource& source, uint64_t offset = 0)
      : source_(source), base_(offset), seek_(false), maps_(false) {}
  // Reads [start, end) with MapAt() or ReadAt(); the source must know its size.
  BlockStream(FileSource& source, uint64_t start, uint64_t end);

  // Bytes that lie ready, in one piece.
  [[nodiscard]] size_t available() const { return visible_ - cursor_; }
  [[nodiscard]] ByteView view() const {
    return block_ ? block_->view().subspan(cursor_, available()) : ByteView();
  }
  [[nodiscard]] const BlockPtr& block() const { return block_; }
  [[nodiscard]] uint64_t offset() const { return base_ + cursor_; }
  [[nodiscard]] uint64_t end() const { return end_; }
  // Nothing at or behind `end` will be seen.
  void SetEnd(uint64_t end);

  // Reads until `want` bytes lie ready; gives how many do, fewer only where the source has ended
  // (for now, if it is one that grows). Memory follows what is there, not what is wanted.
  Result<size_t> Ensure(size_t want) {
    if (available() >= want) return available();
    return EnsureSlow(want);
  }
  void Advance(size_t n) { cursor_ += n; }
  // Passes over `n` bytes; gives how many there were.
  Result<uint64_t> Skip(uint64_t n);
  // Forgets what lies ready.
  void DropAvailable() { cursor_ = visible_; }

 private:
  // Blocks begin small, as many sources are, and grow.
  static constexpr size_t kFirstBlockSize = BlockPool::kBlockSize / 16;
  static constexpr size_t kMappedBlockSize = size_t{4} << 20;
  // Less than that is read: mapping it takes longer.
  static constexpr size_t kLeastMapped = BlockPool::kBlockSize;

  Result<size_t> EnsureSlow(size_t want);
  Result<bool> ReadMore(size_t want);
  bool MapMore(size_t want);
  void MakeRoom(size_t want);
  void UpdateVisible();

  FileSource& source_;
  BlockPool pool_;
  std::shared_ptr<Block> writable_;  // == block_, or null if that is mapped
  BlockPtr block_;
  uint64_t base_;       // offset of the block's first byte
  size_t cursor_ = 0;   // in the block
  size_t visible_ = 0;  // filled_, or where end_ cuts it
  size_t filled_ = 0;
  uint64_t end_ = kToTheEnd;
  size_t next_size_ = kFirstBlockSize;  // of the next block, if nothing asks for more
  bool seek_;
  bool maps_;  // may map
};

}  // namespace stackreel::perfdata
