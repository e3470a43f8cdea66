#include "tracer/installed_agent.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace stackreel::tracer {
namespace {

uint64_t BytesTaken(int fd) {
  struct stat info = {};
  EXPECT_EQ(fstat(fd, &info), 0);
  return static_cast<uint64_t>(info.st_blocks) * 512;
}

// A target is held while the pool is made: zeroing 32 MB took 40 ms of its time.
TEST(Pool, TakesItsMemoryOnlyWhenItIsFilled) {
  constexpr uint32_t kChunks = 64;
  const os::Fd file(memfd_create("pool", MFD_CLOEXEC));
  ASSERT_TRUE(file.valid());
  auto pool = Pool::Make(os::Fd(dup(file.get())), kChunks);
  ASSERT_TRUE(pool.has_value()) << pool.error().ToString();
  EXPECT_EQ(BytesTaken(file.get()), 0U);
  ASSERT_TRUE((*pool)->Fill().has_value());
  EXPECT_GE(BytesTaken(file.get()), tracedata::PoolSize(kChunks));
  EXPECT_EQ((*pool)->chunks(), kChunks);
  (*pool)->Drop();
  EXPECT_LT(BytesTaken(file.get()), tracedata::PoolSize(kChunks) / 2);
}

TEST(Pool, IsExtendedUpToItsRoom) {
  constexpr uint32_t kChunks = 2;
  const os::Fd file(memfd_create("pool", MFD_CLOEXEC));
  auto pool = Pool::Make(os::Fd(dup(file.get())), kChunks);
  ASSERT_TRUE(pool.has_value() && (*pool)->Fill().has_value());
  const auto* const last_of_first = (*pool)->words(1).data();
  (*pool)->Extend(1);
  EXPECT_EQ((*pool)->chunks(), kChunks);
  EXPECT_EQ((*pool)->header().freed, 0U);
  (*pool)->Extend(6);
  EXPECT_EQ((*pool)->chunks(), 6U);
  EXPECT_EQ((*pool)->header().freed, 1U);
  EXPECT_EQ((*pool)->words(5).data(), last_of_first + uint64_t{4} * tracedata::kChunkSize);
  EXPECT_GE(BytesTaken(file.get()), uint64_t{6} * tracedata::kChunkSize);
  (*pool)->Extend(UINT32_MAX);
  EXPECT_EQ((*pool)->chunks(), (*pool)->header().chunks);
  EXPECT_EQ(tracedata::PoolSize((*pool)->chunks()), Pool::SizeFor(kChunks));
}

}  // namespace
}  // namespace stackreel::tracer
