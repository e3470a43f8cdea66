#include "os/proc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

namespace stackreel::os {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ProcMaps, ParsesEveryKindOfLine) {
  const auto maps = ParseProcMaps(
      "55d0c0a00000-55d0c0a01000 r-xp 00002000 fe:01 1234567                    /usr/bin/cat\n"
      "7f0000000000-7f0000001000 rw-s 00000000 00:05 12                         /dev/zero "
      "(deleted)\n"
      "7f0000001000-7f0000002000 ---p 00000000 00:00 0 \n"
      "7f0000002000-7f0000003000 r--p 00000000 00:00 0                          [vdso]\n"
      "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n");
  ASSERT_EQ(maps.size(), 5u);
  EXPECT_EQ(maps[0].start, 0x55d0c0a00000u);
  EXPECT_EQ(maps[0].end, 0x55d0c0a01000u);
  EXPECT_EQ(maps[0].prot, static_cast<uint32_t>(PROT_READ | PROT_EXEC));
  EXPECT_EQ(maps[0].flags, static_cast<uint32_t>(MAP_PRIVATE));
  EXPECT_EQ(maps[0].offset, 0x2000u);
  EXPECT_EQ(maps[0].maj, 0xfeu);
  EXPECT_EQ(maps[0].min, 1u);
  EXPECT_EQ(maps[0].ino, 1234567u);
  EXPECT_EQ(maps[0].path, "/usr/bin/cat");
  EXPECT_EQ(maps[1].flags, static_cast<uint32_t>(MAP_SHARED));
  EXPECT_EQ(maps[1].path, "/dev/zero (deleted)");
  EXPECT_EQ(maps[2].prot, 0u);
  EXPECT_EQ(maps[2].path, "");
  EXPECT_EQ(maps[4].end, 0xffffffffff601000u);
}

TEST(ProcMaps, PathsMayHoldSpacesAndEscapedNewlines) {
  const auto maps = ParseProcMaps("1000-2000 r-xp 00000000 00:01 5  /tmp/a b\\012c\\134\n");
  ASSERT_EQ(maps.size(), 1u);
  EXPECT_EQ(maps[0].path, "/tmp/a b\nc\\134");  // only newlines are escaped by the kernel
}

TEST(ProcMaps, BadLinesAreLeftOut) {
  EXPECT_TRUE(ParseProcMaps("").empty());
  EXPECT_TRUE(ParseProcMaps("\n\n").empty());
  EXPECT_TRUE(ParseProcMaps("1000-2000").empty());
  EXPECT_TRUE(ParseProcMaps("1000-2000 r-x").empty());
  EXPECT_TRUE(ParseProcMaps("2000-1000 r-xp 00000000 00:01 5 /a\n").empty());
  EXPECT_TRUE(ParseProcMaps("10000000000000000-2 r-xp 00000000 00:01 5 /a\n").empty());
  EXPECT_EQ(ParseProcMaps("x\n1000-2000 r-xp 00000000 00:01 5 /a").size(), 1u);
}

TEST(Proc, KnowsThisProcess) {
  const auto pid = static_cast<uint32_t>(getpid());
  EXPECT_THAT(ListProcesses(), Contains(pid));
  EXPECT_THAT(ListThreads(pid), Contains(pid));
  const auto status = ReadProcStatus(pid, pid);
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(status->tgid, pid);
  EXPECT_EQ(status->ppid, static_cast<uint32_t>(getppid()));
  EXPECT_EQ(status->comm, "os_test");
  const auto maps = ReadProcMaps(pid);
  ASSERT_TRUE(maps.has_value());
  const auto here = reinterpret_cast<uint64_t>(&ListThreads);
  EXPECT_TRUE(std::ranges::any_of(*maps, [here](const ProcMapping& m) {
    return m.start <= here && here < m.end && (m.prot & PROT_EXEC) != 0;
  }));
}

TEST(Proc, AProcessThatIsGoneIsNotFound) {
  const uint32_t nobody = 1u << 30;
  EXPECT_EQ(ReadProcStatus(nobody, nobody).error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(ReadProcMaps(nobody).error().kind, ErrorKind::kNotFound);
  EXPECT_TRUE(ListThreads(nobody).empty());
}

TEST(CpuList, ParsesListsAndRanges) {
  EXPECT_THAT(*ParseCpuList("0-3,8"), ElementsAre(0, 1, 2, 3, 8));
  EXPECT_THAT(*ParseCpuList("5,0-1,1\n"), ElementsAre(0, 1, 5));
  EXPECT_THAT(*ParseCpuList("7"), ElementsAre(7));
}

TEST(CpuList, RefusesWhatIsNone) {
  for (const char* text : {"", "a", "1-", "-1", "3-1", "1,", "1,,2", "1 2", "0-4000000000"}) {
    const auto result = ParseCpuList(text);
    ASSERT_FALSE(result.has_value()) << text;
    EXPECT_EQ(result.error().kind, ErrorKind::kUsage) << text;
    EXPECT_THAT(result.error().message, HasSubstr("0-3,8")) << text;
  }
}

TEST(Cpus, AtLeastOneIsOnlineAndOurs) {
  ASSERT_TRUE(OnlineCpus().has_value());
  EXPECT_FALSE(OnlineCpus()->empty());
  EXPECT_GE(AvailableCpuCount(), 1u);
  EXPECT_GE(ConfiguredCpuCount(), OnlineCpus()->size());
}

TEST(Proc, NumberFiles) {
  EXPECT_TRUE(ReadNumberFile("/proc/sys/kernel/pid_max").has_value());
  EXPECT_FALSE(ReadNumberFile("/proc/version").has_value());
  EXPECT_FALSE(ReadNumberFile("/nowhere").has_value());
}

TEST(Proc, MemoryOfAProcess) {
  const uint64_t value = 0x1122334455667788;
  const auto self = static_cast<uint32_t>(getpid());
  const auto read = ReadProcessMemory(self, reinterpret_cast<uint64_t>(&value), sizeof value);
  ASSERT_TRUE(read);
  EXPECT_EQ(std::memcmp(read->data(), &value, sizeof value), 0);
  EXPECT_EQ(ReadProcessMemory(self, 0x10, 8).error().kind, ErrorKind::kIo);
  EXPECT_EQ(ReadProcessMemory(0x7ffffffe, 0x10, 8).error().kind, ErrorKind::kNotFound);
}

TEST(Vdso, IsAnElfFile) {
  const auto vdso = ReadOwnVdso();
  ASSERT_GE(vdso.size(), 4096u);
  EXPECT_EQ(vdso[0], 0x7f);
  EXPECT_EQ(vdso[1], 'E');
}

TEST(FormatCpuList, JoinsNeighbours) {
  EXPECT_EQ(FormatCpuList({}), "");
  EXPECT_EQ(FormatCpuList({3}), "3");
  EXPECT_EQ(FormatCpuList({0, 1, 2, 8, 10, 11}), "0-2,8,10-11");
}

}  // namespace
}  // namespace stackreel::os
