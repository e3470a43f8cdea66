// Unwinding alone, over the stacks of a recording, in nanoseconds a frame.
//
//   perf record -e cpu-clock -F 4999 --call-graph dwarf,8192 -o deep.data ./deep 4 1 1
//   STACKREEL_BENCH_RECORDING=deep.data bench_unwind
//   STACKREEL_BENCH_SYMFS=DIR: the recording is another machine's, whose files are below DIR
//
// warm:   a few stacks that stay in the caches, again and again
// memory: all stacks in turn, so that each comes from memory; the next one prefetched
// cold:   the same with a new Unwinder: every rule has to be found first
// shared: as memory, by one thread, two, … as many as there are CPUs, each with an Unwinder of its
//         own; real time
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "support/recorded_stacks.h"
#include "unwind/unwind.h"

namespace stackreel {
namespace {

using unwind::Frame;
using unwind::Unwinder;

const Recording* recording = nullptr;

// Unwinds the first `count` stacks; gives the number of frames.
size_t UnwindAll(Unwinder& unwinder, size_t count, bool prefetch, std::vector<Frame>& frames) {
  const std::vector<RecordedStack>& stacks = recording->stacks;
  size_t total = 0;
  for (size_t i = 0; i < count; ++i) {
    if (prefetch && i + 1 < count) unwinder.Prefetch(stacks[i + 1].input.stack);
    frames.clear();
    unwinder.Unwind(stacks[i].input, frames);
    total += frames.size();
  }
  return total;
}

void PerFrame(benchmark::State& state, size_t frames) {
  state.counters["ns/frame"] =
      benchmark::Counter(static_cast<double>(frames) * 1e-9,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.SetItemsProcessed(static_cast<int64_t>(frames));
}

void Warm(benchmark::State& state) {
  Unwinder unwinder;
  std::vector<Frame> frames;
  const size_t count = std::min<size_t>(8, recording->stacks.size());
  UnwindAll(unwinder, count, false, frames);
  size_t total = 0;
  for (auto _ : state) total += UnwindAll(unwinder, count, false, frames);
  PerFrame(state, total);
}

void Memory(benchmark::State& state, bool prefetch) {
  Unwinder unwinder;
  std::vector<Frame> frames;
  UnwindAll(unwinder, recording->stacks.size(), false, frames);
  size_t total = 0;
  for (auto _ : state) {
    total += UnwindAll(unwinder, recording->stacks.size(), prefetch, frames);
  }
  PerFrame(state, total);
}

void Cold(benchmark::State& state) {
  std::vector<Frame> frames;
  size_t total = 0;
  for (auto _ : state) {
    Unwinder unwinder;
    total += UnwindAll(unwinder, recording->stacks.size(), true, frames);
  }
  PerFrame(state, total);
}

void Shared(benchmark::State& state) {
  Unwinder unwinder;
  std::vector<Frame> frames;
  UnwindAll(unwinder, recording->stacks.size(), false, frames);
  size_t total = 0;
  for (auto _ : state) total += UnwindAll(unwinder, recording->stacks.size(), true, frames);
  PerFrame(state, total);
}

}  // namespace
}  // namespace stackreel

int main(int argc, char** argv) {
  using stackreel::recording;
  const char* path = std::getenv("STACKREEL_BENCH_RECORDING");
  if (path == nullptr) {
    fmt::print("bench_unwind: set STACKREEL_BENCH_RECORDING to a recording with user stacks\n");
    return 0;
  }
  const auto loaded = stackreel::LoadRecording(path);
  if (!loaded || (*loaded)->stacks.empty()) {
    fmt::print(stderr, "bench_unwind: {}\n",
               loaded ? "no user stacks in the recording" : loaded.error().ToString());
    return 1;
  }
  recording = loaded->get();
  benchmark::RegisterBenchmark("unwind/warm", stackreel::Warm);
  benchmark::RegisterBenchmark("unwind/memory_no_prefetch", stackreel::Memory, false);
  benchmark::RegisterBenchmark("unwind/memory", stackreel::Memory, true);
  benchmark::RegisterBenchmark("unwind/cold", stackreel::Cold);
  const int cpus = std::max(benchmark::CPUInfo::Get().num_cpus, 1);
  for (int threads = 1; threads <= cpus; threads *= 2) {
    benchmark::RegisterBenchmark("unwind/shared", stackreel::Shared)
        ->Threads(threads)
        ->UseRealTime();
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
