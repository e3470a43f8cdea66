// What recording a call costs: entry and exit of a small function, hot, and sustained while another
// thread empties the chunks. The function and the loops are those of bench programs for tracers.
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>
#include <vector>

#include "agent/in_process_agent.h"

namespace {

using stackreel::agent::InProcessAgent;

double Nanoseconds(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

__attribute__((noinline, noclone)) int Leaf(int x) {
  __asm__ volatile("");
  return ((x * 3 + 1) ^ (x >> 3)) * (x | 5) + 9;
}
volatile int sink;

double NanosecondsACall(int (*function)(int), int calls, clockid_t clock) {
  const double start = Nanoseconds(clock);
  for (int i = 0; i < calls; ++i) sink = sink + function(i);
  return (Nanoseconds(clock) - start) / calls;
}
double Best(int (*function)(int)) {
  constexpr int kRounds = 200;
  constexpr int kCalls = 2000;
  double best = 1e9;
  for (int i = 0; i < kRounds; ++i)
    best = std::min(best, NanosecondsACall(function, kCalls, CLOCK_MONOTONIC));
  return best;
}
long PageFaults() {
  rusage usage = {};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_minflt + usage.ru_majflt;
}

// Makes chunks free as a tracer does, having copied them.
uint64_t Empty(InProcessAgent& agent, std::vector<uint8_t>& copy) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < agent.pool().chunks; ++i) {
    auto& chunk = agent.chunk(i);
    if (chunk.state != static_cast<uint32_t>(stackreel::tracedata::ChunkState::kFull)) continue;
    const uint32_t used = chunk.used;
    std::copy_n(reinterpret_cast<const uint8_t*>(&agent.pool()) +
                    stackreel::tracedata::ChunkOffset(agent.pool().chunks, i),
                used, copy.begin());
    bytes += used;
    chunk.used = 0;
    chunk.state = static_cast<uint32_t>(stackreel::tracedata::ChunkState::kFree);
    agent.TellFreed();
  }
  return bytes;
}

// What was written so far, of which `emptied` was.
uint64_t Written(InProcessAgent& agent, uint64_t emptied) {
  uint64_t bytes = emptied;
  for (uint32_t i = 0; i < agent.pool().chunks; ++i) bytes += agent.chunk(i).used;
  return bytes;
}

// Has the function's argument and return value recorded, an int each.
void RecordInteger(InProcessAgent& agent) {
  const stackreel::tracedata::ValueRead word = {.bytes = 4, .first = {}, .second = {}};
  auto actions = stackreel::agent::RecordValues({word}, {word});
  actions.list[4] = actions.list[6] = 0;  // none in vector registers, no texts
  stackreel::tracedata::ActionSet set;
  set.functions.emplace(1, std::move(actions));
  agent.Act(set);
}

}  // namespace

int main(int argc, char** argv) {
  const int calls = argc > 1 ? std::atoi(argv[1]) : 10'000'000;
  InProcessAgent agent(512);
  const auto traced = agent.Call(1, Leaf);
  volatile bool done = false;
  uint64_t bytes = 0;
  std::jthread consumer([&] {
    std::vector<uint8_t> copy(stackreel::tracedata::kChunkSize);
    while (!done) {
      bytes += Empty(agent, copy);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    bytes += Empty(agent, copy);
  });
  const double plain = Best(Leaf);
  // By the time that this thread ran: others' work on a busy machine does not count, what the agent
  // has the kernel do does.
  const clockid_t own_time = CLOCK_THREAD_CPUTIME_ID;
  NanosecondsACall(traced, 3'000'000, own_time);  // every chunk has been touched
  const double hot = Best(traced);
  const long faults = PageFaults();
  const double sustained = NanosecondsACall(traced, calls, own_time);
  std::printf("plain %.2f ns/call\nhot %.2f ns/call\nsustained %.2f ns/call over %d calls\n", plain,
              hot, sustained, calls);
  std::printf("page faults while sustained %ld\n", PageFaults() - faults);
  const uint64_t plain_bytes = Written(agent, bytes);
  RecordInteger(agent);
  std::printf("with an integer argument and result %.2f ns/call\n", Best(traced));
  const double with_values = NanosecondsACall(traced, calls / 4, own_time);
  std::printf("the same sustained %.2f ns/call\n", with_values);
  agent.Act({});
  {
    stackreel::tracedata::ActionSet set;
    set.functions[9].actions.flags = stackreel::tracedata::kEnds;
    agent.Act(set);
    std::printf("filters in force, recorded %.2f ns/call\n", Best(traced));
    set.root_state = stackreel::tracedata::kOutside;
    agent.Act(set);
    std::printf("filtered out %.2f ns/call\n", Best(traced));
    set.root_state = 0;
    set.functions[1].actions.flags = stackreel::tracedata::kAlways;
    agent.Act(set);
    std::printf("a function that acts %.2f ns/call\n", Best(traced));
    agent.Act({});
    std::printf("no filters any more %.2f ns/call\n", Best(traced));
  }
  agent.control().recording = 0;
  std::printf("recording off %.2f ns/call\n", Best(traced));
  done = true;
  consumer.join();
  const uint64_t values = Written(agent, bytes) - plain_bytes;
  std::printf("bytes a call %.3f, with values %.3f, chunks %u, lost %u\n",
              static_cast<double>(plain_bytes) / (calls + 3'000'000 + 400'000),
              static_cast<double>(values) / (calls / 4 + 400'000), agent.pool().filled.load(),
              agent.OwnSlot()->lost[3]);
  return 0;
}
