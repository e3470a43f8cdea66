#include "cli/analysis_input.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>

#include "base/plural.h"
#include "cli/event_choice.h"
#include "cli/input_access.h"
#include "cli/number_range.h"
#include "cli/print.h"
#include "cli/progress.h"
#include "cli/recording_input.h"
#include "cli/samples_of_trace.h"
#include "cli/trace_input.h"
#include "os/proc.h"
#include "os/thread_pool.h"

namespace stackreel::cli {
namespace {

// "SECONDS[.FRACTION]" → ns; fractions past nine digits are cut off.
Result<uint64_t> ParseTime(std::string_view text) {
  const size_t point = text.find('.');
  const std::string_view whole = text.substr(0, point);
  std::string fraction(point == std::string_view::npos ? "" : text.substr(point + 1));
  fraction.resize(9, '0');
  uint64_t seconds = 0;
  uint64_t nanoseconds = 0;
  const auto a = std::from_chars(whole.data(), whole.data() + whole.size(), seconds);
  const auto b = std::from_chars(fraction.data(), fraction.data() + fraction.size(), nanoseconds);
  const bool ok = a.ec == std::errc() && a.ptr == whole.data() + whole.size() &&
                  b.ec == std::errc() && b.ptr == fraction.data() + fraction.size() &&
                  seconds < UINT64_MAX / 1'000'000'000;
  if (!ok) {
    return Fail(Error(ErrorKind::kUsage, fmt::format("--time: '{}' is not a time in seconds", text))
                    .WithCure("--time 12.5,13.25   or   --time 12.5,   or   --time ,13.25"));
  }
  return seconds * 1'000'000'000 + nanoseconds;
}

}  // namespace

struct AnalysisInput::Opened {
  RecordingInput recording;
  std::unique_ptr<symbolize::ModuleFileProvider> files;
  std::unique_ptr<BackgroundExecutor> executor;
  std::unique_ptr<analyze::Analysis> analysis;
};

AnalysisInput::AnalysisInput(NameFilters name_filters) : name_filters_(name_filters) {}
AnalysisInput::~AnalysisInput() = default;

void AnalysisInput::AddOptions(CLI::App& app) {
  app.add_option("-i,--input,FILE", input_, "The recording; - is standard input")
      ->type_name("FILE")
      ->capture_default_str();
  app.add_flag("--samples", samples_,
               "Of a trace: the sampled profile that was recorded beside it (trace "
               "--with-samples)");
  if (name_filters_ == NameFilters::kSamples) {
    app.add_option("--comm", comms_, "Only samples of these commands (a,b,…)")
        ->type_name("COMM")
        ->delimiter(',');
    app.add_option("--dso", dsos_, "Only samples with a frame in these binaries")
        ->type_name("DSO")
        ->delimiter(',');
    app.add_option("--symbol", symbols_, "Only samples with one of these functions")
        ->type_name("SYMBOL");
  }
  app.add_option("--pid", pids_, "Only samples of these processes")
      ->type_name("PID")
      ->delimiter(',')
      ->check(WholeNumber(0, UINT32_MAX));
  app.add_option("--tid", tids_, "Only samples of these threads")
      ->type_name("TID")
      ->delimiter(',')
      ->check(WholeNumber(0, UINT32_MAX));
  app.add_option("-C,--cpu", cpus_, "Only samples of these CPUs: 0-3,8")->type_name("CPUS");
  app.add_option("--time", time_,
                 "Only samples from START to STOP, in seconds; either may be empty")
      ->type_name("START,STOP");
  app.add_option("--max-stack", max_stack_, "Frames to show of a stack at most")
      ->type_name("N")
      ->capture_default_str()
      ->check(WholeNumber(1, 1'000'000));
  app.add_flag("--no-inline", no_inline_, "Do not show inlined functions");
  search_.AddOptions(app, FileUse::kSymbols);
}

Result<std::string> AnalysisInput::Choose(const CLI::App& app) {
  if (!samples_) return TraceOr(input_, app);
  const bool named = app.get_option("--input")->count() > 0;
  const std::string trace = named ? input_ : kDefaultTrace;
  TRY(CheckMayBeRead(trace));
  if (named && !IsTrace(trace)) {
    return Fail(Error(ErrorKind::kUsage, fmt::format("--samples is for traces; {} is none", trace))
                    .WithCure("leave it out to read a recording of samples"));
  }
  TRY_ASSIGN(input_, SamplesOfTrace(trace));
  return input_;
}

Result<std::vector<uint32_t>> AnalysisInput::Cpus() const {
  if (cpus_.empty()) return std::vector<uint32_t>();
  return os::ParseCpuList(cpus_);
}

Status AnalysisInput::ParseFilter(profile::Filter& filter) const {
  if (name_filters_ == NameFilters::kSamples) {
    filter.comms = comms_;
    filter.dsos = dsos_;
    filter.symbols = symbols_;  // names of functions have commas
  }
  filter.pids = pids_;
  filter.tids = tids_;
  TRY_ASSIGN(filter.cpus, Cpus());
  if (time_.empty()) return {};
  if (time_ == ",") return Fail(ErrorKind::kUsage, "--time: neither a start nor a stop is given");
  const size_t comma = time_.find(',');
  const std::string start = time_.substr(0, comma);
  const std::string stop = comma == std::string::npos ? "" : time_.substr(comma + 1);
  if (!start.empty()) {
    TRY_ASSIGN(filter.time_start, ParseTime(start));
  }
  if (!stop.empty()) {
    TRY_ASSIGN(filter.time_end, ParseTime(stop));
  }
  if (filter.time_start <= filter.time_end) return {};
  return Fail(ErrorKind::kUsage, fmt::format("--time: {} is after {}", start, stop));
}

Status AnalysisInput::Open(const GlobalOptions& global, analyze::AnalysisOptions options) {
  TRY(ParseFilter(options.filter));
  options.max_frames = max_stack_;
  options.symbols.inlines = !no_inline_;
  const bool by_frame = !options.filter.dsos.empty() || !options.filter.symbols.empty();
  options.unwind |= by_frame;
  options.symbolize |= !options.filter.symbols.empty();
  TRY(search_.Check());
  opened_ = std::make_unique<Opened>();
  TRY_ASSIGN(opened_->recording, OpenRecording(input_));
  opened_->files = search_.MakeProvider(global, opened_->recording.reader->features());
  opened_->executor = os::MakeThreadPool(global.threads);
  opened_->analysis = std::make_unique<analyze::Analysis>(
      *opened_->recording.reader, *opened_->files, *opened_->executor, options);
  if (!global.no_progress && !global.quiet && isatty(STDERR_FILENO) != 0) {
    opened_->analysis->on_progress = ProgressLine("reading " + input_);
  }
  return {};
}

analyze::Analysis& AnalysisInput::analysis() { return *opened_->analysis; }
const perfdata::Reader& AnalysisInput::reader() const { return *opened_->recording.reader; }

Result<analyze::AnalysisResult> AnalysisInput::Run(analyze::AnalysisSink& sink) {
  Result<analyze::AnalysisResult> result = opened_->analysis->Run(sink);
  opened_->analysis->on_progress = nullptr;  // takes the line away
  return result;
}

Result<profile::Profile> AnalysisInput::MakeProfile(const analyze::ProfileOptions& options) {
  Result<profile::Profile> profile = analyze::MakeProfile(*opened_->analysis, options);
  opened_->analysis->on_progress = nullptr;
  return profile;
}

int AnalysisInput::Report(const analyze::AnalysisResult& result,
                          const GlobalOptions& global) const {
  const auto warn = [](const std::string& text) {
    Print(stderr, "stackreel: warning: {}\n", text);
  };
  if (result.lost > 0 && !global.quiet) {
    warn(LossWarning(result.lost, result.samples));
  }
  WarnOfUnfinished(result.read.unfinished, global);
  if (global.verbose > 0) {
    for (const auto& [name, count] : opened_->analysis->counters().values()) {
      Print(stderr, "{}: {}\n", name, count);
    }
  }
  if (result.read.complete) return kExitDone;
  if (result.read.damage) {
    warn(fmt::format("{}; what stands before was read", result.read.damage->ToString()));
  }
  return kExitDamagedInput;
}

}  // namespace stackreel::cli
