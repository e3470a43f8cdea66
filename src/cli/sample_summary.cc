#include "cli/sample_summary.h"

#include <fmt/format.h>

#include "base/plural.h"
#include "cli/size_text.h"

namespace stackreel::cli {

std::string DescribeSamples(const record::RecordSummary& summary) {
  std::string line = fmt::format("{} of {}", Plural(summary.samples, "sample"), summary.event);
  if (summary.user_stacks != 0) {
    line += fmt::format(", {:.1f} % of {} complete",
                        100.0 * static_cast<double>(summary.complete_stacks) /
                            static_cast<double>(summary.user_stacks),
                        Plural(summary.user_stacks, "user stack"));
  }
  line += fmt::format(", {} lost", summary.lost);
  if (summary.write_failed) line += fmt::format(", {} not written", summary.not_written);
  line += "; " + FormatSize(summary.bytes);
  for (const std::string& file : summary.files) {
    line += fmt::format(" {}{}", file == summary.files.front() ? "in " : "",
                        file == "-" ? "standard output" : file);
  }
  return line;
}

}  // namespace stackreel::cli
