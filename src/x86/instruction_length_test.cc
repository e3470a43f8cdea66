#include "x86/instruction_length.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include "x86/instruction.h"

namespace stackreel::x86 {
namespace {

std::string Hex(ByteView bytes) {
  std::string text;
  for (const uint8_t byte : bytes.first(std::min<size_t>(bytes.size(), 15))) {
    char digits[4];
    std::snprintf(digits, sizeof(digits), "%02x ", byte);
    text += digits;
  }
  return text;
}

// At every byte, so that all kinds of bytes are met, not only what compilers write.
void ExpectSameLengths(ByteView bytes) {
  size_t compared = 0;
  for (size_t at = 0; at < bytes.size(); ++at) {
    const auto instruction = Decode(bytes.subspan(at));
    if (!instruction) continue;
    ++compared;
    const InstructionShape shape = ReadShape(bytes.subspan(at));
    ASSERT_EQ(shape.length, instruction->length) << Hex(bytes.subspan(at));
    if (instruction->modrm_offset != 0) {
      ASSERT_EQ(shape.modrm_offset, instruction->modrm_offset) << Hex(bytes.subspan(at));
    }
  }
  EXPECT_GT(compared, bytes.size() / 4);
}

TEST(ReadShape, AgreesWithDecodeOnALibrary) {
  std::ifstream file("/lib/x86_64-linux-gnu/libc.so.6", std::ios::binary);
  if (!file) GTEST_SKIP() << "no libc here";
  const std::vector<char> chars((std::istreambuf_iterator<char>(file)), {});
  std::vector<uint8_t> bytes(chars.begin(), chars.end());
  bytes.resize(std::min<size_t>(bytes.size(), size_t{1} << 20));
  ExpectSameLengths(bytes);
}

TEST(ReadShape, AgreesWithDecodeOnRandomBytes) {
  std::mt19937 random(1);
  std::vector<uint8_t> bytes(size_t{1} << 20);
  std::ranges::generate(bytes, [&] { return static_cast<uint8_t>(random()); });
  ExpectSameLengths(bytes);
}

// Each opcode of each map behind each kind of prefix, before each kind of modrm.
TEST(ReadShape, AgreesWithDecodeOnEveryOpcode) {
  const std::vector<std::vector<uint8_t>> prefixes = {
      {}, {0x66}, {0x67}, {0xf2}, {0xf3}, {0x48}, {0x66, 0x48}, {0x48, 0x66}, {0xf0}, {0x2e, 0x41}};
  const std::vector<std::vector<uint8_t>> maps = {
      {},
      {0x0f},
      {0x0f, 0x38},
      {0x0f, 0x3a},
      {0xc5, 0xf8},
      {0xc4, 0xe1, 0x78},
      {0xc4, 0xe2, 0x79},
      {0xc4, 0xe3, 0xf9},
      {0x62, 0xf1, 0x7c, 0x48},
      {0x62, 0xf2, 0x7d, 0x08},
      {0x62, 0xf3, 0xfd, 0x28},
      {0x62, 0xf5, 0x7c, 0x48},
      {0x62, 0xf6, 0x7d, 0x48},
      {0x8f, 0xe8, 0x78},
      {0x8f, 0xe9, 0x78},
      {0x8f, 0xea, 0x78},
  };
  size_t compared = 0;
  for (const auto& prefix : prefixes) {
    for (const auto& map : maps) {
      for (int opcode = 0; opcode < 256; ++opcode) {
        for (int modrm = 0; modrm < 256; ++modrm) {
          std::vector<uint8_t> bytes = prefix;
          bytes.insert(bytes.end(), map.begin(), map.end());
          bytes.push_back(static_cast<uint8_t>(opcode));
          bytes.push_back(static_cast<uint8_t>(modrm));
          bytes.resize(15, 0x25);
          const auto instruction = Decode(bytes);
          if (!instruction) continue;
          ++compared;
          ASSERT_EQ(ReadShape(bytes).length, instruction->length) << Hex(bytes);
        }
      }
    }
  }
  EXPECT_GT(compared, 100000U);
}

TEST(ReadShape, DoesNotReadPastTheEnd) {
  const std::vector<uint8_t> bytes = {0x48, 0x81, 0xbc, 0x24, 1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(ReadShape(bytes).length, bytes.size());
  for (size_t size = 0; size < bytes.size(); ++size) {
    const std::vector<uint8_t> part(bytes.begin(), bytes.begin() + static_cast<long>(size));
    EXPECT_EQ(ReadShape(part).length, 0) << size;
  }
}

}  // namespace
}  // namespace stackreel::x86
