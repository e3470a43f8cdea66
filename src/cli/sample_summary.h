// What came of a recording, in a line.
#pragma once

#include <string>

#include "record/recorder.h"

namespace stackreel::cli {

// "790 samples of cycles, 99.9 % of 790 user stacks complete, 0 lost; 21.2 KB in perf.data"
std::string DescribeSamples(const record::RecordSummary& summary);

}  // namespace stackreel::cli
