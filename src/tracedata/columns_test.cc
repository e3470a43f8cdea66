#include "tracedata/columns.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

namespace stackreel::tracedata {
namespace {

std::vector<uint8_t> Split(ByteView bytes) {
  std::vector<uint8_t> out(bytes.size());
  SplitIntoColumns(bytes, out);
  return out;
}

TEST(ColumnsTest, StandAsTheHeaderSays) {
  // Two events of three words, and half a word.
  const std::vector<uint8_t> bytes = {0x01, 0,   0, 0x20, 0x00, 1, 0, 0, 9, 0, 0, 0,  //
                                      0x01, 0,   0, 0x20, 0x60, 1, 0, 0, 8, 0, 0, 0,  //
                                      0xaa, 0xbb};
  // z: 2 and 0x40000000 | 0 and 0; 0x200 | 0xc0; 18 | 1.
  const std::vector<uint8_t> wanted = {0x02, 0,    0, 0, 0, 0, 0x40, 0,  //
                                       0x00, 0xc0, 2, 0, 0, 0, 0,    0,  //
                                       18,   1,    0, 0, 0, 0, 0,    0,  //
                                       0xaa, 0xbb};
  EXPECT_EQ(Split(bytes), wanted);
}

TEST(ColumnsTest, BytesOfAnyLengthComeBack) {
  std::mt19937 random(1);
  for (size_t size = 0; size < 2000; ++size) {
    std::vector<uint8_t> bytes(size);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    std::vector<uint8_t> back(size);
    JoinColumns(Split(bytes), back);
    ASSERT_EQ(back, bytes);
  }
}

}  // namespace
}  // namespace stackreel::tracedata
