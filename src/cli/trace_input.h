// A trace that is shown: where it is, and the options by which its calls are chosen.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "analyze/trace_calls.h"
#include "base/error.h"
#include "cli/command.h"
#include "tracedata/call_losses.h"
#include "tracedata/trace_source.h"

namespace stackreel::cli {

inline constexpr char kDefaultTrace[] = "stackreel.trace";

// Whether `path` is the directory of a trace: ours, or uftrace's.
bool IsTrace(const std::string& path);
// kUsage if it is "-", which elsewhere is standard output.
Status RefuseStandardOutput(const std::string& directory);
// The trace instead of the recording, if none was named, there is no recording and there is one.
std::string TraceOr(const std::string& recording, const CLI::App& app);
// Opens it, whichever it is.
Result<std::unique_ptr<tracedata::TraceSource>> OpenTraceDirectory(const std::string& path);

// Whether uftrace's short names can be had: -F, -N, -D, -t, -C, -r.
enum class ShortNames : uint8_t { kYes, kNo };

class TraceInput {
 public:
  // Also adds -i, --input. Without: for commands that have options of these meanings.
  void AddInput(CLI::App& app);
  void AddFilters(CLI::App& app, ShortNames names);
  void AddTids(CLI::App& app);
  void set_input(std::string input) { input_ = std::move(input); }
  void set_tids(std::vector<uint32_t> tids) { tids_ = std::move(tids); }
  void AddFunctions(const std::vector<std::string>& patterns) {
    functions_.insert(functions_.end(), patterns.begin(), patterns.end());
  }
  [[nodiscard]] const std::string& input() const { return input_; }

  // Opens the trace. Warns of functions that none matches.
  Status Open();
  [[nodiscard]] analyze::TraceCalls& calls() { return *calls_; }
  // Says on stderr what was lost or damaged; gives the exit code. When all steps of calls() have
  // been read: its counters have the losses.
  int Report(const GlobalOptions& global) const;
  // The same, where the source was read past calls().
  int Report(const GlobalOptions& global, const tracedata::CallLosses& losses) const;

 private:
  int Report(const GlobalOptions& global, uint64_t calls, uint64_t places) const;
  Status MakeSelection();
  Status CheckPatterns();

  std::string input_ = kDefaultTrace;
  std::vector<std::string> functions_, without_, callers_;
  uint32_t depth_ = 0;
  std::string min_time_, time_range_;
  std::vector<uint32_t> tids_;
  analyze::CallSelection selection_;
  std::unique_ptr<tracedata::TraceSource> source_;
  std::unique_ptr<analyze::TraceCalls> calls_;
};

// kUsage if an option was typed that is not among `names` (long ones): "--dso is not for a trace".
Status RefuseOthers(const CLI::App& app, const GlobalOptions& global,
                    const std::vector<std::string>& names, const std::string& why);
// kUsage if one was typed that is among them.
Status RefuseThese(const CLI::App& app, const GlobalOptions& global,
                   const std::vector<std::string>& names, const std::string& why);
// Long names of what AddFilters adds.
std::vector<std::string> TraceFilterNames();

}  // namespace stackreel::cli
