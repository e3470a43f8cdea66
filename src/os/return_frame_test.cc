#include "os/return_frame.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace stackreel::os {
namespace {

constexpr int kCode = PROT_READ | PROT_EXEC;

// A process with these pieces of code.
class Code {
 public:
  void Add(uint64_t at, std::vector<uint8_t> bytes, std::string path, uint64_t ino) {
    ProcMapping mapping;
    mapping.start = at;
    mapping.end = at + bytes.size();
    mapping.prot = kCode;
    mapping.path = std::move(path);
    mapping.ino = ino;
    maps_.push_back(mapping);
    pieces_[at] = std::move(bytes);
  }
  [[nodiscard]] Result<SystemCallPlace> Find() const { return FindSystemCallPlace(maps_, Read()); }
  [[nodiscard]] MemoryRead Read() const {
    return [this](uint64_t at, std::span<uint8_t> out) -> Status {
      auto piece = pieces_.upper_bound(at);
      if (piece == pieces_.begin()) return Fail(ErrorKind::kIo, "unmapped");
      --piece;
      const uint64_t offset = at - piece->first;
      if (offset + out.size() > piece->second.size()) return Fail(ErrorKind::kIo, "unmapped");
      std::copy_n(piece->second.begin() + static_cast<int64_t>(offset), out.size(), out.begin());
      return {};
    };
  }
  std::map<uint64_t, std::vector<uint8_t>> pieces_;

 private:
  std::vector<ProcMapping> maps_;
};

const std::vector<uint8_t> kRestorer = {0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05};
const std::vector<uint8_t> kReturning = {0x90, 0x0f, 0x05, 0xc3};

TEST(SystemCallPlaceTest, IsPutTogetherFromSeveralFiles) {
  Code code;
  code.Add(0x1000, {0x0f, 0x05, 0x90}, "[vdso]", 0);
  code.Add(0x2000, kReturning, "/lib/a.so", 1);
  code.Add(0x3000, kRestorer, "/lib/b.so", 2);
  const auto place = code.Find();
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->instruction, 0x2001);
  EXPECT_EQ(place->restorer, 0x3000);
  EXPECT_TRUE(HoldsSystemCallPlace(*place, code.Read()));
  code.pieces_[0x3000][3] = 14;
  EXPECT_FALSE(HoldsSystemCallPlace(*place, code.Read()));
}

// An agent's code has both; but it is mapped anew by just such system calls.
TEST(SystemCallPlaceTest, IsNotInWhatHasNoFile) {
  Code code;
  code.Add(0x1000, {0x90, 0x0f, 0x05}, "[vdso]", 0);
  std::vector<uint8_t> both = kReturning;
  both.insert(both.end(), kRestorer.begin(), kRestorer.end());
  code.Add(0x2000, both, "", 0);
  const auto place = code.Find();
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->instruction, 0x1001);
  EXPECT_EQ(place->restorer, 0);
}

TEST(SystemCallPlaceTest, CanBeMissing) {
  Code code;
  code.Add(0x1000, {0x90, 0x90}, "/bin/a", 1);
  const auto place = code.Find();
  ASSERT_FALSE(place.has_value());
  EXPECT_EQ(place.error().kind, ErrorKind::kUnsupported);
}

}  // namespace
}  // namespace stackreel::os
