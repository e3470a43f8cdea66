// Running before all other threads for a moment.
#pragma once

#include <pthread.h>
#include <sched.h>

namespace stackreel::os {

// Lets a thread run before all that are not of a real-time policy, from now on, where the kernel
// allows it (CAP_SYS_NICE): while a process is held nobody but it should wait. What it starts does
// not inherit it. Elsewhere nothing happens.
void RunBeforeOthers(pthread_t thread);

// The same of the calling thread while it lives.
class UrgentSection {
 public:
  UrgentSection();
  ~UrgentSection();
  UrgentSection(const UrgentSection&) = delete;
  UrgentSection& operator=(const UrgentSection&) = delete;

 private:
  int policy_ = -1;  // what it was before; -1: it has not been changed
  sched_param parameters_ = {};
};

}  // namespace stackreel::os
