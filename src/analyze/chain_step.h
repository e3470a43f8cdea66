// Unwinds the samples of a recording on their way: what goes in with registers and a dumped stack
// comes out with a callchain. For who writes a recording of a recording.
#pragma once

#include <memory>

#include "anonymize/anonymize.h"
#include "base/io.h"
#include "perfdata/attr.h"
#include "perfdata/sorter.h"
#include "symbolize/symbolizer.h"

namespace stackreel::analyze {

// Whether an event's samples have what is needed.
bool HasDumpedStack(const perfdata::Attr& attr);

// Null if no event's samples have. All that is referred to must outlive the step; `files` gives the
// binaries of the recording, and `executor` does the work. Samples come out in the order in which
// they went in, the other records at their places among them; a sample that cannot be decoded is
// passed on as it is. The STACK_ENDS feature tells how the stacks ended.
std::unique_ptr<anonymize::RecordStep> MakeChainStep(const anonymize::RecordingHead& head,
                                                     perfdata::TimedSink& next,
                                                     symbolize::ModuleFileProvider& files,
                                                     Executor& executor);

}  // namespace stackreel::analyze
