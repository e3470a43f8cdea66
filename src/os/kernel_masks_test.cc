#include "os/kernel_masks.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace stackreel::os {
namespace {

constexpr std::string_view kFile =
    "enabled_keys: 0x1d\ninsn_mask: 0x007f000000000000\ndata_mask: 0x0070000000000000\n";

TEST(ParsePtrAuthFile, ReadsWhatTheKernelWrites) {
  const auto found = ParsePtrAuthFile(kFile);
  ASSERT_TRUE(found) << found.error().ToString();
  EXPECT_EQ(found->enabled_keys, 0x1du);
  EXPECT_EQ(found->insn_mask, 0x007f000000000000u);
  EXPECT_EQ(found->data_mask, 0x0070000000000000u);
  const auto none = ParsePtrAuthFile("enabled_keys: 0x0\ninsn_mask: 0x0\ndata_mask: 0x0\n");
  ASSERT_TRUE(none);
  EXPECT_EQ(none->enabled_keys, 0u) << "none, which is not the same as not known";
}

TEST(ParsePtrAuthFile, OtherOrderSpacesAndMoreLinesAreNoHarm) {
  EXPECT_TRUE(
      ParsePtrAuthFile("data_mask:\t0x7\nfuture: yes\ninsn_mask:   0x7\nenabled_keys: 0x1f"));
}

TEST(ParsePtrAuthFile, RefusesWhatIsNotWhole) {
  for (const size_t cut : {size_t{0}, size_t{5}, size_t{18}, size_t{19}, size_t{40}, size_t{62}}) {
    const auto found = ParsePtrAuthFile(kFile.substr(0, cut));
    ASSERT_FALSE(found) << cut;
    EXPECT_EQ(found.error().kind, ErrorKind::kDamaged);
  }
  const std::string twice = std::string(kFile) + "insn_mask: 0x1\n";
  EXPECT_FALSE(ParsePtrAuthFile(twice));
  EXPECT_FALSE(ParsePtrAuthFile("enabled_keys: 0x1f\ninsn_mask: 0x7g\ndata_mask: 0x7\n"));
  EXPECT_FALSE(ParsePtrAuthFile("enabled_keys: 31\ninsn_mask: 0x7\ndata_mask: 0x7\n"));
  EXPECT_FALSE(
      ParsePtrAuthFile("enabled_keys: 0x1f\ninsn_mask: 0x10000000000000000\ndata_mask: 0x7\n"));
}

TEST(ReadPtrAuthFile, NoSuchThread) {
  const auto found = ReadPtrAuthFile(1u << 30, 1u << 30);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind, ErrorKind::kNotFound);
}

constexpr MaskProbe kPatched = {.records_error = 0,
                                .samples_error = 0,
                                .has_codes = true,
                                .has_proc_file = true,
                                .samples_are_ours = true};

TEST(ChooseMaskRoute, RecordsFirstThenSamplesThenTheCpu) {
  MaskProbe probe = kPatched;
  EXPECT_EQ(ChooseMaskRoute(probe).route, MaskRoute::kRecords);
  EXPECT_EQ(ChooseMaskRoute(probe).why_not_better, "");
  probe.records_error = EINVAL;
  EXPECT_EQ(ChooseMaskRoute(probe).route, MaskRoute::kSamples);
  EXPECT_EQ(ChooseMaskRoute(probe).why_not_better, "no records of masks: Invalid argument");
  probe.samples_error = EINVAL;
  probe.samples_are_ours = false;
  EXPECT_EQ(ChooseMaskRoute(probe).route, MaskRoute::kCpu);
  EXPECT_EQ(ChooseMaskRoute(probe).why_not_better,
            "no records of masks: Invalid argument, no masks in samples: Invalid argument");
}

// A later kernel may mean another thing by bit 40 of the flags, and by bit 25 of sample_type.
TEST(ChooseMaskRoute, BitsThatMayMeanAnotherThingAreNotTrusted) {
  MaskProbe probe = kPatched;
  probe.has_proc_file = false;
  probe.samples_are_ours = false;
  const MaskChoice choice = ChooseMaskRoute(probe);
  EXPECT_EQ(choice.route, MaskRoute::kCpu);
  EXPECT_EQ(choice.why_not_better,
            "no /proc/PID/ptr_auth, what samples hold is not this task's mask");
}

TEST(ChooseMaskRoute, NoBetterThanAskedFor) {
  EXPECT_EQ(ChooseMaskRoute(kPatched, MaskRoute::kSamples).route, MaskRoute::kSamples);
  EXPECT_EQ(ChooseMaskRoute(kPatched, MaskRoute::kCpu).route, MaskRoute::kCpu);
  EXPECT_EQ(ChooseMaskRoute(kPatched, MaskRoute::kCpu).why_not_better, "");
  MaskProbe only_records = kPatched;
  only_records.samples_error = EINVAL;
  EXPECT_EQ(ChooseMaskRoute(only_records, MaskRoute::kSamples).route, MaskRoute::kCpu);
}

TEST(ChooseMaskRoute, NothingToChooseWhereNothingIsSigned) {
  const MaskChoice choice = ChooseMaskRoute({});
  EXPECT_EQ(choice.route, MaskRoute::kCpu);
  EXPECT_EQ(choice.why_not_better, "");
}

// On whichever machine this runs: what was found agrees with itself.
TEST(ProbeKernelMasks, ARouteThatOpensIsThisKernels) {
  const MaskProbe probe = ProbeKernelMasks();
  EXPECT_EQ(probe.has_codes, LearnPointerAuthentication().has_value());
  const auto self = static_cast<uint32_t>(getpid());
  EXPECT_EQ(probe.has_codes && probe.has_proc_file,
            probe.has_codes && ReadPtrAuthFile(self, self).has_value());
  EXPECT_FALSE(probe.samples_error != 0 && probe.samples_are_ours);
  if (const auto file = ReadPtrAuthFile(self, self); file && probe.has_codes) {
    EXPECT_EQ(file->insn_mask, LearnPointerAuthentication()->insn_mask);
    EXPECT_EQ(file->data_mask, LearnPointerAuthentication()->data_mask);
    EXPECT_EQ(file->enabled_keys.value_or(0) & kKeysOfPrctl,
              LearnPointerAuthentication()->enabled_keys);
  }
}

}  // namespace
}  // namespace stackreel::os
