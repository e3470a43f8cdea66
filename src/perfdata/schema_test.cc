#include "perfdata/schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "perfdata/kernel_record_layout.h"
#include "perfdata/layout.h"

namespace stackreel::perfdata {
namespace {

Sensitivity ClassOf(const std::string& structure, const std::string& field) {
  for (const SchemaRow& row : SchemaRows()) {
    if (row.structure == structure && row.field.name == field) return row.field.sensitivity;
  }
  ADD_FAILURE() << "no " << structure << "." << field;
  return Sensitivity::kNone;
}

TEST(Schema, ListsEveryStructure) {
  std::map<std::string, int> fields;
  for (const SchemaRow& row : SchemaRows()) ++fields[row.structure];
  EXPECT_EQ(fields["MMAP2"], 13);  // both sides of its union
  EXPECT_EQ(fields["SAMPLE"], 32);
  EXPECT_EQ(fields["attr"], 24);
  EXPECT_EQ(fields["sample_id"], 8);
  EXPECT_EQ(fields["feature HOSTNAME"], 1);
  EXPECT_GT(fields["feature EVENT_DESC"], 2);
  EXPECT_GT(fields["feature BPF_PROG_INFO"], 2);
}

TEST(Schema, ClassesAreThoseOfTheAnonymisingRules) {
  EXPECT_EQ(ClassOf("SAMPLE", "ip"), Sensitivity::kCodeAddress);
  EXPECT_EQ(ClassOf("SAMPLE", "callchain"), Sensitivity::kCodeAddress);
  EXPECT_EQ(ClassOf("SAMPLE", "branches"), Sensitivity::kCodeAddress);
  EXPECT_EQ(ClassOf("SAMPLE", "addr"), Sensitivity::kDataAddress);
  EXPECT_EQ(ClassOf("SAMPLE", "phys_addr"), Sensitivity::kPhysicalAddress);
  EXPECT_EQ(ClassOf("SAMPLE", "stack_user"), Sensitivity::kPayload);
  EXPECT_EQ(ClassOf("SAMPLE", "regs_user"), Sensitivity::kRegisters);
  EXPECT_EQ(ClassOf("MMAP", "pgoff"), Sensitivity::kMapOffset);
  EXPECT_EQ(ClassOf("KSYMBOL", "addr"), Sensitivity::kKernelAddress);
  EXPECT_EQ(ClassOf("TEXT_POKE", "new_bytes"), Sensitivity::kPayload);
  EXPECT_EQ(ClassOf("CALLCHAIN_DEFERRED", "ips"), Sensitivity::kCodeAddress);
  EXPECT_EQ(ClassOf("PTR_AUTH", "tid"), Sensitivity::kPid);
  EXPECT_EQ(ClassOf("PTR_AUTH", "insn_mask"), Sensitivity::kNone);
  EXPECT_EQ(ClassOf("SAMPLE", "arch_insn_mask"), Sensitivity::kNone);
  EXPECT_EQ(ClassOf("attr", "config1"), Sensitivity::kEventConfig);
  EXPECT_EQ(ClassOf("feature CMDLINE", "words"), Sensitivity::kCommandLine);
  EXPECT_EQ(ClassOf("feature TRACING_DATA", "bytes"), Sensitivity::kPayload);
  EXPECT_EQ(ClassOf("feature EVENT_DESC", "name"), Sensitivity::kEventName);
  EXPECT_EQ(ClassOf("feature BUILD_ID", "filename"), Sensitivity::kPath);
  EXPECT_EQ(ClassOf("COMM", "comm"), Sensitivity::kComm);
  EXPECT_EQ(ClassOf("THREAD_MAP", "comm"), Sensitivity::kComm);
  EXPECT_EQ(ClassOf("KSYMBOL", "name"), Sensitivity::kSymbol);
  EXPECT_EQ(ClassOf("CGROUP", "path"), Sensitivity::kCgroupPath);
  EXPECT_EQ(ClassOf("feature HOSTNAME", "text"), Sensitivity::kHostName);
  EXPECT_EQ(ClassOf("feature OSRELEASE", "text"), Sensitivity::kRelease);
  EXPECT_EQ(ClassOf("feature ARCH", "text"), Sensitivity::kNone);
  EXPECT_EQ(ClassOf("feature CPUID", "text"), Sensitivity::kMachine);
  EXPECT_EQ(ClassOf("feature CLOCK_DATA", "wall_clock_ns"), Sensitivity::kWallTime);
  EXPECT_EQ(ClassOf("TIME_CONV", "zero"), Sensitivity::kCycles);
}

TEST(Schema, EveryClassHasAName) {
  for (const SchemaRow& row : SchemaRows()) {
    EXPECT_FALSE(SensitivityName(row.field.sensitivity).empty()) << row.structure;
    EXPECT_FALSE(row.field.name.empty()) << row.structure;
  }
}

// What makes a forgotten member an error of the compiler.
struct Three {
  int a = 0;
  std::string b;
  std::vector<std::array<uint8_t, 4>> c;
};
static_assert(internal::MemberCount<Three>() == 3);
static_assert(internal::MemberCount<Mmap2>() == 13);

TEST(VisitFields, ReachesWhatARecordHasAndMayChangeIt) {
  Mmap2 mmap{1, 2, 3, 4, 5, 6, 7, 8, 9, {}, 1, 2, "/home/me/prog"};
  std::vector<std::string> names;
  VisitFields(mmap, WireScope(), [&]<typename M>(const FieldInfo& info, M& value) {
    names.emplace_back(info.name);
    if constexpr (std::same_as<M, std::string>) value = "x";
    if constexpr (std::same_as<M, uint32_t>) {
      if (info.sensitivity == Sensitivity::kPid) value += 100;
    }
  });
  EXPECT_EQ(mmap.filename, "x");
  EXPECT_EQ(mmap.pid, 101u);
  EXPECT_EQ(mmap.maj, 6u);
  EXPECT_THAT(names, ::testing::ElementsAre("pid", "tid", "addr", "len", "pgoff", "maj", "min",
                                            "ino", "ino_generation", "prot", "flags", "filename"));
}

}  // namespace
}  // namespace stackreel::perfdata
