// Any bytes as the two files of a trace: what is read is written, and read as the same events.
//
//   the first byte: 0, the rest is the calls file, as it lies; 1, the facts file; else chunks
//   made of the rest, with right hashes: u8 thread, u8 sequence, u16 size, u64 base, words
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/byte_reader.h"
#include "base/check.h"
#include "tracedata/fact_wire.h"
#include "tracedata/fake_trace.h"
#include "tracedata/one_of_each.h"
#include "tracedata/trace_copy.h"

namespace stackreel::tracedata {
namespace {

FakeTrace MakeTrace(ByteView bytes) {
  FakeTrace trace;
  const uint8_t kind = bytes[0];
  bytes = bytes.subspan(1);
  if (kind == 0) {
    MemorySink ignored;
    CHECK(TraceWriter::Begin(ignored, trace.facts, 0));
    (void)trace.calls.Write(bytes);
    return trace;
  }
  if (kind == 1) {
    MemorySink ignored;
    CHECK(TraceWriter::Begin(trace.calls, ignored, 0));
    (void)trace.facts.Write(bytes);
    return trace;
  }
  auto writer = TraceWriter::Begin(trace.calls, trace.facts, 0);
  CHECK(writer);
  for (const TraceFact& fact : OneOfEachFact()) (void)writer->Add(fact);
  if (kind == 2) {  // facts, as a block has them
    Counters counters;
    for (const TraceFact& fact : DecodeFacts(bytes, counters)) CHECK(writer->Add(fact));
    CHECK(writer->Flush());
    return trace;
  }
  ByteReader reader(bytes);
  while (!reader.AtEnd()) {
    TraceChunk chunk;
    chunk.thread = reader.U8() % 4;
    chunk.sequence = reader.U8();
    const uint16_t size = reader.U16();
    chunk.base = reader.U64();
    chunk.words = reader.Bytes(std::min<size_t>(size, reader.remaining()));
    CHECK(writer->Add(chunk));
  }
  return trace;
}

std::vector<std::vector<FakeEvent>> AllRuns(TraceSource& source) {
  std::vector<std::vector<FakeEvent>> runs;
  for (size_t row = 0; row < source.tables().threads.size(); ++row) {
    runs.push_back(ReadRun(source, row));
    uint64_t last = 0;
    for (const FakeEvent& event : runs.back()) {
      CHECK(event.ticks >= last);
      last = event.ticks;
    }
  }
  return runs;
}

}  // namespace
}  // namespace stackreel::tracedata

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace td = stackreel::tracedata;
  if (size == 0) return 0;
  const td::FakeTrace trace = td::MakeTrace({data, size});
  const auto source = trace.Open();
  if (!source) return 0;
  (void)td::AllRuns(**source);
  // A copy is well-formed: copied again it stays as it is.
  td::FakeTrace copies[2];
  for (int i = 0; i < 2; ++i) {
    const auto from = i == 0 ? trace.Open() : copies[0].Open();
    CHECK(from);
    auto writer = td::TraceWriter::Begin(copies[i].calls, copies[i].facts, 1);
    CHECK(writer && td::CopyTrace(**from, *writer));
  }
  const auto first = copies[0].Open(), second = copies[1].Open();
  CHECK(first && second);
  CHECK((*first)->damage().empty());
  CHECK(td::AllRuns(**first) == td::AllRuns(**second));
  CHECK((*first)->tables().functions == (*second)->tables().functions);
  return 0;
}
