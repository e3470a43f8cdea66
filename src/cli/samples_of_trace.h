// The recording of samples that `trace --with-samples` leaves beside a trace.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyze/timed_sample.h"
#include "base/error.h"
#include "cli/command.h"
#include "views/trace_dump.h"

namespace stackreel::cli {

// Its path; kNotFound: there is none in that directory.
Result<std::string> SamplesOfTrace(const std::string& directory);

// What it says of itself; nothing if there is none.
Result<std::optional<views::TraceSamples>> DescribeSamplesOfTrace(const std::string& directory);

// All samples, in order of time, with the names of their innermost functions.
Result<std::vector<analyze::TimedSample>> ReadTimedSamples(const std::string& directory,
                                                           const GlobalOptions& global);

}  // namespace stackreel::cli
