// How the kernel provides memory.
#pragma once

#include "base/page_advice.h"

namespace stackreel::os {

// madvise(2): pages that will be written are made at once, large ones where there are such; those
// of mapped files that will be read are mapped at once. A kernel without the advice leaves both to
// page faults.
PageAdvice KernelPageAdvice();

// Has malloc take its memory, also for large blocks, from one stretch for which the kernel is asked
// for large pages. A run that reads a recording once is short, so that page faults of small pages
// can take a third of its time. For main, before there is a second thread; where there is another
// malloc (a sanitizer's), it does nothing.
void PrepareHeap();

}  // namespace stackreel::os
