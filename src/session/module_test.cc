#include "session/module.h"

#include <gtest/gtest.h>

namespace stackreel::session {
namespace {

ModuleKind KindOf(std::string_view name, bool executable = true, uint32_t flags = 2) {
  return ClassifyMapping(name, 42, executable, flags).key.kind;
}

TEST(ClassifyMappingTest, KindsFollowTheName) {
  EXPECT_EQ(KindOf("/usr/bin/true"), ModuleKind::kFile);
  EXPECT_EQ(KindOf("[vdso]"), ModuleKind::kVdso);
  EXPECT_EQ(KindOf("[vsyscall]"), ModuleKind::kVsyscall);
  EXPECT_EQ(KindOf("[uprobes]"), ModuleKind::kAnonymous);
  EXPECT_EQ(KindOf("anon_inode:[perf_event]", false), ModuleKind::kAnonymous);
  for (const char* name :
       {"//anon", "[heap]", "[stack]", "[stack:77]", "/dev/zero", "/anon_hugepage", "/SYSV0000"}) {
    EXPECT_EQ(KindOf(name, true), ModuleKind::kJit) << name;
    EXPECT_EQ(KindOf(name, false), ModuleKind::kAnonymous) << name;
  }
}

TEST(ClassifyMappingTest, HugePagesHaveNoFile) {
  constexpr uint32_t kMapHugetlb = 0x40000;
  EXPECT_EQ(KindOf("/dev/hugepages/x", true, kMapHugetlb), ModuleKind::kJit);
}

TEST(ClassifyMappingTest, JitMemoryIsNamedByItsPerfMap) {
  EXPECT_EQ(ClassifyMapping(kAgentMapping, 42, true, 2).key.kind, ModuleKind::kAnonymous);
  const ModuleName name = ClassifyMapping("//anon", 42, true, 2);
  EXPECT_EQ(name.key.path, "/tmp/perf-42.map");
  EXPECT_EQ(name.key.pid, 42U);
}

TEST(ClassifyMappingTest, DeletedFilesAreTold) {
  const ModuleName file = ClassifyMapping("/lib/libc.so.6 (deleted)", 42, true, 2);
  EXPECT_TRUE(file.deleted);
  EXPECT_EQ(file.key.path, "/lib/libc.so.6");
  const ModuleName memfd = ClassifyMapping("/memfd:doublemapper (deleted)", 42, true, 1);
  EXPECT_EQ(memfd.key.kind, ModuleKind::kJit);
  EXPECT_EQ(memfd.key.path, "/memfd:doublemapper");
  EXPECT_TRUE(memfd.deleted);
  Module module;
  module.key = file.key;
  module.deleted = true;
  EXPECT_EQ(module.name(), "/lib/libc.so.6 (deleted)");
}

// As lld lays out a file: text and data with different vaddr - offset, neither at a page's start.
const std::vector<LoadSegment> kSegments = {
    {.offset = 0, .file_size = 0x6f8, .vaddr = 0x200000, .mem_size = 0x6f8, .executable = false},
    {.offset = 0x6f8, .file_size = 0x1f0, .vaddr = 0x2016f8, .mem_size = 0x1f0, .executable = true},
    {.offset = 0x8e8,
     .file_size = 0x218,
     .vaddr = 0x2028e8,
     .mem_size = 0x718,
     .executable = false},
};

TEST(SegmentOfMappingTest, OfSeveralInOnePageTheOneWithTheRightProtection) {
  // All three begin in page 0 of the file, and each is mapped from there.
  EXPECT_EQ(SegmentOfMapping(kSegments, FileOffset(0), 0x1000, true)->vaddr, 0x2016f8U);
  EXPECT_EQ(SegmentOfMapping(kSegments, FileOffset(0), 0x1000, false)->vaddr, 0x200000U);
}

TEST(DataSegmentAtTest, OfTwoInOnePageTheOneThatHasTheByte) {
  const std::vector<LoadSegment> segments = {
      {.offset = 0x1000, .file_size = 0x900, .vaddr = 0x1000, .executable = true},
      {.offset = 0x2000, .file_size = 0x160, .vaddr = 0x2000},
      {.offset = 0x2dd0, .file_size = 0x288, .vaddr = 0x3dd0},
  };
  EXPECT_EQ(DataSegmentAt(segments, FileOffset(0x2004))->vaddr, 0x2000U);
  EXPECT_EQ(DataSegmentAt(segments, FileOffset(0x2de0))->vaddr, 0x3dd0U);
  EXPECT_EQ(DataSegmentAt(segments, FileOffset(0x2200)), nullptr) << "padding";
  EXPECT_EQ(DataSegmentAt(segments, FileOffset(0x1800)), nullptr) << "code";
}

TEST(SegmentOfMappingTest, MostOverlapWins) {
  const std::vector<LoadSegment> two = {
      {.offset = 0, .file_size = 0x3000, .vaddr = 0x400000, .mem_size = 0x3000, .executable = true},
      {.offset = 0x3000,
       .file_size = 0x9000,
       .vaddr = 0x504000,
       .mem_size = 0x9000,
       .executable = true},
  };
  EXPECT_EQ(SegmentOfMapping(two, FileOffset(0x2000), 0x8000, true)->vaddr, 0x504000U);
  EXPECT_EQ(SegmentOfMapping(two, FileOffset(0), 0x3800, true)->vaddr, 0x400000U);
}

TEST(SegmentOfMappingTest, NothingOverlaps) {
  EXPECT_EQ(SegmentOfMapping(kSegments, FileOffset(0x5000), 0x1000, true), nullptr);
  EXPECT_EQ(SegmentOfMapping({}, FileOffset(0), 0x1000, true), nullptr);
  const std::vector<LoadSegment> wild = {
      {.offset = UINT64_MAX - 1, .file_size = UINT64_MAX, .vaddr = 1, .executable = true}};
  EXPECT_EQ(SegmentOfMapping(wild, FileOffset(0), 0x1000, true), nullptr);
  EXPECT_NE(SegmentOfMapping(wild, FileOffset(UINT64_MAX - 8), UINT64_MAX, true), nullptr);
}

}  // namespace
}  // namespace stackreel::session
