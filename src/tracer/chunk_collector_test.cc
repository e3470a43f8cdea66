#include "tracer/chunk_collector.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>

namespace stackreel::tracer {
namespace {

void SetChunk(Pool& pool, uint32_t i, uint32_t sequence) {
  tracedata::ChunkHeader& header = pool.chunk(i);
  header.pid = static_cast<uint32_t>(getpid());
  header.tid = static_cast<uint32_t>(getpid());
  header.sequence = sequence;
  header.used = sizeof(uint32_t);
  header.state = static_cast<uint32_t>(tracedata::ChunkState::kFull);
}

// Threads seen when a thread's chunks of these numbers lie in the pool in this order.
uint64_t ThreadsOf(const std::vector<uint32_t>& sequences) {
  const std::string directory = ::testing::TempDir() + "/chunk_collector_test.trace";
  std::filesystem::remove_all(directory);
  auto output = TraceOutput::Create(directory, 1);
  EXPECT_TRUE(output.has_value());
  auto pool = Pool::Make(os::Fd(memfd_create("pool", MFD_CLOEXEC)), 8);
  EXPECT_TRUE(pool.has_value() && (*pool)->Fill().has_value());
  for (uint32_t i = 0; i < sequences.size(); ++i) SetChunk(**pool, i, sequences[i]);
  ChunkCollector collector(**pool, **output, static_cast<uint32_t>(getpid()));
  EXPECT_TRUE(collector.TakeOwned(0, {}).has_value());
  std::filesystem::remove_all(directory);
  return collector.counts().threads;
}

TEST(ChunkCollector, OneThreadIsOneInWhateverOrderItsChunksLie) {
  EXPECT_EQ(ThreadsOf({0, 1, 2}), 1U);
  EXPECT_EQ(ThreadsOf({1, 0}), 1U);
  EXPECT_EQ(ThreadsOf({2, 1, 0}), 1U);
}

TEST(ChunkCollector, AnotherThreadOfTheSameIdIsAnother) { EXPECT_EQ(ThreadsOf({0, 1, 0, 1}), 2U); }

}  // namespace
}  // namespace stackreel::tracer
