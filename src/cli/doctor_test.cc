#include "cli/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

namespace stackreel::cli {
namespace {

MachineFacts GoodMachine() {
  MachineFacts facts;
  facts.kernel_release = "6.1.0";
  facts.machine = "x86_64";
  facts.is_root = true;
  facts.perf_event_paranoid = 2;
  facts.kptr_restrict = 0;
  facts.max_sample_rate = 100000;
  facts.mlock_kb = 516;
  facts.build_id_records = true;
  facts.tracefs_readable = true;
  facts.open_files_limit = 65536;
  facts.cpus = 8;
  facts.buildid_dir = "/home/u/.debug";
  facts.buildid_dir_writable = true;
  facts.ptrace_scope = 0;
  facts.tracing.counter = {.is_invariant = true, .is_kernel_clock = true, .kernel_clock = "tsc"};
  facts.tracing.can_sync_cores = true;
  facts.tracing.can_deny_write_execute = true;
  return facts;
}

const Check& Find(const std::vector<Check>& checks, const std::string& name) {
  for (const Check& check : checks) {
    if (check.name == name) return check;
  }
  static const Check kNone;
  ADD_FAILURE() << "no check " << name;
  return kNone;
}

TEST(DoctorTest, AGoodMachineHasNothingToCure) {
  for (const Check& check : Diagnose(GoodMachine())) {
    EXPECT_EQ(check.state, CheckState::kOk) << check.name;
    EXPECT_TRUE(check.cures.empty()) << check.name;
  }
}

TEST(DoctorTest, Arm64TellsOfPointerAuthentication) {
  MachineFacts facts = GoodMachine();
  facts.machine = "aarch64";
  EXPECT_EQ(Find(Diagnose(facts), "kernel").state, CheckState::kOk);
  EXPECT_EQ(Find(Diagnose(facts), "pointer authentication").found, "this CPU or kernel has none");
  facts.pointer_authentication = os::PointerAuthentication{
      .enabled_keys = 0x5, .insn_mask = 0x007f000000000000, .data_mask = 0x007f000000000000};
  EXPECT_EQ(Find(Diagnose(facts), "pointer authentication").found,
            "48-bit addresses, mask 0x007f000000000000, keys IA DA");
  facts.pointer_authentication->enabled_keys.reset();
  EXPECT_THAT(Find(Diagnose(facts), "pointer authentication").found,
              ::testing::EndsWith("keys not told by this kernel"));
}

TEST(DoctorTest, Arm64TellsHowMasksComeIntoRecordings) {
  constexpr const char* kName = "masks in recordings";
  MachineFacts facts = GoodMachine();
  facts.machine = "aarch64";
  for (const Check& check : Diagnose(facts)) EXPECT_NE(check.name, kName) << "nothing is signed";
  facts.pointer_authentication = os::PointerAuthentication{
      .enabled_keys = 0x1f, .insn_mask = 0x007f000000000000, .data_mask = 0x007f000000000000};
  facts.masks = {.records_error = EINVAL,
                 .samples_error = EINVAL,
                 .has_codes = true,
                 .has_proc_file = false,
                 .samples_are_ours = false};
  EXPECT_EQ(Find(Diagnose(facts), kName).state, CheckState::kOk);
  EXPECT_EQ(Find(Diagnose(facts), kName).found,
            "asked of the CPU (no records of masks: Invalid argument, no masks in samples: Invalid "
            "argument)");
  facts.masks.samples_error = 0;
  facts.masks.samples_are_ours = true;
  EXPECT_EQ(Find(Diagnose(facts), kName).found,
            "in each sample (no records of masks: Invalid argument)");
  facts.masks.records_error = 0;
  facts.masks.has_proc_file = true;
  EXPECT_EQ(Find(Diagnose(facts), kName).found, "sent by the kernel when they change");
}

TEST(DoctorTest, YamaLetsUsersTraceWhatTheyStart) {
  MachineFacts facts = GoodMachine();
  facts.ptrace_scope = 1;
  EXPECT_EQ(Find(Diagnose(facts), "trace: running programs").state, CheckState::kOk) << "as root";
  facts.is_root = false;
  const std::vector<Check> checks = Diagnose(facts);
  const Check& check = Find(checks, "trace: running programs");
  EXPECT_EQ(check.state, CheckState::kLimited);
  EXPECT_EQ(check.found, "kernel.yama.ptrace_scope is 1");
  EXPECT_THAT(check.cures.front(), ::testing::HasSubstr("stackreel trace --"));
}

TEST(DoctorTest, TracingNeedsPtraceCodeAndMemory) {
  MachineFacts facts = GoodMachine();
  facts.tracing.ptrace_error = EPERM;
  facts.tracing.code_write_error = EIO;
  facts.tracing.memfd_error = EACCES;
  const std::vector<Check> checks = Diagnose(facts);
  for (const char* name :
       {"trace: running programs", "trace: change code", "trace: shared buffer (memfd)"}) {
    EXPECT_EQ(Find(checks, name).state, CheckState::kLimited) << name;
    EXPECT_FALSE(Find(checks, name).cures.empty()) << name;
  }
}

TEST(DoctorTest, ACounterThatTheKernelTrustsWillDo) {
  MachineFacts facts = GoodMachine();
  facts.tracing.counter.is_invariant = false;
  EXPECT_EQ(Find(Diagnose(facts), "trace: clock (invariant TSC)").state, CheckState::kOk);
  facts.tracing.counter = {.kernel_clock = "hpet"};
  const std::vector<Check> checks = Diagnose(facts);
  const Check& check = Find(checks, "trace: clock (invariant TSC)");
  EXPECT_EQ(check.state, CheckState::kLimited);
  EXPECT_EQ(check.found, "no: the kernel keeps its time by hpet");
  EXPECT_THAT(check.effect, ::testing::HasSubstr("from the kernel"));
}

TEST(DoctorTest, OtherMachinesCannotRecord) {
  MachineFacts facts = GoodMachine();
  facts.machine = "riscv64";
  EXPECT_EQ(Find(Diagnose(facts), "kernel").state, CheckState::kMissing);
}

TEST(DoctorTest, ParanoidTellsValueReadValueNeededAndTheSmallestCureFirst) {
  MachineFacts facts = GoodMachine();
  facts.is_root = false;
  facts.perf_event_paranoid = 2;
  facts.kernel_error = EACCES;
  const std::vector<Check> checks = Diagnose(facts);
  const Check& check = Find(checks, "kernel part of call chains");
  EXPECT_EQ(check.state, CheckState::kLimited);
  EXPECT_THAT(check.effect, ::testing::HasSubstr("is 2, 1 or less is needed"));
  ASSERT_FALSE(check.cures.empty());
  EXPECT_THAT(check.cures.front(), ::testing::HasSubstr(":u"));
}

TEST(DoctorTest, Paranoid4StopsEverything) {
  MachineFacts facts = GoodMachine();
  facts.is_root = false;
  facts.perf_event_paranoid = 4;
  facts.cpu_clock_error = EACCES;
  const std::vector<Check> checks = Diagnose(facts);
  const Check& check = Find(checks, "record your own programs");
  EXPECT_EQ(check.state, CheckState::kMissing);
  EXPECT_TRUE(check.essential);
  EXPECT_THAT(check.effect, ::testing::HasSubstr("is 4, 2 or less"));
}

TEST(DoctorTest, RefusedThoughAllowedPointsAtSeccomp) {
  MachineFacts facts = GoodMachine();
  facts.cpu_clock_error = EPERM;
  const std::vector<Check> checks = Diagnose(facts);
  EXPECT_THAT(Find(checks, "record your own programs").effect, ::testing::HasSubstr("seccomp"));
}

TEST(DoctorTest, AKernelWithoutPerfEventsIsNamed) {
  MachineFacts facts = GoodMachine();
  facts.perf_event_paranoid.reset();
  facts.cpu_clock_error = ENOSYS;
  const std::vector<Check> checks = Diagnose(facts);
  EXPECT_THAT(Find(checks, "record your own programs").effect,
              ::testing::HasSubstr("CONFIG_PERF_EVENTS"));
}

TEST(DoctorTest, NoHardwareCounterIsALimitNotAFailure) {
  MachineFacts facts = GoodMachine();
  facts.cycles_error = ENOENT;
  const std::vector<Check> checks = Diagnose(facts);
  const Check& check = Find(checks, "hardware counter (cycles)");
  EXPECT_EQ(check.state, CheckState::kLimited);
  EXPECT_THAT(check.effect, ::testing::HasSubstr("cpu-clock"));
}

}  // namespace
}  // namespace stackreel::cli
