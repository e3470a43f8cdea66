#include "dwarf/cfi.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "dwarf/frame_builder.h"
#include "dwarf/frame_header.h"

namespace stackreel::dwarf {
namespace {

constexpr Svma kEhFrame(0x1000);
constexpr Svma kHeader(0x800);

// Sections with the given bytes, which must outlive them.
FrameSections EhSections(ByteView eh_frame) {
  FrameSections sections;
  sections.eh_frame = eh_frame;
  sections.eh_frame_svma = kEhFrame;
  return sections;
}
FrameSections DebugFrameSections(ByteView debug_frame) {
  FrameSections sections;
  sections.debug_frame = debug_frame;
  return sections;
}
// "4000-4040" of the function found, "none" if none is.
std::string Found(const FrameTable& table, uint64_t svma) {
  const auto fde = table.FindFde(Svma(svma));
  if (!fde) return "none";
  char text[64];
  std::snprintf(text, sizeof text, "%llx-%llx", static_cast<unsigned long long>(fde->start.value),
                static_cast<unsigned long long>(fde->end.value));
  return text;
}

TEST(FrameTable, WithoutHeaderAnIndexFinds) {
  FrameBuilder builder(kEhFrame);
  const uint64_t cie = builder.AddCie();
  builder.AddFde(cie, 0x5000, 0x100);  // not sorted
  builder.AddFde(cie, 0x4000, 0x40);
  builder.AddFde(cie, 0x4040, 0x20);
  const FrameTable table(EhSections(builder.view()));
  EXPECT_EQ(Found(table, 0x3fff), "none");
  EXPECT_EQ(Found(table, 0x4000), "4000-4040");
  EXPECT_EQ(Found(table, 0x403f), "4000-4040");
  EXPECT_EQ(Found(table, 0x4040), "4040-4060");
  EXPECT_EQ(Found(table, 0x4060), "none");  // a gap
  EXPECT_EQ(Found(table, 0x50ff), "5000-5100");
  EXPECT_EQ(Found(table, 0x5100), "none");
  EXPECT_EQ(table.AllFdes().size(), 3u);
}

// A header and its section: FDEs at 0x4000, 0x5000, 0x6000, 0x10 bytes each.
struct WithHeader {
  WithHeader() : builder(kEhFrame) {
    const uint64_t cie = builder.AddCie();
    for (const uint64_t start : {0x4000, 0x5000, 0x6000}) {
      entries.emplace_back(start, builder.AddressOf(builder.AddFde(cie, start, 0x10)));
    }
  }
  FrameSections Sections() {
    header = MakeFrameHeader(kHeader, kEhFrame, entries);
    FrameSections sections = EhSections(builder.view());
    sections.eh_frame_hdr = header;
    sections.eh_frame_hdr_svma = kHeader;
    return sections;
  }
  FrameBuilder builder;
  std::vector<std::pair<uint64_t, Svma>> entries;
  std::vector<uint8_t> header;
};

TEST(FrameTable, HeaderFinds) {
  WithHeader f;
  const FrameTable table(f.Sections());
  EXPECT_EQ(Found(table, 0x3fff), "none");
  EXPECT_EQ(Found(table, 0x4000), "4000-4010");
  EXPECT_EQ(Found(table, 0x4010), "none");
  EXPECT_EQ(Found(table, 0x500f), "5000-5010");
  EXPECT_EQ(Found(table, 0x6000), "6000-6010");
  EXPECT_EQ(Found(table, 0x6010), "none");
  EXPECT_EQ(table.counters().Get("cfi.bad_header"), 0u);
}

TEST(FrameTable, HeaderTellsWhereEhFrameIs) {
  WithHeader f;
  EXPECT_EQ(EhFrameAddress(f.Sections()), kEhFrame);
}

TEST(FrameTable, UnsortedHeaderIsNotTrusted) {
  WithHeader f;
  std::swap(f.entries[0], f.entries[2]);
  const FrameTable table(f.Sections());
  for (const uint64_t svma : {0x4000, 0x5000, 0x6000}) EXPECT_NE(Found(table, svma), "none");
  EXPECT_EQ(Found(table, 0x4500), "none");
  EXPECT_EQ(table.counters().Get("cfi.bad_header"), 1u);
}

TEST(FrameTable, HeaderThatLeadsNowhereIsNotTrusted) {
  WithHeader f;
  f.entries[1].second = kEhFrame + 3;
  const FrameTable table(f.Sections());
  EXPECT_EQ(Found(table, 0x5000), "5000-5010");
  EXPECT_GE(table.counters().Get("cfi.bad_header"), 1u);
}

TEST(FrameTable, HeaderOfAnotherVersionOrEncodingIsNotUsed) {
  for (const auto& [at, byte] :
       {std::pair<size_t, uint8_t>{0, 2}, {3, 0xff}, {3, 0x01}, {2, 0xff}}) {
    WithHeader f;
    FrameSections sections = f.Sections();
    f.header[at] = byte;
    sections.eh_frame_hdr = f.header;
    const FrameTable table(sections);
    EXPECT_EQ(Found(table, 0x5000), "5000-5010") << at;
    EXPECT_EQ(table.counters().Get("cfi.bad_header"), 1u) << at;
  }
}

TEST(FrameTable, HeaderCountIsBoundedByItsBytes) {
  WithHeader f;
  FrameSections sections = f.Sections();
  StoreUnaligned<uint32_t>(f.header.data() + 8, 0xffffffff, Endian::kLittle);
  const auto header = FrameHeader::Parse(sections);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->count(), 3u);
}

TEST(FrameTable, HeaderWithWideFields) {
  WithHeader f;
  ByteWriter out;
  for (const uint8_t byte : {1, 0x1b, 0x04, 0x3c}) out.U8(byte);  // count udata8, datarel sdata8
  out.U32(static_cast<uint32_t>(kEhFrame.value - kHeader.value - 4));
  out.U64(3);
  for (const auto& [start, fde] : f.entries) {
    out.U64(start - kHeader.value);
    out.U64(fde.value - kHeader.value);
  }
  FrameSections sections = EhSections(f.builder.view());
  sections.eh_frame_hdr = out.view();
  sections.eh_frame_hdr_svma = kHeader;
  const FrameTable table(sections);
  EXPECT_EQ(Found(table, 0x5001), "5000-5010");
  EXPECT_EQ(table.counters().Get("cfi.bad_header"), 0u);
}

TEST(FrameTable, TerminatorsMayStandInTheMiddle) {
  FrameBuilder builder(kEhFrame);
  const uint64_t cie = builder.AddCie();
  builder.AddFde(cie, 0x4000, 0x10);
  builder.AddTerminator();
  builder.AddTerminator();
  builder.AddFde(cie, 0x5000, 0x10);
  builder.AddTerminator();
  const FrameTable table(EhSections(builder.view()));
  EXPECT_EQ(Found(table, 0x4000), "4000-4010");
  EXPECT_EQ(Found(table, 0x5000), "5000-5010");
}

TEST(FrameTable, DeletedFunctionsAreLeftOut) {
  FrameBuilder builder(Svma(0), /*is_eh_frame=*/false);
  NewCie cie;
  cie.version = 3;
  cie.augmentation = "";
  const uint64_t at = builder.AddCie(cie);
  builder.AddFde(at, 0, 0x10000);  // GNU ld's mark
  builder.AddFde(at, 1, 0x10000);
  builder.AddFde(at, UINT64_MAX, 0);
  builder.AddFde(at, 0x4000, 0);
  builder.AddFde(at, 0x4000, 0x10);
  const FrameTable table(DebugFrameSections(builder.view()));
  EXPECT_EQ(table.AllFdes().size(), 1u);
  EXPECT_EQ(Found(table, 0x4000), "4000-4010");
  EXPECT_EQ(Found(table, 0x20), "none");
  EXPECT_EQ(Found(table, 0x4020), "none");
}

TEST(FrameTable, DebugFrameIsAskedSecond) {
  FrameBuilder eh(kEhFrame);
  eh.AddFde(eh.AddCie(), 0x4000, 0x10);
  FrameBuilder debug(Svma(0), /*is_eh_frame=*/false);
  NewCie cie;
  cie.version = 4;
  cie.augmentation = "";
  const uint64_t at = debug.AddCie(cie);
  debug.AddFde(at, 0x4000, 0x20);
  debug.AddFde(at, 0x5000, 0x20);
  FrameSections sections = EhSections(eh.view());
  sections.debug_frame = debug.view();
  const FrameTable table(sections);
  EXPECT_EQ(Found(table, 0x4000), "4000-4010");
  EXPECT_FALSE(table.FindFde(Svma(0x4000))->in_debug_frame);
  EXPECT_EQ(Found(table, 0x4018), "4000-4020");
  EXPECT_EQ(Found(table, 0x5000), "5000-5020");
  EXPECT_TRUE(table.FindFde(Svma(0x5000))->in_debug_frame);
}

TEST(FrameTable, CieVersions) {
  for (const uint8_t version : {1, 3, 4}) {
    for (const bool long_length : {false, true}) {
      FrameBuilder builder(Svma(0), /*is_eh_frame=*/false);
      NewCie cie;
      cie.version = version;
      cie.augmentation = "";
      cie.long_length = long_length;
      builder.AddFde(builder.AddCie(cie), 0x4000, 0x10, CfaCode().DefCfaOffset(24), long_length);
      const FrameTable table(DebugFrameSections(builder.view()));
      const auto row = table.FindRow(Svma(0x4000));
      ASSERT_TRUE(row) << int{version} << long_length;
      EXPECT_EQ(row->cfa.offset, 24);
    }
  }
}

TEST(FrameTable, LongLengthsInEhFrameKeepShortIds) {
  FrameBuilder builder(kEhFrame);
  NewCie cie;
  cie.long_length = true;
  builder.AddFde(builder.AddCie(cie), 0x4000, 0x10, CfaCode(), /*long_length=*/true);
  const FrameTable table(EhSections(builder.view()));
  EXPECT_EQ(Found(table, 0x4000), "4000-4010");
}

TEST(FrameTable, UnknownCieVersionIsCounted) {
  FrameBuilder builder(kEhFrame);
  NewCie bad;
  bad.version = 2;
  const uint64_t bad_cie = builder.AddCie(bad);
  builder.AddFde(bad_cie, 0x4000, 0x10);
  builder.AddFde(bad_cie, 0x4100, 0x10);
  builder.AddFde(builder.AddCie(), 0x5000, 0x10);
  const FrameTable table(EhSections(builder.view()));
  EXPECT_EQ(Found(table, 0x4000), "none");
  EXPECT_EQ(Found(table, 0x5000), "5000-5010");
  EXPECT_EQ(table.counters().Get("cfi.bad_cie"), 1u);
}

TEST(FrameTable, Encodings) {
  // absptr, uleb128, udata4, udata8, sleb128, sdata4, sdata8; as they are, pcrel, datarel.
  for (const uint8_t application : {0x00, 0x10, 0x30}) {
    for (const uint8_t format : {0x00, 0x01, 0x03, 0x04, 0x09, 0x0b, 0x0c}) {
      const bool wraps = application != 0 && format == 0x01;  // a uleb128 has no negative distance
      if (wraps) continue;
      FrameBuilder builder(kEhFrame);
      builder.set_data_base(Svma(0x700));
      NewCie cie;
      cie.fde_encoding = application | format;
      builder.AddFde(builder.AddCie(cie), 0x4000, 0x123);
      FrameSections sections = EhSections(builder.view());
      sections.data_svma = Svma(0x700);
      const FrameTable table(sections);
      EXPECT_EQ(Found(table, 0x4000), "4000-4123") << int{application} << " " << int{format};
    }
  }
}

TEST(FrameTable, AlignedEncoding) {
  FrameBuilder builder(kEhFrame + 4);
  NewCie cie;
  cie.fde_encoding = 0x50;
  builder.AddFde(builder.AddCie(cie), 0x4000, 0x10);
  FrameSections sections = EhSections(builder.view());
  sections.eh_frame_svma = kEhFrame + 4;
  EXPECT_EQ(Found(FrameTable(sections), 0x4000), "4000-4010");
}

TEST(FrameTable, IndirectEncodingReadsTheFile) {
  FrameBuilder builder(kEhFrame);
  NewCie cie;
  cie.fde_encoding = 0x80;  // indirect, absptr: the range is said by value
  builder.AddFde(builder.AddCie(cie), 0x9000, 0x10);
  FrameSections sections = EhSections(builder.view());
  EXPECT_EQ(Found(FrameTable(sections), 0x4000), "none");  // nobody to ask
  ByteWriter pointee;
  pointee.U64(0x4000);
  const std::vector<uint8_t> bytes = pointee.Take();
  sections.loaded_bytes = [&](Svma svma) {
    return svma == Svma(0x9000) ? ByteView(bytes) : ByteView();
  };
  EXPECT_EQ(Found(FrameTable(sections), 0x4000), "4000-4010");
}

TEST(FrameTable, Augmentations) {
  FrameBuilder builder(kEhFrame);
  NewCie cie;
  cie.augmentation = "zPLRSBG";
  // P: udata4 personality; L: an encoding; R is last before the flags.
  cie.augmentation_data = {0x03, 1, 2, 3, 4, 0x1b};
  builder.AddFde(builder.AddCie(cie), 0x4000, 0x10);
  const FrameTable table(EhSections(builder.view()));
  const auto fde = table.FindFde(Svma(0x4000));
  ASSERT_TRUE(fde);
  EXPECT_TRUE(fde->cie.signal_frame);
  EXPECT_TRUE(fde->cie.b_key);
  EXPECT_TRUE(fde->cie.mte_tagged);
  bool signal_frame = false;
  EXPECT_TRUE(table.FindRow(Svma(0x4000), &signal_frame));
  EXPECT_TRUE(signal_frame);
}

TEST(FrameTable, UnknownAugmentationWithoutSizeIsBad) {
  FrameBuilder builder(kEhFrame);
  NewCie cie;
  cie.augmentation = "q";
  builder.AddFde(builder.AddCie(cie), 0x4000, 0x10);
  EXPECT_EQ(Found(FrameTable(EhSections(builder.view())), 0x4000), "none");
}

TEST(FrameTable, ThirtyTwoBitAddressesWrap) {
  FrameBuilder builder(Svma(0x8000), true, Endian::kLittle, 4);
  NewCie cie;
  cie.data_align = -4;
  cie.return_address_register = 8;
  cie.instructions = CfaCode().DefCfa(4, 4).Offset(8, 1);
  builder.AddFde(builder.AddCie(cie), 0x4000, 0x10);  // a negative distance
  FrameSections sections;
  sections.eh_frame = builder.view();
  sections.eh_frame_svma = Svma(0x8000);
  sections.is_64bit = false;
  sections.machine = 3;
  const FrameTable table(sections);
  EXPECT_EQ(Found(table, 0x4000), "4000-4010");
  EXPECT_EQ(table.FindRow(Svma(0x4000))->registers[8].offset, -4);
}

TEST(FrameTable, BigEndian) {
  FrameBuilder builder(kEhFrame, true, Endian::kBig);
  const uint64_t cie = builder.AddCie();
  const uint64_t fde = builder.AddFde(cie, 0x4000, 0x10);
  const auto header =
      MakeFrameHeader(kHeader, kEhFrame, {{0x4000, builder.AddressOf(fde)}}, Endian::kBig);
  FrameSections sections = EhSections(builder.view());
  sections.eh_frame_hdr = header;
  sections.eh_frame_hdr_svma = kHeader;
  sections.endian = Endian::kBig;
  EXPECT_EQ(Found(FrameTable(sections), 0x400f), "4000-4010");
}

TEST(FrameTable, EntriesThatRunPastTheEndEndTheIndex) {
  FrameBuilder builder(kEhFrame);
  builder.AddFde(builder.AddCie(), 0x4000, 0x10);
  builder.AddBytes({0xf0, 0xff, 0xff, 0x7f, 0x00, 0x00});
  const FrameTable table(EhSections(builder.view()));
  EXPECT_EQ(Found(table, 0x4000), "4000-4010");
  EXPECT_EQ(table.counters().Get("cfi.bad_fde"), 1u);
}

TEST(FrameTable, AnFdeWithoutCieIsBad) {
  FrameBuilder builder(kEhFrame);
  const uint64_t cie = builder.AddCie();
  const uint64_t fde = builder.AddFde(cie, 0x4000, 0x10);
  std::vector<uint8_t> bytes = builder.Take();
  StoreUnaligned<uint32_t>(bytes.data() + fde + 4, 0x7fffffff, Endian::kLittle);
  EXPECT_EQ(Found(FrameTable(EhSections(bytes)), 0x4000), "none");
}

TEST(FrameTable, RangesThatWrapAreBad) {
  FrameBuilder builder(kEhFrame);
  NewCie cie;
  cie.fde_encoding = 0x04;
  builder.AddFde(builder.AddCie(cie), 0xffffffffffff0000, 0x20000);
  const FrameTable table(EhSections(builder.view()));
  EXPECT_EQ(Found(table, 0xffffffffffff0001), "none");
  EXPECT_EQ(table.counters().Get("cfi.bad_fde"), 1u);
}

TEST(FrameTable, SeveralThreadsMakeOneIndex) {
  FrameBuilder builder(kEhFrame);
  const uint64_t cie = builder.AddCie();
  for (uint64_t i = 0; i < 2000; ++i) builder.AddFde(cie, 0x100000 + i * 16, 16);
  const FrameTable table(EhSections(builder.view()));
  std::vector<std::thread> threads;
  std::vector<size_t> found(4);
  for (size_t t = 0; t < found.size(); ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 2000; ++i)
        found[t] += table.FindFde(Svma(0x100000 + i * 16)) ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const size_t n : found) EXPECT_EQ(n, 2000u);
}

TEST(FrameTable, NoSectionsFindNothing) {
  const FrameTable table{FrameSections()};
  EXPECT_EQ(Found(table, 0), "none");
  const auto row = table.FindRow(Svma(0x1000));
  ASSERT_FALSE(row);
  EXPECT_EQ(row.error().kind, ErrorKind::kNotFound);
}

}  // namespace
}  // namespace stackreel::dwarf
