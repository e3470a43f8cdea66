#include "perfdata/part_merger.h"

#include <algorithm>
#include <utility>

#include "perfdata/block_stream.h"
#include "perfdata/tokenizer.h"

namespace stackreel::perfdata {

struct PartMerger::Part {
  Part(FileSource& s, size_t n, Endian endian, Counters& counters)
      : source(s), number(n), stream(StreamOf(s)), tokenizer(*stream, endian, counters) {}

  static std::unique_ptr<BlockStream> StreamOf(FileSource& source) {
    if (!source.size()) return std::make_unique<BlockStream>(source);
    return std::make_unique<BlockStream>(source, 0, BlockStream::kToTheEnd);
  }
  // For a heap, whose front is the greatest.
  static bool ComesLater(const Part* a, const Part* b) {
    return std::pair(a->time, a->number) > std::pair(b->time, b->number);
  }

  FileSource& source;
  size_t number;
  std::unique_ptr<BlockStream> stream;
  Tokenizer tokenizer;
  RawRecord next;
  uint64_t time = 0;  // of next, or of the last one before it that has a time
};

PartMerger::PartMerger(const EventTable& events, Endian endian, Counters& counters)
    : events_(events), endian_(endian), counters_(counters) {}
PartMerger::~PartMerger() = default;

Status PartMerger::Refill(Part& part) {
  TRY_ASSIGN(const bool more, part.tokenizer.Next(part.next));
  if (!more) return {};
  part.time = events_.TimeOf(part.next, endian_).value_or(part.time);
  heap_.push_back(&part);
  std::ranges::push_heap(heap_, Part::ComesLater);
  return {};
}

Status PartMerger::Add(FileSource& source) {
  parts_.push_back(std::make_unique<Part>(source, parts_.size(), endian_, counters_));
  return Refill(*parts_.back());
}

Result<bool> PartMerger::Next(RawRecord& record) {
  if (heap_.empty()) return false;
  std::ranges::pop_heap(heap_, Part::ComesLater);
  Part& part = *heap_.back();
  heap_.pop_back();
  record = part.next;
  TRY(Refill(part));
  return true;
}

ReadEnd PartMerger::end() const {
  ReadEnd all;
  for (const std::unique_ptr<Part>& part : parts_) {
    const ReadEnd& end = part->tokenizer.end();
    all.records += end.records;
    all.bytes += end.bytes;
    all.compressed_bytes += end.compressed_bytes;
    all.decompressed_bytes += end.decompressed_bytes;
    all.complete = all.complete && end.complete;
    if (end.damage && !all.damage) {
      all.damage = end.damage;
      all.damage->file = part->source.name();
    }
  }
  return all;
}

uint64_t PartMerger::position() const {
  uint64_t position = 0;
  for (const std::unique_ptr<Part>& part : parts_) position += part->stream->offset();
  return position;
}

}  // namespace stackreel::perfdata
