#include "dwarf/source_index.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dwarf/constants.h"
#include "dwarf/dwarf_writer.h"

namespace stackreel::dwarf {
namespace {

constexpr uint16_t kTagLexicalBlock = 0x0b;
constexpr uint16_t kTagPartialUnit = 0x3c;

// "function@line" of each frame, innermost first; an inlined one has a "^", a linkage name a "!".
std::string Frames(SourceIndex& index, uint64_t svma) {
  std::string out;
  for (const SourceFrame& frame : index.Find(Svma(svma))) {
    if (!out.empty()) out += ' ';
    out += std::string(frame.function) + (frame.function_is_linkage_name ? "!" : "") +
           (frame.inlined ? "^" : "") + "@" + std::to_string(frame.line);
  }
  return out;
}

std::unique_ptr<SourceIndex> Open(FileImagePtr file, DebugFileLoader loader = {}) {
  auto index = SourceIndex::Open(std::move(file), std::move(loader));
  EXPECT_TRUE(index) << index.error().ToString();
  return std::move(*index);
}

// The high_pc of `size` bytes at `low`, as the version has it.
NewAttribute HighPc(uint16_t version, uint64_t low, uint64_t size) {
  if (version >= 4) return {kAtHighPc, kFormData4, size};
  return {kAtHighPc, kFormAddr, low + size};
}

// main [0x1100, 0x1200) with `mid` inlined at line 10 [0x1120, 0x1160) and `leaf` in that at
// line 20 [0x1130, 0x1140), under a lexical block.
void WriteMainUnit(UnitWriter& units, uint16_t version, bool root_ranges = true) {
  units.BeginUnit();
  std::vector<NewAttribute> root = {{kAtName, kFormString, 0, "main.cc"}};
  if (root_ranges) {
    root.push_back({kAtLowPc, kFormAddr, 0x1100});
    root.push_back(HighPc(version, 0x1100, 0x100));
  }
  units.Die(kTagCompileUnit, true, root);
  const uint64_t leaf = units.InUnit(
      units.Die(kTagSubprogram, false,
                {{kAtName, kFormString, 0, "leaf"}, {kAtLinkageName, kFormString, 0, "_Z4leafv"}}));
  const uint64_t mid =
      units.InUnit(units.Die(kTagSubprogram, false, {{kAtName, kFormString, 0, "mid"}}));
  units.Die(kTagSubprogram, true,
            {{kAtName, kFormString, 0, "main"},
             {kAtLowPc, kFormAddr, 0x1100},
             HighPc(version, 0x1100, 0x100)});
  units.Die(kTagInlinedSubroutine, true,
            {{kAtAbstractOrigin, kFormRef4, mid},
             {kAtLowPc, kFormAddr, 0x1120},
             HighPc(version, 0x1120, 0x40),
             {kAtCallFile, kFormData1, 1},
             {kAtCallLine, kFormData1, 10}});
  units.Die(kTagLexicalBlock, true, {});
  units.Die(kTagInlinedSubroutine, false,
            {{kAtAbstractOrigin, kFormRef4, leaf},
             {kAtLowPc, kFormAddr, 0x1130},
             HighPc(version, 0x1130, 0x10),
             {kAtCallLine, kFormUdata, 20}});
  for (int i = 0; i < 4; ++i) units.EndChildren();
  units.EndUnit();
}

TEST(SourceIndexTest, FindsInlinedFunctionsInEveryVersion) {
  for (const uint16_t version : {2, 3, 4, 5}) {
    for (const bool dwarf64 : {false, true}) {
      if (dwarf64 && version == 2) continue;
      for (const Endian endian : {Endian::kLittle, Endian::kBig}) {
        UnitWriter units({.version = version, .address_size = 8, .dwarf64 = dwarf64}, endian);
        WriteMainUnit(units, version);
        auto index = Open(DebugFileWriter(ET_DYN, endian).Add(units).Take());
        EXPECT_EQ(Frames(*index, 0x10ff), "");
        EXPECT_EQ(Frames(*index, 0x1100), "main@0");
        EXPECT_EQ(Frames(*index, 0x1120), "mid^@0 main@10");
        EXPECT_EQ(Frames(*index, 0x1130), "_Z4leafv!^@0 mid^@20 main@10");
        EXPECT_EQ(Frames(*index, 0x113f), "_Z4leafv!^@0 mid^@20 main@10");
        EXPECT_EQ(Frames(*index, 0x1140), "mid^@0 main@10");
        EXPECT_EQ(Frames(*index, 0x1160), "main@0");
        EXPECT_EQ(Frames(*index, 0x1200), "");
        EXPECT_TRUE(index->counters().values().empty());
      }
    }
  }
}

TEST(SourceIndexTest, LinesOnRequestOnly) {
  UnitWriter units({.version = 4});
  WriteMainUnit(units, 4);
  auto index = *SourceIndex::Open(DebugFileWriter().Add(units).Take(), {}, {.lines = false});
  EXPECT_EQ(Frames(*index, 0x1130), "_Z4leafv!^@0 mid^@0 main@0");
}

TEST(SourceIndexTest, NoDebugInformationIsNotFound) {
  const auto index = SourceIndex::Open(DebugFileWriter().Take(), {});
  ASSERT_FALSE(index);
  EXPECT_EQ(index.error().kind, ErrorKind::kNotFound);
}

// tests/compare_relocatable.py has what they give. Here no relocation moves the addresses to where
// the code is laid out, from 0 on, so that they are not believed.
TEST(SourceIndexTest, CodeOfRelocatableFilesIsLaidOutFrom0) {
  UnitWriter units({.version = 5});
  WriteMainUnit(units, 5);
  const auto index = SourceIndex::Open(DebugFileWriter(ET_REL).Add(units).Take(), {});
  ASSERT_TRUE(index);
  EXPECT_EQ(Frames(**index, 0x1130), "");
}

// A root DIE without ranges, as DWARF 2 has them for units of several sections.
TEST(SourceIndexTest, FindsUnitsByArangesWhereTheRootSaysNothing) {
  UnitWriter units({.version = 4});
  WriteMainUnit(units, 4, /*root_ranges=*/false);
  EXPECT_EQ(Frames(*Open(DebugFileWriter().Add(units).Take()), 0x1130), "");
  ByteWriter aranges(Endian::kLittle);
  aranges.U32(2 + 4 + 2 + 4 + 32);
  aranges.U16(2);
  aranges.U32(0);  // the unit
  aranges.U8(8);
  aranges.U8(0);
  aranges.U32(0);  // to a multiple of 16
  for (const uint64_t word : {0x1100, 0x100, 0, 0}) aranges.U64(word);
  const auto index =
      Open(DebugFileWriter().Add(units).Add(".debug_aranges", aranges.view()).Take());
  EXPECT_EQ(Frames(*index, 0x1130), "_Z4leafv!^@0 mid^@20 main@10");
}

TEST(SourceIndexTest, FindsUnitsByLinesWhereNothingElseSays) {
  UnitWriter units({.version = 4});
  units.BeginUnit();
  units.Die(kTagCompileUnit, true, {{kAtStmtList, kFormSecOffset, 0}});
  units.Die(kTagSubprogram, false,
            {{kAtName, kFormString, 0, "f"},
             {kAtLowPc, kFormAddr, 0x1100},
             {kAtHighPc, kFormData1, 0x10}});
  units.EndChildren();
  units.EndUnit();
  ByteWriter line(Endian::kLittle);
  line.U32(0);
  line.U16(4);
  line.U32(8);  // from here to the program; all opcodes but 0 are special, of 1 byte a line
  for (const uint8_t byte : {1, 1, 1, 0, 1, 1, 0, 0}) line.U8(byte);
  line.U8(0);
  line.U8(9);
  line.U8(kLneSetAddress);
  line.U64(0x1100);
  line.U8(1);   // a row at 0x1100
  line.U8(13);  // and one at 0x110c, where the sequence ends
  line.U8(0);
  line.U8(1);
  line.U8(kLneEndSequence);
  line.PutAt<uint32_t>(0, static_cast<uint32_t>(line.size() - 4));
  const auto index = Open(DebugFileWriter().Add(units).Add(".debug_line", line.view()).Take());
  EXPECT_EQ(Frames(*index, 0x1100), "f@1");
  EXPECT_EQ(Frames(*index, 0x110b), "f@1");
  EXPECT_EQ(Frames(*index, 0x110c), "");
  EXPECT_TRUE(index->counters().values().empty());
}

TEST(SourceIndexTest, NamesComeThroughOtherUnits) {
  UnitWriter units({.version = 4});
  units.BeginUnit();
  units.Die(kTagPartialUnit, true, {});
  units.Die(kTagStructureType, true, {{kAtName, kFormString, 0, "S"}});
  const uint64_t declaration =
      units.Die(kTagSubprogram, false,
                {{kAtName, kFormString, 0, "m"}, {kAtLinkageName, kFormString, 0, "_ZN1S1mEv"}});
  units.EndChildren();
  const uint64_t abstract =
      units.Die(kTagSubprogram, false, {{kAtSpecification, kFormRef4, units.InUnit(declaration)}});
  units.EndChildren();
  units.EndUnit();
  units.BeginUnit();
  units.Die(kTagCompileUnit, true, {{kAtLowPc, kFormAddr, 0x1100}, {kAtHighPc, kFormData1, 0x10}});
  units.Die(kTagSubprogram, false,
            {{kAtAbstractOrigin, kFormRefAddr, abstract},
             {kAtLowPc, kFormAddr, 0x1100},
             {kAtHighPc, kFormData1, 0x10}});
  units.EndChildren();
  units.EndUnit();
  EXPECT_EQ(Frames(*Open(DebugFileWriter().Add(units).Take()), 0x1100), "_ZN1S1mEv!@0");
}

TEST(SourceIndexTest, NamesComeFromTheSupplementaryFile) {
  UnitWriter alt({.version = 4});
  alt.BeginUnit();
  alt.Die(kTagPartialUnit, true, {});
  const uint64_t abstract = alt.Die(kTagSubprogram, false, {{kAtName, kFormStrp, 1}});
  alt.EndChildren();
  alt.EndUnit();
  const auto alt_file =
      DebugFileWriter(ET_REL).Add(alt).Add(".debug_str", AsBytes({"\0shared\0", 8})).Take();

  UnitWriter units({.version = 4});
  units.BeginUnit();
  units.Die(kTagCompileUnit, true, {{kAtLowPc, kFormAddr, 0x1100}, {kAtHighPc, kFormData1, 0x20}});
  units.Die(kTagSubprogram, false,
            {{kAtAbstractOrigin, kFormGnuRefAlt, abstract},
             {kAtLowPc, kFormAddr, 0x1100},
             {kAtHighPc, kFormData1, 0x10}});
  units.Die(kTagSubprogram, false,
            {{kAtName, kFormGnuStrpAlt, 1},
             {kAtLowPc, kFormAddr, 0x1110},
             {kAtHighPc, kFormData1, 0x10}});
  units.EndChildren();
  units.EndUnit();
  DebugFileWriter writer;
  const std::string link("alt.debug\0\x12\x34", 12);
  writer.Add(units).Add(".gnu_debugaltlink", AsBytes(link));
  const auto file = writer.Take();

  std::string asked;
  DebugFileLoader loader;
  loader.alt_file = [&](std::string_view path, ByteView build_id) -> FileImagePtr {
    asked += std::string(path) + "/" + std::to_string(build_id.size()) + ";";
    return alt_file;
  };
  auto index = Open(file, loader);
  EXPECT_EQ(Frames(*index, 0x1100), "shared@0");
  EXPECT_EQ(Frames(*index, 0x1110), "shared@0");
  EXPECT_EQ(asked, "alt.debug/2;");

  auto alone = Open(file);
  EXPECT_EQ(Frames(*alone, 0x1100), "@0");
  EXPECT_EQ(alone->counters().Get("dwarf.missing_alt_file"), 1U);
}

TEST(SourceIndexTest, ASubprogramInsideAnotherIsNoInlinedCall) {
  UnitWriter units({.version = 4});
  units.BeginUnit();
  units.Die(kTagCompileUnit, true, {{kAtLowPc, kFormAddr, 0x1100}, {kAtHighPc, kFormData2, 0x100}});
  units.Die(kTagSubprogram, true,
            {{kAtName, kFormString, 0, "outer"},
             {kAtLowPc, kFormAddr, 0x1100},
             {kAtHighPc, kFormData1, 0x80}});
  units.Die(kTagSubprogram, false,
            {{kAtName, kFormString, 0, "nested"},
             {kAtLowPc, kFormAddr, 0x1180},
             {kAtHighPc, kFormData1, 0x80}});
  units.EndChildren();
  units.EndChildren();
  units.EndUnit();
  const auto index = Open(DebugFileWriter().Add(units).Take());
  EXPECT_EQ(Frames(*index, 0x1100), "outer@0");
  EXPECT_EQ(Frames(*index, 0x1180), "nested@0");
}

// An inlined function that has no code of its own, but holds one that has.
TEST(SourceIndexTest, KeepsInlinedFunctionsWithoutRanges) {
  UnitWriter units({.version = 4});
  units.BeginUnit();
  units.Die(kTagCompileUnit, true, {{kAtLowPc, kFormAddr, 0x1100}, {kAtHighPc, kFormData2, 0x100}});
  units.Die(kTagSubprogram, true,
            {{kAtName, kFormString, 0, "f"},
             {kAtLowPc, kFormAddr, 0x1100},
             {kAtHighPc, kFormData1, 0x80}});
  units.Die(kTagInlinedSubroutine, true,
            {{kAtName, kFormString, 0, "g"}, {kAtCallLine, kFormData1, 7}});
  units.Die(kTagInlinedSubroutine, false,
            {{kAtName, kFormString, 0, "h"},
             {kAtLowPc, kFormAddr, 0x1110},
             {kAtHighPc, kFormData1, 1},
             {kAtCallLine, kFormImplicitConst, 8}});
  for (int i = 0; i < 3; ++i) units.EndChildren();
  units.EndUnit();
  EXPECT_EQ(Frames(*Open(DebugFileWriter().Add(units).Take()), 0x1110), "h^@0 g^@8 f@7");
}

// The linker dropped `gone` and set its start to 0, where no code is.
TEST(SourceIndexTest, DroppedFunctionsHideNothing) {
  UnitWriter units({.version = 4});
  units.BeginUnit();
  units.Die(kTagCompileUnit, true, {{kAtLowPc, kFormAddr, 0x1100}, {kAtHighPc, kFormData2, 0x100}});
  units.Die(kTagSubprogram, false,
            {{kAtName, kFormString, 0, "kept"},
             {kAtLowPc, kFormAddr, 0x1100},
             {kAtHighPc, kFormData1, 0x80}});
  units.Die(kTagSubprogram, false,
            {{kAtName, kFormString, 0, "gone"},
             {kAtLowPc, kFormAddr, 0},
             {kAtHighPc, kFormData2, 0x4000}});
  units.EndChildren();
  units.EndUnit();
  EXPECT_EQ(Frames(*Open(DebugFileWriter().Add(units).Take()), 0x1100), "kept@0");
}

// Skeleton and split unit of version 5, with addresses by index.
class SplitTest : public testing::Test {
 protected:
  static constexpr uint64_t kId = 0x1122334455667788;

  SplitTest() {
    UnitWriter skeleton({.version = 5});
    skeleton.BeginUnit(kUnitSkeleton, kId);
    skeleton.Die(kTagCompileUnit, false,
                 {{kAtLowPc, kFormAddrx, 0},
                  {kAtHighPc, kFormData4, 0x100},
                  {kAtDwoName, kFormString, 0, "a.dwo"},
                  {kAtCompDir, kFormString, 0, "/build"},
                  {kAtAddrBase, kFormSecOffset, 8}});
    skeleton.EndUnit();
    ByteWriter addresses(Endian::kLittle);
    addresses.Zeros(8);
    for (const uint64_t address : {0x1100, 0x1180}) addresses.U64(address);
    main_ = DebugFileWriter().Add(skeleton).Add(".debug_addr", addresses.view()).Take();

    UnitWriter split({.version = 5});
    split.BeginUnit(kUnitSplitCompile, kId);
    split.Die(kTagCompileUnit, true, {});
    split.Die(kTagSubprogram, false,
              {{kAtName, kFormStrx1, 1}, {kAtLowPc, kFormAddrx, 0}, {kAtHighPc, kFormData1, 0x80}});
    split.Die(kTagSubprogram, false, {{kAtName, kFormStrx1, 0}, {kAtRanges, kFormRnglistx, 0}});
    split.EndChildren();
    split.EndUnit();
    DebugFileWriter writer(ET_REL);
    writer.Add(split, ".dwo").Add(".debug_str.dwo", AsBytes({"g\0f\0", 4}));
    ByteWriter offsets(Endian::kLittle);
    offsets.U32(12);  // length, version, padding; then one offset a string
    offsets.U32(5);
    offsets.U32(0);
    offsets.U32(2);
    writer.Add(".debug_str_offsets.dwo", offsets.view());
    ByteWriter lists(Endian::kLittle);
    lists.Zeros(12);  // the header, which nothing is needed from
    lists.U32(4);
    lists.U8(kRleStartxLength);
    lists.U8(1);
    lists.U8(0x20);
    lists.U8(kRleEndOfList);
    writer.Add(".debug_rnglists.dwo", lists.view());
    ByteWriter index(Endian::kLittle);
    for (const uint32_t word : {5U, 4U, 1U, 1U}) index.U32(word);  // columns, units, slots
    index.U64(kId);
    index.U32(1);
    for (const uint32_t kind : {kSectInfo, kSectAbbrev, kSectStrOffsets, kSectRnglists}) {
      index.U32(kind);
    }
    for (int i = 0; i < 4; ++i) index.U32(0);
    for (const size_t size :
         {split.info.size(), split.abbrev.size(), offsets.size(), lists.size()}) {
      index.U32(static_cast<uint32_t>(size));
    }
    writer.Add(".debug_cu_index", index.view());
    split_ = writer.Take();
  }

  DebugFileLoader Loader(const FileImagePtr& package, const FileImagePtr& dwo) {
    DebugFileLoader loader;
    loader.dwo_file = [this, package, dwo](std::string_view name, std::string_view directory) {
      asked_ += std::string(directory) + ":" + std::string(name) + ";";
      return name.empty() ? package : dwo;
    };
    return loader;
  }

  FileImagePtr main_, split_;
  std::string asked_;
};

TEST_F(SplitTest, ReadsTheDwoFile) {
  auto index = Open(main_, Loader(nullptr, split_));
  EXPECT_EQ(Frames(*index, 0x1110), "f@0");
  EXPECT_EQ(Frames(*index, 0x1190), "g@0");
  EXPECT_EQ(Frames(*index, 0x11a0), "");
  EXPECT_EQ(asked_, ":;/build:a.dwo;");
  EXPECT_TRUE(index->counters().values().empty());
}

TEST_F(SplitTest, ReadsThePackage) {
  auto index = Open(main_, Loader(split_, nullptr));
  EXPECT_EQ(Frames(*index, 0x1110), "f@0");
  EXPECT_EQ(Frames(*index, 0x1190), "g@0");
  EXPECT_EQ(asked_, ":;");
}

TEST_F(SplitTest, CountsWhatIsMissing) {
  auto index = Open(main_, Loader(nullptr, nullptr));
  EXPECT_EQ(Frames(*index, 0x1110), "");
  EXPECT_EQ(index->counters().Get("dwarf.missing_split_unit"), 1U);
  // A file that is no package, and has no unit of that id.
  auto other = Open(main_, Loader(main_, main_));
  EXPECT_EQ(Frames(*other, 0x1110), "");
  EXPECT_EQ(other->counters().Get("dwarf.bad_package"), 1U);
  EXPECT_EQ(other->counters().Get("dwarf.missing_split_unit"), 1U);
}

TEST(SourceIndexDamageTest, ACircleOfOriginsEnds) {
  UnitWriter units({.version = 4});
  units.BeginUnit();
  units.Die(kTagCompileUnit, true, {{kAtLowPc, kFormAddr, 0x1100}, {kAtHighPc, kFormData1, 0x10}});
  const uint64_t next = units.InUnit(units.info.size());
  units.Die(kTagSubprogram, false,
            {{kAtAbstractOrigin, kFormRef4, next},
             {kAtLowPc, kFormAddr, 0x1100},
             {kAtHighPc, kFormData1, 0x10}});
  units.EndChildren();
  units.EndUnit();
  EXPECT_EQ(Frames(*Open(DebugFileWriter().Add(units).Take()), 0x1100), "@0");
}

TEST(SourceIndexDamageTest, BadReferencesAreCounted) {
  UnitWriter units({.version = 4});
  units.BeginUnit();
  units.Die(kTagCompileUnit, true, {{kAtLowPc, kFormAddr, 0x1100}, {kAtHighPc, kFormData1, 0x10}});
  units.Die(kTagSubprogram, false,
            {{kAtAbstractOrigin, kFormRefAddr, 0x7fffffff},
             {kAtLowPc, kFormAddr, 0x1100},
             {kAtHighPc, kFormData1, 0x10}});
  units.EndChildren();
  units.EndUnit();
  auto index = Open(DebugFileWriter().Add(units).Take());
  EXPECT_EQ(Frames(*index, 0x1100), "@0");
  EXPECT_EQ(index->counters().Get("dwarf.bad_reference"), 1U);
}

TEST(SourceIndexDamageTest, OneBadUnitLosesNoOther) {
  UnitWriter units({.version = 4});
  units.BeginUnit();
  units.Die(kTagCompileUnit, false, {});
  units.EndUnit();
  StoreUnaligned<uint16_t>(const_cast<uint8_t*>(units.info.view().data()) + 4, 99,
                           Endian::kLittle);  // its version
  WriteMainUnit(units, 4);
  auto index = Open(DebugFileWriter().Add(units).Take());
  EXPECT_EQ(Frames(*index, 0x1120), "mid^@0 main@10");
  EXPECT_EQ(index->counters().Get("dwarf.bad_unit"), 1U);
}

// Each range list entry is written down once in a sound file; here each of 200 functions has all.
TEST(SourceIndexDamageTest, ListsThatAreUsedAgainAndAgainAreCutOff) {
  ByteWriter lists(Endian::kLittle);
  for (int i = 0; i < 500; ++i) {
    lists.U64(0x1100);
    lists.U64(0x1101);
  }
  lists.Zeros(16);
  UnitWriter units({.version = 4});
  units.BeginUnit();
  units.Die(kTagCompileUnit, true, {{kAtLowPc, kFormAddr, 0x1100}, {kAtHighPc, kFormData1, 0x10}});
  for (int i = 0; i < 200; ++i) units.Die(kTagSubprogram, false, {{kAtRanges, kFormSecOffset, 0}});
  units.EndChildren();
  units.EndUnit();
  auto index = Open(DebugFileWriter().Add(units).Add(".debug_ranges", lists.view()).Take());
  index->Find(Svma(0x1100));
  EXPECT_EQ(index->counters().Get("dwarf.bad_unit"), 1U);
}

TEST(SourceIndexDamageTest, DeepNestingIsCutOff) {
  UnitWriter units({.version = 4});
  units.BeginUnit();
  units.Die(kTagCompileUnit, true, {{kAtLowPc, kFormAddr, 0x1100}, {kAtHighPc, kFormData1, 0x10}});
  for (int i = 0; i < 5000; ++i) units.Die(kTagLexicalBlock, true, {});
  units.EndUnit();
  auto index = Open(DebugFileWriter().Add(units).Take());
  EXPECT_EQ(Frames(*index, 0x1100), "");
  EXPECT_EQ(index->counters().Get("dwarf.bad_unit"), 1U);
}

// Every byte of every debug section in turn, set to what breaks sizes and counts most.
TEST(SourceIndexDamageTest, NoByteCrashesIt) {
  UnitWriter units({.version = 5});
  WriteMainUnit(units, 5);
  const auto whole = DebugFileWriter().Add(units).Take();
  const std::vector<uint8_t> bytes(whole->bytes().begin(), whole->bytes().end());
  for (size_t at = 64; at < bytes.size(); ++at) {
    for (const uint8_t value : {uint8_t{0}, uint8_t{0x7f}, uint8_t{0x80}, uint8_t{0xff}}) {
      std::vector<uint8_t> damaged = bytes;
      damaged[at] = value;
      auto index = SourceIndex::Open(std::make_shared<MemoryImage>(std::move(damaged)), {});
      if (!index) continue;
      for (uint64_t svma = 0x10f8; svma < 0x1208; svma += 8) (*index)->Find(Svma(svma));
    }
  }
}

}  // namespace
}  // namespace stackreel::dwarf
