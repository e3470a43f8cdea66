#include "record/vdso_images.h"

#include <gtest/gtest.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "os/proc.h"

namespace stackreel::record {
namespace {

const auto kPid = static_cast<uint32_t>(getpid());

// A copy of our vDSO below 4 GiB, where those of 32-bit tasks are.
class LowCopy {
 public:
  explicit LowCopy(const std::vector<uint8_t>& bytes) : size_(bytes.size()) {
    constexpr uintptr_t kPlace = 0x20000000;  // no program of ours is there
    memory_ = mmap(reinterpret_cast<void*>(kPlace), size_, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (memory_ != MAP_FAILED) std::memcpy(memory_, bytes.data(), size_);
  }
  LowCopy(const LowCopy&) = delete;
  LowCopy& operator=(const LowCopy&) = delete;
  ~LowCopy() { munmap(memory_, size_); }
  [[nodiscard]] uint64_t address() const { return reinterpret_cast<uint64_t>(memory_); }

 private:
  size_t size_;
  void* memory_;
};

TEST(VdsoImages, A64BitTasksIsOurs) {
  VdsoImages images;
  const BuildId id = images.IdAt(/*pid=*/0, getauxval(AT_SYSINFO_EHDR), 8192);
  ASSERT_FALSE(id.empty());
  ASSERT_NE(images.Find(id), nullptr);
  EXPECT_EQ(images.Find(id)->bytes()[1], 'E');
  EXPECT_EQ(images.Find(BuildId()), nullptr);
  EXPECT_EQ(images.images().size(), 1u);
}

TEST(VdsoImages, A32BitTasksIsReadFromTheFirstThatCanBeRead) {
  std::vector<uint8_t> bytes = os::ReadOwnVdso();
  const LowCopy copy(bytes);
  ASSERT_LE(copy.address(), UINT32_MAX);
  VdsoImages images;
  constexpr uint32_t kNoProcess = 0x7ffffffe;
  EXPECT_TRUE(images.IdAt(kNoProcess, copy.address(), bytes.size()).empty());
  EXPECT_TRUE(images.IdAt(kPid, 0x1000, bytes.size()).empty());               // nothing is there
  EXPECT_TRUE(images.IdAt(kPid, copy.address(), uint64_t{1} << 40).empty());  // no vDSO is so large
  const BuildId id = images.IdAt(kPid, copy.address(), bytes.size());
  ASSERT_FALSE(id.empty());
  // From then on it is known, for tasks that cannot be read, too.
  EXPECT_EQ(images.IdAt(kNoProcess, copy.address(), bytes.size()), id);
  EXPECT_NE(images.Find(id), nullptr);
}

}  // namespace
}  // namespace stackreel::record
