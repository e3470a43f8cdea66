#include "tracedata/trace_writer.h"

#include <fmt/format.h>

#include <deque>
#include <utility>

#include "base/byte_writer.h"
#include "tracedata/block.h"
#include "tracedata/fact_wire.h"

namespace stackreel::tracedata {

namespace {
constexpr size_t kFactsBlock = 64 << 10;  // facts are held back up to this many bytes
}  // namespace

struct TraceWriter::State {
  BlockWriter calls, facts;
  uint32_t fact_blocks = 0;
  ByteWriter held{Endian::kLittle};       // facts that are not written yet
  std::deque<ByteWriter> unwritten = {};  // blocks of facts that could not be written

  Status WriteFacts() {
    if (held.size() != 0) unwritten.push_back(std::exchange(held, ByteWriter(Endian::kLittle)));
    while (!unwritten.empty()) {
      BlockHead head;
      head.sequence = fact_blocks;
      TRY(facts.Write(head, unwritten.front().view()));
      ++fact_blocks;
      unwritten.pop_front();
    }
    return {};
  }
};

TraceWriter::TraceWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
TraceWriter::TraceWriter(TraceWriter&&) noexcept = default;
TraceWriter& TraceWriter::operator=(TraceWriter&&) noexcept = default;
TraceWriter::~TraceWriter() = default;

Result<TraceWriter> TraceWriter::Begin(ByteSink& calls, ByteSink& facts, int level) {
  TRY_ASSIGN(BlockWriter call_blocks, BlockWriter::Begin(calls, TraceFileKind::kCalls, level));
  TRY_ASSIGN(BlockWriter fact_blocks, BlockWriter::Begin(facts, TraceFileKind::kFacts, level));
  return TraceWriter(
      std::make_unique<State>(State{std::move(call_blocks), std::move(fact_blocks)}));
}

Status TraceWriter::Add(const TraceFact& fact) {
  EncodeFact(fact, state_->held);
  return state_->held.size() < kFactsBlock ? Status() : state_->WriteFacts();
}

Status TraceWriter::Add(const TraceChunk& chunk) {
  // So that no chunk in the file speaks of what is only in the memory of somebody who is killed.
  TRY(state_->WriteFacts());
  BlockHead head;
  head.thread = chunk.thread;
  head.sequence = chunk.sequence;
  head.base = chunk.base;
  return state_->calls.Write(head, chunk.words);
}

Status TraceWriter::Flush() { return state_->WriteFacts(); }

}  // namespace stackreel::tracedata
