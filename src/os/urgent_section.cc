#include "os/urgent_section.h"

namespace stackreel::os {

void RunBeforeOthers(pthread_t thread) {
  const sched_param least = {.sched_priority = 1};
  (void)pthread_setschedparam(thread, SCHED_FIFO | SCHED_RESET_ON_FORK, &least);
}

// As of sched(7) policies are of threads, and 0 is the calling one.
UrgentSection::UrgentSection() {
  const int policy = sched_getscheduler(0);
  const int kind = policy & ~SCHED_RESET_ON_FORK;
  // Who runs before others already stays as it is.
  if (kind != SCHED_OTHER && kind != SCHED_BATCH && kind != SCHED_IDLE) return;
  if (sched_getparam(0, &parameters_) != 0) return;
  policy_ = policy;
  RunBeforeOthers(pthread_self());
}

UrgentSection::~UrgentSection() {
  if (policy_ < 0 || sched_setscheduler(0, policy_, &parameters_) == 0) return;
  // Who may take a policy (RLIMIT_RTPRIO) need not be one who may have children inherit it again.
  (void)sched_setscheduler(0, policy_ | SCHED_RESET_ON_FORK, &parameters_);
}

}  // namespace stackreel::os
