// How fast recordings are read, sorted, unpacked and written. Sources are in memory: what a read()
// from the page cache costs is the copy that they make too.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "base/memory_io.h"
#include "perfdata/reader.h"
#include "perfdata/sorter.h"
#include "perfdata/writer.h"

namespace stackreel::perfdata {
namespace {

constexpr size_t kFileSize = size_t{256} << 20;
constexpr size_t kRound = size_t{1} << 20;  // of data between two rounds

Event ClockEvent() {
  Event event;
  event.attr.type = kTypeSoftware;
  event.attr.sample_type = kSampleIdentifier | kSampleIp | kSampleTid | kSampleTime | kSampleCpu;
  event.attr.flags = kAttrSampleIdAll;
  event.ids = {1, 2};
  return event;
}

// A SAMPLE of `size` bytes: header, identifier, ip, tid, time, cpu, and stack-like words.
std::vector<uint8_t> SampleRecord(size_t size) {
  std::vector<uint8_t> record(size);
  StoreUnaligned<uint32_t>(record.data(), 9, kNativeEndian);
  StoreUnaligned<uint16_t>(record.data() + 6, static_cast<uint16_t>(size), kNativeEndian);
  StoreUnaligned<uint64_t>(record.data() + 8, 1, kNativeEndian);
  for (size_t at = 48; at + 8 <= size; at += 8) {
    StoreUnaligned<uint64_t>(record.data() + at, 0x7fff00000000 + at * 40503 % 4096, kNativeEndian);
  }
  return record;
}

// A file of samples of `size` bytes in two rings, drained in turn.
std::vector<uint8_t> Recording(size_t size, int level) {
  MemorySink sink;
  auto writer = *Writer::Create(sink, {Container::kFile, kNativeEndian, level}, {ClockEvent()});
  std::vector<uint8_t> record = SampleRecord(size);
  uint64_t time = 1;
  for (size_t written = 0; written < kFileSize; written += kRound) {
    for (uint64_t ring = 0; ring < 2; ++ring) {
      uint64_t ring_time = time + ring;
      for (size_t n = 0; n < kRound / 2; n += size) {
        StoreUnaligned<uint64_t>(record.data() + 32, ring_time += 2, kNativeEndian);
        (void)writer->WriteEncoded(record);
      }
      if (ring == 1) time = ring_time;
    }
    const std::vector<uint8_t> round = {68, 0, 0, 0, 0, 0, 8, 0};
    (void)writer->WriteEncoded(round);
  }
  (void)writer->Finish({});
  return sink.bytes();
}

class CountingSink : public RecordSink, public TimedSink {
 public:
  Status OnRecord(const RawRecord& raw) override {
    benchmark::DoNotOptimize(raw.bytes.data());
    ++count;
    return {};
  }
  Status OnTimedRecord(const TimedRecord& record) override { return OnRecord(record.raw); }
  uint64_t count = 0;
};

// Arguments: bytes a record, zstd level.
void ReadRecords(benchmark::State& state) {
  const std::vector<uint8_t> bytes =
      Recording(static_cast<size_t>(state.range(0)), static_cast<int>(state.range(1)));
  CountingSink sink;
  uint64_t unpacked = 0;
  for (auto _ : state) {
    MemorySource source(bytes);
    const std::unique_ptr<Reader> reader = *Reader::Open(source);
    const ReadEnd end = *reader->ReadAll(sink);
    unpacked += end.bytes - end.compressed_bytes + end.decompressed_bytes;
  }
  state.SetItemsProcessed(static_cast<int64_t>(sink.count));
  state.SetBytesProcessed(static_cast<int64_t>(unpacked));
}
BENCHMARK(ReadRecords)
    ->ArgNames({"size", "zstd"})
    ->Args({64, 0})
    ->Args({8192, 0})
    ->Args({32768, 0})
    ->Args({64, 1})
    ->Args({32768, 1})
    ->Unit(benchmark::kMillisecond);

void SortRecords(benchmark::State& state) {
  const std::vector<uint8_t> bytes = Recording(static_cast<size_t>(state.range(0)), 0);
  CountingSink sink;
  for (auto _ : state) {
    MemorySource source(bytes);
    const std::unique_ptr<Reader> reader = *Reader::Open(source);
    Counters counters;
    RoundSorter sorter(*reader, sink, counters);
    (void)reader->ReadAll(sorter);
    (void)sorter.Finish();
  }
  state.SetItemsProcessed(static_cast<int64_t>(sink.count));
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * bytes.size()));
}
BENCHMARK(SortRecords)->ArgName("size")->Arg(64)->Arg(32768)->Unit(benchmark::kMillisecond);

class DroppingSink : public ByteSink {
 public:
  Status Write(ByteView bytes) override {
    benchmark::DoNotOptimize(bytes.data());
    return {};
  }
  Status WriteAt(uint64_t, ByteView) override { return {}; }
};

void WriteRecords(benchmark::State& state) {
  const std::vector<uint8_t> record = SampleRecord(static_cast<size_t>(state.range(0)));
  DroppingSink sink;
  auto writer = *Writer::Create(
      sink, {Container::kFile, kNativeEndian, static_cast<int>(state.range(1))}, {ClockEvent()});
  for (auto _ : state) benchmark::DoNotOptimize(writer->WriteEncoded(record));
  state.SetItemsProcessed(state.iterations());
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(WriteRecords)
    ->ArgNames({"size", "zstd"})
    ->Args({64, 0})
    ->Args({32768, 0})
    ->Args({64, 1})
    ->Args({32768, 1});

}  // namespace
}  // namespace stackreel::perfdata

BENCHMARK_MAIN();
