#include "os/perf_refusal.h"

#include <errno.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stackreel::os {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

OpenRefusal Refusal(int error) {
  OpenRefusal r;
  r.error = error;
  r.attr.type = perfdata::kTypeHardware;
  r.attr.flags = perfdata::kAttrFreq;
  r.attr.sample_period_or_freq = 997;
  r.paranoid = 2;
  r.max_sample_rate = 100000;
  r.max_stack = 127;
  r.descriptors = 1024;
  return r;
}

TEST(OpenRefusal, ParanoidSaysValueNeedAndTheSmallestCureFirst) {
  const Error error = ExplainOpenRefusal(Refusal(EACCES));
  EXPECT_EQ(error.kind, ErrorKind::kPermission);
  EXPECT_THAT(error.message, HasSubstr("perf_event_paranoid is 2, and 1 or less is needed"));
  EXPECT_THAT(error.cure, StartsWith("record user space only: -e cycles:u\n"));
  EXPECT_THAT(error.cure, HasSubstr("cap_perfmon"));
  EXPECT_THAT(error.cure, HasSubstr("sysctl kernel.perf_event_paranoid=1"));
}

TEST(OpenRefusal, UserSpaceOnlyTakesTheKernelOut) {
  OpenRefusal r = Refusal(EACCES);
  r.attr.flags |= perfdata::kAttrExcludeUser;  // cycles:k
  EXPECT_THAT(ExplainOpenRefusal(r).cure, StartsWith("record user space only: -e cycles:u\n"));
}

TEST(OpenRefusal, UserSpaceOnlyIsNoCureWhereNothingIsAllowed) {
  OpenRefusal r = Refusal(EACCES);
  r.paranoid = 3;  // Debian's
  EXPECT_THAT(ExplainOpenRefusal(r).cure, Not(HasSubstr(":u")));
  r.attr.flags |= perfdata::kAttrExcludeKernel;
  EXPECT_THAT(ExplainOpenRefusal(r).message, HasSubstr("is 3, and 2 or less is needed"));
}

TEST(OpenRefusal, AnUnusualClockIsNamed) {
  OpenRefusal r = Refusal(EINVAL);
  EXPECT_THAT(ExplainOpenRefusal(r).message, Not(HasSubstr("clock 99")));
  r.attr.flags |= perfdata::kAttrUseClockid;
  r.attr.clockid = 99;
  EXPECT_THAT(ExplainOpenRefusal(r).message, HasSubstr("with clock 99"));
}

TEST(OpenRefusal, LevelsFollowWhatIsAsked) {
  perfdata::Attr attr;
  EXPECT_EQ(ParanoidLevelFor(attr, -1), 0);
  EXPECT_EQ(ParanoidLevelFor(attr, 5), 1);
  attr.flags = perfdata::kAttrExcludeKernel;
  EXPECT_EQ(ParanoidLevelFor(attr, 5), 2);
  EXPECT_EQ(ParanoidLevelFor(attr, -1), 0);
  attr.type = perfdata::kTypeTracepoint;
  attr.sample_type = perfdata::kSampleRaw;
  EXPECT_EQ(ParanoidLevelFor(attr, 5), -1);
}

TEST(OpenRefusal, ContainersAndOtherPeoplesProcesses) {
  OpenRefusal r = Refusal(EPERM);
  r.paranoid = 1;
  r.filtered = true;
  EXPECT_THAT(ExplainOpenRefusal(r).message, HasSubstr("seccomp"));
  EXPECT_THAT(ExplainOpenRefusal(r).cure, HasSubstr("--cap-add PERFMON"));
  r.filtered = false;
  r.pid = 77;
  EXPECT_THAT(ExplainOpenRefusal(r).message, HasSubstr("process 77: it belongs to another user"));
  r.privileged = r.may_trace_any = true;
  EXPECT_THAT(ExplainOpenRefusal(r).message, HasSubstr("lockdown"));
}

TEST(OpenRefusal, EveryOtherCauseIsNamed) {
  EXPECT_THAT(ExplainOpenRefusal(Refusal(ENOENT)).cure, HasSubstr("-e cpu-clock"));
  EXPECT_EQ(ExplainOpenRefusal(Refusal(ESRCH)).kind, ErrorKind::kNotFound);
  EXPECT_THAT(ExplainOpenRefusal(Refusal(EMFILE)).message, HasSubstr("limit is 1024"));
  EXPECT_THAT(ExplainOpenRefusal(Refusal(ENFILE)).cure, HasSubstr("fs.file-max"));
  EXPECT_THAT(ExplainOpenRefusal(Refusal(ENOSYS)).message, HasSubstr("CONFIG_PERF_EVENTS"));
  EXPECT_THAT(ExplainOpenRefusal(Refusal(EBUSY)).message, HasSubstr("taken"));
  EXPECT_THAT(ExplainOpenRefusal(Refusal(EIO)).message, HasSubstr("cannot open event cycles"));
  OpenRefusal fast = Refusal(EINVAL);
  fast.attr.sample_period_or_freq = 200'000;
  EXPECT_THAT(ExplainOpenRefusal(fast).message, HasSubstr("max_sample_rate is 100000"));
  OpenRefusal branches = Refusal(EOPNOTSUPP);
  branches.attr.type = perfdata::kTypeSoftware;
  branches.attr.sample_type = perfdata::kSampleBranchStack;
  EXPECT_THAT(ExplainOpenRefusal(branches).message, HasSubstr("no branch records"));
}

}  // namespace
}  // namespace stackreel::os
