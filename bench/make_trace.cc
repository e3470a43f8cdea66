// Writes a synthetic trace: make_trace DIR RECORDS [THREADS]. A record is an entry or an end, as
// uftrace counts them. Calls nest as in a small parser: some deep, most short. The same each time.
#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "os/file.h"
#include "tracedata/chunk_builder.h"
#include "tracedata/trace_writer.h"

namespace stackreel {
namespace {

constexpr uint32_t kFunctions = 2000;
constexpr uint64_t kTicksPerSecond = 2'500'000'000;

Status AddFacts(tracedata::TraceWriter& writer, uint32_t threads) {
  TRY(writer.Add(tracedata::TraceClock{.origin_ticks = 0,
                                       .origin_nanoseconds = 1'000'000'000'000,
                                       .ticks_per_second = kTicksPerSecond}));
  TRY(writer.Add(tracedata::TraceHost{.command_line = "synthetic", .cpus = 2}));
  TRY(writer.Add(tracedata::TraceModule{.id = 0, .path = "/opt/synthetic/bin/parser"}));
  for (uint32_t id = 0; id < kFunctions; ++id) {
    TRY(writer.Add(tracedata::TraceFunction{.id = id,
                                            .module = 0,
                                            .svma = Svma(0x1000 + 64 * uint64_t{id}),
                                            .size = 64,
                                            .name = fmt::format("function_{}", id)}));
  }
  for (uint32_t thread = 0; thread < threads; ++thread) {
    TRY(writer.Add(tracedata::TraceThread{
        .index = thread, .pid = 1000, .tid = 1000 + thread, .comm = "synthetic"}));
  }
  return {};
}

// Entries and ends of one thread, a few at a time.
class Caller {
 public:
  Caller(tracedata::TraceWriter& writer, uint32_t thread)
      : builder_(writer, thread), random_(thread), now_(1'000'000 + thread) {}

  Status Step() {
    const uint32_t dice = random_();
    now_ += 20 + (dice >> 24);
    const bool enter = open_.empty() || (open_.size() < 60 && dice % 64 < 32);
    if (enter) {
      // What a function calls, it calls again and again.
      const uint32_t caller = open_.empty() ? 0 : open_.back();
      open_.push_back((caller * 7 + 1 + dice / 64 % 5) % kFunctions);
      return builder_.Enter(now_, open_.back());
    }
    const uint32_t function = open_.back();
    open_.pop_back();
    return builder_.Exit(now_, function);
  }
  Status End() {
    while (!open_.empty()) {
      now_ += 50;
      TRY(builder_.Exit(now_, open_.back()));
      open_.pop_back();
    }
    return builder_.Flush();
  }

 private:
  tracedata::ChunkBuilder builder_;
  std::minstd_rand random_;
  uint64_t now_;
  std::vector<uint32_t> open_;
};

Status Make(const std::string& folder, uint64_t records, uint32_t threads) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  TRY_ASSIGN(const std::unique_ptr<os::OutputFile> calls,
             os::OutputFile::CreateInPlace(folder + "/" + tracedata::kCallsFile));
  TRY_ASSIGN(const std::unique_ptr<os::OutputFile> facts,
             os::OutputFile::CreateInPlace(folder + "/" + tracedata::kFactsFile));
  TRY_ASSIGN(tracedata::TraceWriter writer, tracedata::TraceWriter::Begin(*calls, *facts, 1));
  TRY(AddFacts(writer, threads));
  std::vector<Caller> callers;
  for (uint32_t thread = 0; thread < threads; ++thread) callers.emplace_back(writer, thread);
  constexpr uint64_t kTurn = 1000;
  for (uint64_t done = 0; done < records; done += kTurn) {
    Caller& caller = callers[done / kTurn % threads];
    for (uint64_t i = 0; i < kTurn; ++i) TRY(caller.Step());
  }
  for (Caller& caller : callers) TRY(caller.End());
  return writer.Flush();
}

}  // namespace
}  // namespace stackreel

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: make_trace DIR RECORDS [THREADS]\n");
    return 2;
  }
  const uint64_t records = std::strtoull(argv[2], nullptr, 10);
  const uint64_t threads = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1;
  const stackreel::Status status =
      stackreel::Make(argv[1], records, static_cast<uint32_t>(threads == 0 ? 1 : threads));
  if (status) return 0;
  std::fprintf(stderr, "make_trace: %s\n", status.error().ToString().c_str());
  return 1;
}
