#include "analyze/jit_frames.h"

#include <gtest/gtest.h>

#include "dwarf/frame_builder.h"
#include "session/fake_jit_dump.h"

namespace stackreel::analyze {
namespace {

constexpr uint64_t kStart = 0x700000;
constexpr uint64_t kSize = 0x18;

// Of code at kStart; `padding` bytes of nothing follow the FDE.
std::vector<uint8_t> EhFrame(size_t padding) {
  dwarf::FrameBuilder frames(Svma(kStart + kSize));
  dwarf::NewCie cie;
  cie.augmentation = "zR";
  cie.fde_encoding = 0x1b;  // DW_EH_PE_pcrel | sdata4
  frames.AddFde(frames.AddCie(cie), kStart, kSize, dwarf::CfaCode().DefCfaOffset(32));
  std::vector<uint8_t> bytes(frames.view().begin(), frames.view().end());
  bytes.resize(bytes.size() + padding);
  return bytes;
}

TEST(JitFrames, CodeThatMovesTakesItsFramesAlong) {
  session::FakeJitDump writer;
  writer.UnwindingInfo(1, EhFrame(0));
  writer.Load(1, kStart, kSize, "jitted", 0);
  writer.Move(2, kStart, kStart + 0x1000, kSize, 0);
  const std::vector<uint8_t> bytes = writer.Take();
  const auto dump = session::JitDump::Parse(bytes);
  ASSERT_TRUE(dump);
  Counters counters;
  const auto module = MakeJitFrames(*dump, bytes.size(), counters);
  ASSERT_NE(module, nullptr);
  for (const uint64_t start : {kStart, kStart + 0x1000}) {
    const auto row = module->frames().FindRow(Svma(start + 4));
    ASSERT_TRUE(row);
    EXPECT_EQ(row->cfa.offset, 32);
  }
  EXPECT_TRUE(counters.values().empty());
}

TEST(JitFrames, ManyMovesOfMuchInformationDoNotAddUp) {
  constexpr size_t kMoves = 1000;
  session::FakeJitDump writer;
  writer.UnwindingInfo(1, EhFrame(100'000));
  writer.Load(1, kStart, kSize, "jitted", 0);
  for (size_t i = 1; i <= kMoves; ++i) writer.Move(2, kStart, kStart + i * 0x1000, kSize, 0);
  const std::vector<uint8_t> bytes = writer.Take();
  const auto dump = session::JitDump::Parse(bytes);
  ASSERT_TRUE(dump);
  Counters counters;
  EXPECT_NE(MakeJitFrames(*dump, bytes.size(), counters), nullptr);
  EXPECT_GT(counters.Get("analyze.jit_frames_left_out"), kMoves - 20);
}

}  // namespace
}  // namespace stackreel::analyze
