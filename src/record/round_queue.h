// Rounds of records between the thread that empties the rings and the one that works on them.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/error.h"
#include "os/file.h"

namespace stackreel::record {

// What one pass over the rings gave: the records of each ring, back to back, oldest first.
struct Round {
  std::vector<std::vector<uint8_t>> rings;
  [[nodiscard]] size_t bytes() const;
};

// First in, first out. Rounds beyond `memory_limit` bytes are compressed into a file without a name
// and read back when their turn comes, so that nothing is dropped while the work falls behind.
class RoundQueue {
 public:
  explicit RoundQueue(size_t memory_limit) : memory_limit_(memory_limit) {}

  // Waits only if neither memory nor the file may take more: then the kernel's rings fill, and it
  // counts what is lost.
  void Push(Round round);
  // The next round; waits for one. Nothing once the queue is closed and empty. An error means that
  // a round could not be read back.
  Result<std::optional<Round>> Pop();
  void Close();

  // A round to fill, with the buffers of one that was worked off (fresh memory costs a page fault
  // for each page).
  Round TakeEmpty(size_t rings);
  void Recycle(Round round);

  // Bytes, before compression, that went through the file.
  [[nodiscard]] uint64_t spilled_bytes() const;
  [[nodiscard]] size_t memory_bytes() const;

 private:
  struct Piece {
    uint64_t offset = 0, stored = 0, size = 0;  // stored: compressed
  };
  struct Item {
    Round round;
    size_t bytes = 0;
    std::vector<Piece> pieces;  // if it is in the file
    bool spilled = false;
  };
  // Writes an item's rings to the file; false if that failed, and nothing has changed.
  bool Spill(Item& item);
  Status Unspill(Item& item);

  const size_t memory_limit_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> items_;
  size_t memory_bytes_ = 0;
  bool closed_ = false;
  std::vector<std::vector<uint8_t>> free_;
  uint64_t spilled_bytes_ = 0;

  std::mutex file_mutex_;  // taken before mutex_, if both are
  size_t in_file_ = 0;     // items; 0 empties the file
  std::unique_ptr<os::OutputFile> file_;
  uint64_t file_size_ = 0;
};

}  // namespace stackreel::record
