// What report's -g says, in perf's words too.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "views/text_report.h"

namespace stackreel::cli {

struct CallGraphChoice {
  std::optional<views::CallGraph> order;  // not given: as is usual
  std::optional<double> limit;            // percent, below which branches are left out
};

// "caller", "graph,0.5,callee", "none": words with commas, in any order. kUsage for what is no word
// of -g, and for perf's ways of drawing that there are none of here (fractal, flat, folded).
Result<CallGraphChoice> ParseCallGraphChoice(const std::string& text);

}  // namespace stackreel::cli
