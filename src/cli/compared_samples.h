// The frames of a recording's samples, for comparing them with another's.
#pragma once

#include <functional>
#include <memory>

#include "anonymize/collect.h"
#include "anonymize/verify.h"
#include "base/error.h"
#include "perfdata/features.h"
#include "symbolize/symbolizer.h"

namespace stackreel::cli {

// Makes what finds the binaries of a recording with these features.
using ModuleFilesFactory =
    std::function<std::unique_ptr<symbolize::ModuleFileProvider>(const perfdata::Features&)>;

// Analyses the recording on a thread of its own, a few thousand samples ahead of who asks. Frames
// have no symbols: equal offsets in equal modules have equal ones. An offset is one in the file,
// of a kernel from its symbol or start on, and elsewhere in the page. `recording` must outlive it;
// `threads` (0: all CPUs) unwind.
Result<std::unique_ptr<anonymize::ComparedSamples>> CompareSamplesOf(
    const anonymize::RereadableRecording& recording, const ModuleFilesFactory& files,
    size_t threads);

// Verifies `out` against `in`, frame by frame. `files`: for `in`; no file is looked for because an
// anonymised recording names it.
Result<anonymize::Verdict> VerifyRecordings(const anonymize::RereadableRecording& in,
                                            const anonymize::RereadableRecording& out,
                                            anonymize::VerifyOptions options,
                                            const ModuleFilesFactory& files, size_t threads);

}  // namespace stackreel::cli
