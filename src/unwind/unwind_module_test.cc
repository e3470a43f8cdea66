#include <elf.h>
#include <gtest/gtest.h>

#include <vector>

#include "dwarf/frame_builder.h"
#include "elf/elf_writer.h"
#include "unwind/unwind.h"

namespace stackreel::unwind {
namespace {

constexpr uint64_t kText = 0x1000;
constexpr uint64_t kEhFrame = 0x8000;
constexpr uint64_t kHeader = 0x7000;

dwarf::FrameBuilder OneFde(Svma address, bool is_eh_frame) {
  dwarf::FrameBuilder builder(address, is_eh_frame);
  dwarf::NewCie cie;
  if (!is_eh_frame) {
    cie.version = 3;
    cie.augmentation = "";
  }
  builder.AddFde(builder.AddCie(cie), kText, 0x40);
  return builder;
}

elf::Image Parse(const std::vector<uint8_t>& file) {
  auto image = elf::Image::Parse(file);
  EXPECT_TRUE(image);
  return *std::move(image);
}

// A binary whose section table is gone still has program headers.
TEST(UnwindModule, CfiIsFoundBySegments) {
  dwarf::FrameBuilder builder(Svma{kEhFrame});
  const uint64_t fde = builder.AddFde(builder.AddCie(), kText, 0x40);
  builder.AddTerminator();
  elf::ElfWriter writer;
  const uint32_t header =
      writer.Add({.name = ".a",
                  .addr = kHeader,
                  .bytes = dwarf::MakeFrameHeader(Svma(kHeader), Svma(kEhFrame),
                                                  {{kText, builder.AddressOf(fde)}})});
  const uint32_t eh_frame =
      writer.Add({.name = ".b", .addr = kEhFrame, .bytes = elf::ElfWriter::Copy(builder.view())});
  writer.AddSegment(PT_LOAD, PF_R, header);
  writer.AddSegment(PT_LOAD, PF_R, eh_frame);
  writer.AddSegment(PT_GNU_EH_FRAME, PF_R, header);
  const std::vector<uint8_t> file = writer.Take();
  const elf::Image image = Parse(file);
  const auto module = UnwindModule::Make(&image, nullptr);
  EXPECT_TRUE(module->frames().FindFde(Svma(kText + 0x10)));
  EXPECT_FALSE(module->frames().FindFde(Svma(kText + 0x40)));
}

TEST(UnwindModule, DebugFrameOfTheDebugFile) {
  elf::ElfWriter stripped;
  stripped.Add({.name = ".text", .addr = kText, .bytes = std::vector<uint8_t>(64, 0x90)});
  const std::vector<uint8_t> file = stripped.Take();
  const elf::Image image = Parse(file);
  EXPECT_FALSE(UnwindModule::Make(&image, nullptr)->frames().FindFde(Svma(kText)));

  elf::ElfWriter debug;
  debug.Add({.name = ".debug_frame", .bytes = OneFde(Svma(0), false).Take()});
  const std::vector<uint8_t> debug_file = debug.Take();
  const elf::Image debug_image = Parse(debug_file);
  EXPECT_TRUE(UnwindModule::Make(&image, &debug_image)->frames().FindFde(Svma(kText)));
}

// In a debug file .eh_frame is there by name only.
TEST(UnwindModule, SectionsWithoutBytesAreNotRead) {
  elf::ElfWriter writer;
  writer.Add({.name = ".eh_frame", .type = SHT_NOBITS, .addr = kEhFrame, .nobits_size = 0x1000});
  writer.Add({.name = ".debug_frame", .bytes = OneFde(Svma(0), false).Take()});
  const std::vector<uint8_t> file = writer.Take();
  const elf::Image image = Parse(file);
  EXPECT_TRUE(UnwindModule::Make(&image, nullptr)->frames().FindFde(Svma(kText)));
}

TEST(UnwindModule, WritableBytesAreNotReadOnly) {
  elf::ElfWriter writer;
  const uint32_t data = writer.Add({.name = ".data", .addr = 0x3000, .bytes = {1, 2, 3, 4}});
  const uint32_t rodata = writer.Add({.name = ".rodata", .addr = 0x4000, .bytes = {5, 6, 7, 8}});
  writer.AddSegment(PT_LOAD, PF_R | PF_W, data);
  writer.AddSegment(PT_LOAD, PF_R, rodata);
  const std::vector<uint8_t> file = writer.Take();
  const elf::Image image = Parse(file);
  const auto module = UnwindModule::Make(&image, nullptr);
  EXPECT_EQ(module->BytesAt(Svma(0x3000)).size(), 4u);
  EXPECT_TRUE(module->ReadOnlyBytesAt(Svma(0x3000)).empty());
  EXPECT_EQ(module->ReadOnlyBytesAt(Svma(0x4001)).size(), 3u);
  EXPECT_TRUE(module->ReadOnlyBytesAt(Svma(0x9000)).empty());
}

}  // namespace
}  // namespace stackreel::unwind
