#include "cli/trace_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "analyze/function_match.h"
#include "analyze/trace_profile.h"
#include "base/duration.h"
#include "cli/input_access.h"
#include "cli/number_range.h"
#include "cli/print.h"
#include "cli/uftrace_directory.h"
#include "os/file.h"
#include "symbolize/near_names.h"
#include "tracedata/trace_reader.h"
#include "tracedata/trace_writer.h"

namespace stackreel::cli {

namespace {

constexpr const char* kTimeRangeCure = "--time-range 10ms~1.5s   or   10ms~   or   ~1.5s";

bool Exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

bool WasTyped(const CLI::Option& option, const GlobalOptions& global) {
  if (option.count() == 0) return false;
  if (option.get_positional()) {  // also what has a name, and was given without it
    if (option.get_lnames().empty() && option.get_snames().empty()) return true;
  }
  const auto is_it = [&](const std::string& word) {
    const auto starts = [&](const std::string& name) {
      return word == "--" + name || word.starts_with("--" + name + "=");
    };
    const auto short_starts = [&](const std::string& name) {
      return !word.starts_with("--") && word.starts_with("-" + name);
    };
    return std::ranges::any_of(option.get_lnames(), starts) ||
           std::ranges::any_of(option.get_snames(), short_starts);
  };
  return std::ranges::any_of(global.cmdline, is_it);
}

std::string NameOf(const CLI::Option& option) {
  return option.get_lnames().empty() ? option.get_name() : "--" + option.get_lnames()[0];
}

bool IsAmong(const CLI::Option& option, const std::vector<std::string>& names) {
  return std::ranges::any_of(option.get_lnames(), [&](const std::string& name) {
    return std::ranges::find(names, name) != names.end();
  });
}

// Names that were perhaps meant by a pattern that matches no function.
std::string CureOf(std::string_view pattern,
                   const std::vector<tracedata::TraceFunction>& functions) {
  std::vector<std::string_view> names;
  for (const auto& function : functions) names.push_back(function.name);
  const std::vector<std::string> near =
      symbolize::NearNames(pattern.substr(0, pattern.rfind('@')), names);
  if (near.empty()) return "stackreel report   lists those that it has";
  return fmt::format("near: {}", fmt::join(near, ", "));
}

// Of uftrace a time without a unit is one of a clock, not since the trace began.
Result<uint64_t> ParseRangeEnd(const std::string& text) {
  if (std::isalpha(static_cast<unsigned char>(text.back())) != 0) {
    return ParseDuration("--time-range", text);
  }
  return Fail(Error(ErrorKind::kUsage, fmt::format("--time-range: '{}' has no unit", text))
                  .WithCure(kTimeRangeCure));
}

}  // namespace

bool IsTrace(const std::string& path) {
  if (!IsInputDirectory(path)) return false;
  return Exists(path + "/" + tracedata::kCallsFile) || IsUftraceDirectory(path);
}

Status RefuseStandardOutput(const std::string& directory) {
  if (directory != "-") return {};
  return Fail(
      Error(ErrorKind::kUsage, "-o -: a trace is a directory, which cannot go to standard output")
          .WithCure("-o DIR   and to pass it on: tar -c DIR"));
}

std::string TraceOr(const std::string& recording, const CLI::App& app) {
  const CLI::Option* input = app.get_option_no_throw("--input");
  const bool named = input != nullptr && input->count() > 0;
  return !named && !Exists(recording) && IsTrace(kDefaultTrace) ? kDefaultTrace : recording;
}

Result<std::unique_ptr<tracedata::TraceSource>> OpenTraceDirectory(const std::string& path) {
  if (path == "-") {
    return Fail(
        Error(ErrorKind::kUsage, "a trace is a directory: it cannot be read from standard input")
            .WithCure("-i DIR   to name the trace; a directory called -: -i ./-"));
  }
  TRY(CheckMayBeRead(path));
  if (IsUftraceDirectory(path)) return OpenUftraceDirectory(path);
  if (!IsTrace(path)) {
    return Fail(Error(ErrorKind::kNotFound, Exists(path) ? "this is no trace" : "there is no trace")
                    .At(path)
                    .WithCure("stackreel trace -- COMMAND   to make stackreel.trace\n"
                              "-i DIR   to name the trace, or a recording of uftrace"));
  }
  TRY_ASSIGN(std::unique_ptr<FileSource> calls, OpenInput(path + "/" + tracedata::kCallsFile));
  TRY_ASSIGN(std::unique_ptr<FileSource> facts, OpenInput(path + "/" + tracedata::kFactsFile));
  return tracedata::OpenTrace(std::move(calls), std::move(facts));
}

void TraceInput::AddInput(CLI::App& app) {
  app.add_option("-i,--input", input_, "The trace: a directory of stackreel trace, or of uftrace")
      ->type_name("DIR")
      ->capture_default_str();
}

void TraceInput::AddTids(CLI::App& app) {
  app.add_option("--tid", tids_, "Only these threads")
      ->type_name("TID")
      ->delimiter(',')
      ->check(WholeNumber(0, UINT32_MAX));
}

void TraceInput::AddFilters(CLI::App& app, ShortNames names) {
  const auto name = [&](const char* brief, const char* full) {
    return names == ShortNames::kYes ? fmt::format("{},{}", brief, full) : std::string(full);
  };
  app.add_option(name("-F", "--filter"), functions_,
                 "Of a trace: only these functions and what they call; * stands for any text")
      ->type_name("FUNCTION");
  app.add_option(name("-N", "--notrace"), without_,
                 "Of a trace: not these functions, nor what they call")
      ->type_name("FUNCTION");
  app.add_option(name("-C", "--caller-filter"), callers_,
                 "Of a trace: only the ways that lead to these functions")
      ->type_name("FUNCTION");
  app.add_option(name("-D", "--depth"), depth_,
                 "Of a trace: only N levels of calls, counted from where showing begins")
      ->type_name("N")
      ->check(WholeNumber(1, UINT32_MAX));
  app.add_option(name("-t", "--time-filter"), min_time_,
                 "Of a trace: only calls that took at least so long: 100ns, 5us, 1.5ms, 2s")
      ->type_name("TIME");
  app.add_option(name("-r", "--time-range"), time_range_,
                 "Of a trace: only calls that began so long after its first; either may be empty: "
                 "10ms~1.5s")
      ->type_name("FROM~TO");
}

std::vector<std::string> TraceFilterNames() {
  return {"filter", "notrace", "caller-filter", "depth", "time-filter", "time-range"};
}

Status TraceInput::MakeSelection() {
  selection_.functions = functions_;
  selection_.without = without_;
  selection_.callers = callers_;
  selection_.tids = tids_;
  if (depth_ != 0) selection_.max_depth = depth_;
  if (!min_time_.empty()) {
    TRY_ASSIGN(selection_.min_nanoseconds, ParseDuration("--time-filter", min_time_));
  }
  if (time_range_.empty()) return {};
  const size_t tilde = time_range_.find('~');
  if (tilde == std::string::npos || time_range_ == "~") {
    return Fail(
        Error(ErrorKind::kUsage, fmt::format("--time-range: '{}' is not FROM~TO", time_range_))
            .WithCure(kTimeRangeCure));
  }
  const std::string from = time_range_.substr(0, tilde), to = time_range_.substr(tilde + 1);
  if (!from.empty()) {
    TRY_ASSIGN(selection_.time_start, ParseRangeEnd(from));
  }
  if (!to.empty()) {
    TRY_ASSIGN(selection_.time_end, ParseRangeEnd(to));
  }
  if (selection_.time_start <= selection_.time_end) return {};
  return Fail(ErrorKind::kUsage, fmt::format("--time-range: {} is after {}", from, to));
}

// A pattern that matches nothing is a typing error; but functions of uftrace's recordings are only
// known when their calls have been read.
Status TraceInput::CheckPatterns() {
  const std::vector<tracedata::TraceFunction>& functions = source_->tables().functions;
  if (functions.empty()) return {};
  for (const auto* patterns : {&functions_, &without_, &callers_}) {
    for (const std::string& pattern : *patterns) {
      const bool any = std::ranges::any_of(functions, [&](const auto& function) {
        return analyze::MatchesFunction(*source_, function, pattern);
      });
      if (any) continue;
      return Fail(
          Error(ErrorKind::kNotFound, fmt::format("the trace has no function '{}'", pattern))
              .WithCure(CureOf(pattern, functions)));
    }
  }
  return {};
}

Status TraceInput::Open() {
  TRY(MakeSelection());
  TRY_ASSIGN(source_, OpenTraceDirectory(input_));
  TRY(CheckPatterns());
  calls_ = std::make_unique<analyze::TraceCalls>(*source_, selection_);
  return {};
}

int TraceInput::Report(const GlobalOptions& global) const {
  return Report(global, calls_->counters.Get("trace.lost_calls"),
                calls_->counters.Get("trace.lost_ranges"));
}

int TraceInput::Report(const GlobalOptions& global, const tracedata::CallLosses& losses) const {
  return Report(global, losses.total(), losses.places);
}

int TraceInput::Report(const GlobalOptions& global, uint64_t calls, uint64_t places) const {
  const std::string losses = analyze::LossText(*source_, calls, places);
  if (!global.quiet || !source_->damage().empty()) {
    for (size_t at = 0; at < losses.size();) {
      const size_t end = losses.find('\n', at);
      Print(stderr, "stackreel: warning: {}\n", losses.substr(at, end - at));
      at = end + 1;
    }
  }
  return source_->damage().empty() ? kExitDone : kExitDamagedInput;
}

Status RefuseOthers(const CLI::App& app, const GlobalOptions& global,
                    const std::vector<std::string>& names, const std::string& why) {
  for (const CLI::Option* option : app.get_options()) {
    if (IsAmong(*option, names) || !WasTyped(*option, global)) continue;
    return Fail(ErrorKind::kUsage, fmt::format("{} {}", NameOf(*option), why));
  }
  return {};
}

Status RefuseThese(const CLI::App& app, const GlobalOptions& global,
                   const std::vector<std::string>& names, const std::string& why) {
  for (const CLI::Option* option : app.get_options()) {
    if (!IsAmong(*option, names) || !WasTyped(*option, global)) continue;
    return Fail(ErrorKind::kUsage, fmt::format("{} {}", NameOf(*option), why));
  }
  return {};
}

}  // namespace stackreel::cli
