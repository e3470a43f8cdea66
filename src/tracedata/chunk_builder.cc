#include "tracedata/chunk_builder.h"

#include <algorithm>

namespace stackreel::tracedata {

namespace {
constexpr size_t kEntryBytes = 2 * sizeof(uint32_t);
}

ChunkBuilder::ChunkBuilder(TraceWriter& writer, uint32_t thread, size_t limit)
    : writer_(writer), thread_(thread), limit_(limit) {}

void ChunkBuilder::Put(EventKind kind, uint32_t function, uint64_t ticks, ByteView values) {
  words_.U32(EventHead(kind, function, !values.empty()));
  words_.U32(Since(ticks));
  if (values.empty()) return;
  words_.U32(static_cast<uint32_t>(values.size()));
  words_.Bytes(values);
  words_.AlignTo(sizeof(uint32_t));
}

// Each open call gets its kEntry, the outermost first.
void ChunkBuilder::Announce() {
  for (; announced_ < open_.size(); ++announced_) {
    Put(EventKind::kEntry, open_[announced_].function, open_[announced_].start, {});
  }
}

// Makes room for an event of so many bytes at that time, and for the entries of all open calls.
Status ChunkBuilder::Prepare(uint64_t ticks, size_t bytes) {
  const size_t entries = (open_.size() - announced_ + 1) * kEntryBytes;
  if (words_.size() != 0 && words_.size() + bytes + entries > limit_) TRY(Flush());
  if (words_.size() == 0 && announced_ == open_.size()) {
    chunk_base_ = base_ = ticks;
  } else if (ticks - base_ > UINT32_MAX) {
    Announce();
    words_.U32(EventHead(EventKind::kBase, 0));
    words_.U32(static_cast<uint32_t>(ticks));
    words_.U32(static_cast<uint32_t>(ticks >> 32));
    base_ = ticks;
  }
  return {};
}

Status ChunkBuilder::Flush() {
  Announce();
  if (words_.size() == 0) return {};
  const TraceChunk chunk{
      .thread = thread_, .sequence = sequence_++, .base = chunk_base_, .words = words_.view()};
  const Status status = writer_.Add(chunk);
  words_.Clear();
  last_instant_ = UINT64_MAX;
  return status;
}

Status ChunkBuilder::Enter(uint64_t ticks, uint32_t function, ByteView values) {
  TRY(Prepare(ticks, 3 * kEntryBytes + values.size()));
  if (!values.empty()) {
    Announce();
    Put(EventKind::kEntry, function, ticks, values);
    open_.push_back({ticks, function});
    announced_ = open_.size();
    return {};
  }
  open_.push_back({ticks, function});
  // Or it would be taken for the caller of that call: see EventOrder.
  if (last_instant_ == ticks) Announce();
  return {};
}

Status ChunkBuilder::Exit(uint64_t ticks, uint32_t function, ByteView values, bool left) {
  TRY(Prepare(ticks, 3 * kEntryBytes + values.size()));
  last_instant_ = UINT64_MAX;
  const bool known = !open_.empty() && open_.back().function == function;
  if (!known || announced_ == open_.size() || left || !values.empty()) {
    Announce();
    Put(left ? EventKind::kLeft : EventKind::kExit, function, ticks, left ? ByteView() : values);
  } else {
    const uint64_t start = open_.back().start;
    if (start == ticks) {
      const bool caller_began_too = open_.size() > 1 && open_[open_.size() - 2].start == start;
      if (caller_began_too && announced_ < open_.size() - 1) {
        const Open call = open_.back();
        open_.pop_back();
        Announce();
        open_.push_back(call);
      }
      last_instant_ = ticks;
    }
    words_.U32(EventHead(EventKind::kCall, function));
    words_.U32(Since(start));
    words_.U32(static_cast<uint32_t>(ticks - start));
  }
  if (known) {
    open_.pop_back();
    announced_ = std::min(announced_, open_.size());
  }
  return {};
}

Status ChunkBuilder::Lost(uint64_t ticks, LossReason reason, uint64_t calls) {
  TRY(Prepare(ticks, 2 * kEntryBytes));
  Announce();
  words_.U32(EventHead(EventKind::kLost, static_cast<uint32_t>(reason)));
  words_.U32(Since(ticks));
  words_.U32(static_cast<uint32_t>(std::min<uint64_t>(calls, UINT32_MAX)));
  return {};
}

}  // namespace stackreel::tracedata
