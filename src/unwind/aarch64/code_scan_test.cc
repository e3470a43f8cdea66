#include "unwind/aarch64/code_scan.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

namespace stackreel::unwind::aarch64 {
namespace {

std::vector<uint8_t> Code(std::initializer_list<uint32_t> words) {
  std::vector<uint8_t> bytes;
  for (const uint32_t word : words) {
    for (int shift = 0; shift < 32; shift += 8)
      bytes.push_back(static_cast<uint8_t>(word >> shift));
  }
  return bytes;
}

std::optional<ScannedFrame> Scan(std::initializer_list<uint32_t> words, size_t skip = 0) {
  const std::vector<uint8_t> code = Code(words);
  return ScanToReturn(code, 4 * skip);
}

constexpr uint32_t kNop = 0xd503201f, kPaciasp = 0xd503233f, kAutiasp = 0xd50323bf;
constexpr uint32_t kRet = 0xd65f03c0, kRetaa = 0xd65f0bff, kBrX17 = 0xd61f0220, kBlrX1 = 0xd63f0020;
constexpr uint32_t kPushRecord = 0xa9be7bfd;  // stp x29, x30, [sp, #-32]!
constexpr uint32_t kPopRecord = 0xa8c27bfd;   // ldp x29, x30, [sp], #32
constexpr uint32_t kMovFpSp = 0x910003fd, kMovSpFp = 0x910003bf;
constexpr uint32_t kPushLr = 0xf81f0ffe;  // str x30, [sp, #-16]!
constexpr uint32_t kPopLr = 0xf84107fe;   // ldr x30, [sp], #16

TEST(CodeScan, ALeafKeepsAllInRegisters) { EXPECT_EQ(Scan({kNop, kRet}), (ScannedFrame{})); }

TEST(CodeScan, ABodyTakesItsRecordFromTheStack) {
  const auto frame = Scan({kPaciasp, kPushRecord, kMovFpSp, kBlrX1, kPopRecord, kAutiasp, kRet}, 4);
  EXPECT_EQ(frame, (ScannedFrame{.cfa_offset = 32, .ra_offset = -32 + 8, .fp_offset = -32}));
}

TEST(CodeScan, AFunctionsStartHasNothingOnTheStackYet) {
  EXPECT_EQ(Scan({kPaciasp, kPushRecord, kMovFpSp, kBlrX1, kPopRecord, kRetaa}), (ScannedFrame{}));
}

TEST(CodeScan, AFrameFoundThroughX29) {
  const auto frame = Scan({kBlrX1, kMovSpFp, kPopRecord, kRet});
  EXPECT_EQ(frame,
            (ScannedFrame{.from_fp = true, .cfa_offset = 32, .ra_offset = -24, .fp_offset = -32}));
}

TEST(CodeScan, LrAloneOnTheStack) {
  EXPECT_EQ(Scan({kPushLr, kBlrX1, kPopLr, kRet}, 1),
            (ScannedFrame{.cfa_offset = 16, .ra_offset = -16}));
}

// stp x16, x30, [sp, #-16]!; …; br x17: the caller's lr is still in x30.
TEST(CodeScan, APltEntryThatPushes) {
  EXPECT_EQ(Scan({0xa9bf7bf0, 0xf9400611, kBrX17}, 1), (ScannedFrame{}));
  EXPECT_EQ(Scan({0xa9bf7bf0, 0xf9400611, kBrX17}), (ScannedFrame{.cfa_offset = -16}));
}

TEST(CodeScan, StackAdjustmentsOfOtherRegisters) {
  constexpr uint32_t kPushD8D9 = 0x6dbf27e8;  // stp d8, d9, [sp, #-16]!
  constexpr uint32_t kAdd4096 = 0x914007ff;   // add sp, sp, #1, lsl #12
  EXPECT_EQ(Scan({kPushD8D9, kAdd4096, kRet}), (ScannedFrame{.cfa_offset = 4096 - 16}));
}

TEST(CodeScan, JumpsAreTakenBranchesAreNot) {
  constexpr uint32_t kJumpOver = 0x14000002;  // b .+8
  constexpr uint32_t kCbz = 0xb4000080;       // cbz x0, .+16
  EXPECT_EQ(Scan({kCbz, kJumpOver, kBlrX1, kRet}), (ScannedFrame{}));
  constexpr uint32_t kTailCall = 0x14001000;
  EXPECT_EQ(Scan({kTailCall}), (ScannedFrame{}));
}

TEST(CodeScan, GivesUpOnWhatItCannotFollow) {
  EXPECT_EQ(Scan({kBlrX1, kRet}), std::nullopt);          // x30 lost
  EXPECT_EQ(Scan({0x8b2263ff, kRet}), std::nullopt);      // add sp, sp, x2
  EXPECT_EQ(Scan({0xaa0503fe, kRet}), std::nullopt);      // mov x30, x5
  EXPECT_EQ(Scan({0xf94000be, kRet}), std::nullopt);      // ldr x30, [x5]
  EXPECT_EQ(Scan({0x00000000, kRet}), std::nullopt);      // udf
  EXPECT_EQ(Scan({kNop}), std::nullopt);                  // the code ends
  EXPECT_EQ(Scan({0x14000000}), std::nullopt);            // b .
  EXPECT_EQ(Scan({0xf2401c1f, kRet}), (ScannedFrame{}));  // tst x0, #0xff writes no sp
}

}  // namespace
}  // namespace stackreel::unwind::aarch64
