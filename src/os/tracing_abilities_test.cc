#include "os/tracing_abilities.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/file.h"

namespace stackreel::os {
namespace {

TEST(TracingAbilities, FilesInMemoryAreMadeUnderEveryRuleOfTheKernel) {
  const Fd file(memfd_create("test", MemfdFlags()));
  ASSERT_TRUE(file.valid());
  struct stat info = {};
  ASSERT_EQ(fstat(file.get(), &info), 0);
  const bool knows_the_rule = access("/proc/sys/vm/memfd_noexec", F_OK) == 0;
  EXPECT_EQ((info.st_mode & 0111) == 0, knows_the_rule);
  ASSERT_EQ(ftruncate(file.get(), 4096), 0);
  void* const memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  EXPECT_NE(memory, MAP_FAILED);
  munmap(memory, 4096);
}

}  // namespace
}  // namespace stackreel::os
