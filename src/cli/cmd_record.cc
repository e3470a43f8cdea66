// stackreel record: profiles a command, processes or the whole machine into a perf.data.
#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "cli/command.h"
#include "cli/number_range.h"
#include "cli/print.h"
#include "cli/sample_summary.h"
#include "cli/size_text.h"
#include "cli/trace_input.h"
#include "os/child_process.h"
#include "os/proc.h"
#include "record/event_parse.h"
#include "record/recorder.h"

namespace stackreel::cli {
namespace {

struct NamedClock {
  const char* name;
  int32_t id;
};
constexpr std::array<NamedClock, 5> kClocks = {{{"monotonic", CLOCK_MONOTONIC},
                                                {"monotonic_raw", CLOCK_MONOTONIC_RAW},
                                                {"realtime", CLOCK_REALTIME},
                                                {"boottime", CLOCK_BOOTTIME},
                                                {"tai", CLOCK_TAI}}};

Result<int32_t> ParseClock(const std::string& text) {
  for (const NamedClock& clock : kClocks) {
    if (text == clock.name) return clock.id;
  }
  int32_t id = 0;
  const char* end = text.data() + text.size();
  const auto number = std::from_chars(text.data(), end, id);
  if (number.ec == std::errc{} && number.ptr == end && id >= 0) return id;
  std::string names;
  for (const NamedClock& clock : kClocks) names += std::string(" ") + clock.name;
  return Fail(ErrorKind::kUsage, fmt::format("no clock '{}'; there are{}", text, names));
}

class RecordCommand : public Command {
 public:
  [[nodiscard]] const char* name() const override { return "record"; }
  [[nodiscard]] const char* summary() const override {
    return "Record a profile of a command, a process or the whole machine";
  }
  [[nodiscard]] std::vector<std::string> examples() const override {
    return {
        "stackreel record -- ./program args           # a command, from its start to its end",
        "stackreel record -p 1234 --duration 10       # a running process, for ten seconds",
        "stackreel record -p 1234 -- ./load-test      # a running process, while a command runs",
        "stackreel record -a -F 99 --duration 60      # the whole machine, gently",
        "stackreel record -e cache-misses -- ./program",
        "stackreel record -e '{cpu-clock,page-faults}:S' -- ./program  # with counts in samples",
        "stackreel record --call-graph fp -o - -p 1234 | gzip > live.perf.data.gz"};
  }
  void AddOptions(CLI::App& app) override;
  Result<int> Run(const GlobalOptions& global) override;

 private:
  void AddTargetOptions(CLI::App& app);
  void AddEventOptions(CLI::App& app);
  void AddOutputOptions(CLI::App& app);
  Status Convert();
  Status ConvertCallGraph();
  int Report(const record::RecordSummary& summary, const GlobalOptions& global) const;

  const CLI::App* app_ = nullptr;
  record::RecordOptions options_;
  std::string cpus_, frequency_ = "997", call_graph_ = "dwarf", unwind_ = "live";
  std::string masks_;
  std::string pages_, max_size_, clock_;
  std::string period_;
  double duration_ = 0;
  int level_ = 1;
  bool call_graphs_ = false, no_inherit_ = false, no_compress_ = false;
  bool no_cache_ = false;
};

void RecordCommand::AddOptions(CLI::App& app) {
  app_ = &app;
  app.positionals_at_end();
  app.add_option("command", options_.command,
                 "Command to run and record, with its arguments; with -p, -t, -a or -C: to "
                 "record while it runs")
      ->type_name("COMMAND");
  AddTargetOptions(app);
  AddEventOptions(app);
  AddOutputOptions(app);
}

void RecordCommand::AddTargetOptions(CLI::App& app) {
  app.add_option("-p,--pid", options_.pids, "Record running processes: PID, or several with commas")
      ->delimiter(',')
      ->type_name("PID")
      ->check(WholeNumber(1, INT32_MAX));
  app.add_option("-t,--tid", options_.tids, "Record single threads")
      ->delimiter(',')
      ->type_name("TID")
      ->check(WholeNumber(1, INT32_MAX));
  app.add_flag("-a,--all-cpus", options_.system_wide, "Record the whole machine");
  app.add_option("-C,--cpu", cpus_, "Record all that runs on these CPUs, such as 0-3,8")
      ->type_name("CPUS");
  app.add_flag("--no-inherit", no_inherit_, "Leave out children and threads that start later");
  app.add_option("-D,--delay", options_.delay_ms,
                 "Begin to sample after MS milliseconds; -1: when signal USR1 comes")
      ->type_name("MS")
      ->check(WholeNumber(-1, 86'400'000));
  app.add_option("--duration", duration_, "Stop after SECONDS")
      ->type_name("SECONDS")
      ->check(Number(0.001, 1e9));
}

void RecordCommand::AddEventOptions(CLI::App& app) {
  app.add_option(
         "-e,--event", options_.events,
         "Events to sample: names, rHEX, system:tracepoint (with * too), pmu/terms/, "
         "mem:0xADDR[/LEN][:rwx], each with :u, :k …; {a,b}: a group, counted together; {a,b}:S: "
         "only a samples, with the counts of all; cycles unless given, cpu-clock where "
         "there is no hardware counter")
      ->type_name("EVENT");
  auto* frequency =
      app.add_option("-F,--freq", frequency_, "Samples a second and CPU; max: as many as allowed")
          ->type_name("HZ")
          ->capture_default_str();
  app.add_option("-c,--count", period_, "Sample each N-th time instead")
      ->type_name("N")
      ->excludes(frequency);
  app.add_flag("-g", call_graphs_, "The same as --call-graph dwarf");
  app.add_option("--call-graph", call_graph_,
                 "How to find callers: dwarf[,BYTES of stack, 65528 unless given], fp (frame "
                 "pointers), lbr, none")
      ->type_name("HOW")
      ->capture_default_str();
  app.add_option("--unwind", unwind_,
                 "When to unwind dwarf stacks: live, while recording; later: keep stacks in the "
                 "file")
      ->check(CLI::IsMember({"live", "later"}))
      ->capture_default_str();
  auto* user = app.add_flag("--all-user", options_.all_user, "Sample user space only");
  app.add_flag("--all-kernel", options_.all_kernel, "Sample the kernel only")->excludes(user);
  app.add_flag("--all-cgroups", options_.cgroups,
               "Record control groups, and in each sample which it is of (script -F cgroup)");
  app.add_flag("--namespaces", options_.namespaces, "Record namespaces of processes");
  app.add_flag("--switch-events", options_.switches, "Record context switches");
  app.add_option(
         "--pac-masks", masks_,
         "arm64: how masks of pointer authentication are recorded: records, sent when they "
         "change; samples, 24 bytes in each, of which perf 6.1 warns; cpu, asked once. What "
         "this kernel cannot becomes the next of these; unless given, the first that it can")
      ->check(CLI::IsMember({"records", "samples", "cpu"}));
  app.add_option("-k,--clockid", clock_,
                 "Clock of the times: monotonic, monotonic_raw, realtime, boottime, tai")
      ->type_name("CLOCK");
  app.add_option("-m,--mmap-pages", pages_,
                 "Size of each CPU's ring: pages, a power of two, or a size such as 8M")
      ->type_name("PAGES");
}

void RecordCommand::AddOutputOptions(CLI::App& app) {
  app.add_option("-o,--output", options_.output,
                 "Write to FILE; - is standard output, as a pipe. What is there becomes FILE.old")
      ->type_name("FILE")
      ->capture_default_str();
  auto* level = app.add_option("-z,--compression-level", level_, "How hard to compress, 1 to 22")
                    ->type_name("LEVEL")
                    ->check(WholeNumber(1, 22))
                    ->capture_default_str();
  app.add_flag("--no-compress", no_compress_, "Compress nothing, for perf before 5.2")
      ->excludes(level);
  app.add_option("--max-size", max_size_, "Stop when the file has this size, such as 100M")
      ->type_name("SIZE");
  app.add_option("--switch-output", options_.switch_output,
                 "Go on in a new file at each signal USR2 (signal), size (100M) or time (30s)")
      ->type_name("WHEN");
  app.add_flag("--no-buildid-cache", no_cache_,
               "Do not keep the vDSO and kallsyms in the build-id cache");
}

Status RecordCommand::ConvertCallGraph() {
  const size_t comma = std::min(call_graph_.find(','), call_graph_.size());
  const std::string how = call_graph_.substr(0, comma);
  if (comma < call_graph_.size()) {
    if (how != "dwarf") {
      return Fail(ErrorKind::kUsage,
                  fmt::format("--call-graph {}: only dwarf has a stack size", call_graph_));
    }
    TRY_ASSIGN(const uint64_t size, ParseSize(call_graph_.substr(comma + 1), "--call-graph"));
    if (size == 0) {
      return Fail(Error(ErrorKind::kUsage, "0 bytes of stack hold no caller")
                      .WithCure("record without call graphs: --call-graph none"));
    }
    constexpr uint64_t kWord = 8;
    options_.stack_size = static_cast<uint32_t>(
        std::min<uint64_t>((size + kWord - 1) / kWord * kWord, UINT32_MAX / kWord * kWord));
  }
  using record::CallGraph;
  if (how == "dwarf") {
    options_.call_graph = CallGraph::kDwarf;
  } else if (how == "fp") {
    options_.call_graph = CallGraph::kFramePointer;
  } else if (how == "lbr") {
    options_.call_graph = CallGraph::kLbr;
  } else if (how == "none" || how == "no") {
    if (call_graphs_) {
      return Fail(ErrorKind::kUsage,
                  fmt::format("-g asks for call graphs, --call-graph {} for none", how));
    }
    options_.call_graph = CallGraph::kNone;
  } else {
    return Fail(ErrorKind::kUsage,
                fmt::format("--call-graph {}: there are dwarf, fp, lbr and none", call_graph_));
  }
  return {};
}

Status RecordCommand::Convert() {
  TRY(ConvertCallGraph());
  if (!cpus_.empty()) {
    TRY_ASSIGN(options_.cpus, os::ParseCpuList(cpus_));
    options_.system_wide = true;
  }
  TRY_ASSIGN(options_.frequency, ParseFrequency(frequency_, "-F"));
  if (!period_.empty()) {
    TRY_ASSIGN(options_.period, ParsePeriod(period_, "-c"));
    if (options_.period == 0) return Fail(ErrorKind::kUsage, "-c 0 would sample nothing");
  }
  if (!pages_.empty()) {
    TRY_ASSIGN(options_.mmap_pages, ParseSize(pages_, "-m"));
    constexpr uint64_t kPage = 4096;
    const bool is_size = pages_.find_first_of("BKMG") != std::string::npos;
    if (is_size) options_.mmap_pages = std::max<uint64_t>(options_.mmap_pages / kPage, 1);
    if (options_.mmap_pages == 0)
      return Fail(ErrorKind::kUsage, "-m 0 leaves no room for a record");
  }
  if (!max_size_.empty()) {
    TRY_ASSIGN(options_.max_size, ParseSize(max_size_, "--max-size"));
    if (options_.max_size == 0) return Fail(ErrorKind::kUsage, "--max-size: 0 bytes hold nothing");
  }
  if (!clock_.empty()) {
    TRY_ASSIGN(options_.clockid, ParseClock(clock_));
  }
  if (std::isnan(duration_)) return Fail(ErrorKind::kUsage, "--duration: nan is not a time");
  if (duration_ > 0) options_.duration_s = duration_;
  options_.unwind = unwind_ == "live" ? record::UnwindWhen::kLive : record::UnwindWhen::kLater;
  if (!masks_.empty()) {
    options_.masks = masks_ == "records"   ? os::MaskRoute::kRecords
                     : masks_ == "samples" ? os::MaskRoute::kSamples
                                           : os::MaskRoute::kCpu;
  }
  options_.compression_level = no_compress_ ? 0 : level_;
  options_.inherit = !no_inherit_;
  options_.buildid_cache = !no_cache_;
  return {};
}

Result<int> RecordCommand::Run(const GlobalOptions& global) {
  TRY(Convert());
  if (options_.call_graph != record::CallGraph::kDwarf) {
    TRY(RefuseThese(*app_, global, {"unwind"},
                    "is of dwarf stacks; --call-graph " + call_graph_ + " records none"));
  }
  options_.cmdline = global.cmdline;
  const auto notice = [&global](const std::string& text) {
    if (!global.quiet) Print(stderr, "stackreel: {}\n", text);
  };
  if (!options_.command.empty()) {
    if (const auto found = os::FindCommand(options_.command.front()); !found) {
      PrintError(found.error(), global);
      return found.error().kind == ErrorKind::kNotFound ? kExitNotFound : kExitNotRunnable;
    }
  }
  const auto summary = record::Record(options_, notice);
  if (!summary) {
    const int code = PrintError(summary.error(), global);
    return code == kExitUsage ? kExitUsage : static_cast<int>(kExitCannotMeasure);
  }
  return Report(*summary, global);
}

// What was recorded, on standard error; and the exit code.
int RecordCommand::Report(const record::RecordSummary& summary, const GlobalOptions& global) const {
  if (!summary.exec_error.empty()) {
    PrintError(Error(ErrorKind::kNotFound, summary.exec_error), global);
    return summary.exit_code.value_or(kExitNotRunnable);
  }
  if (!global.quiet) {
    std::string line = "stackreel: " + DescribeSamples(summary);
    line += fmt::format("; recording took {:.2f} s of CPU", summary.cpu_s);
    // Of a short recording the share says nothing: starting has its price.
    if (summary.wall_s >= 1) {
      line += fmt::format(", {:.1f} % of one", 100 * summary.cpu_s / summary.wall_s);
    }
    Print(stderr, "{}\n", line);
    if (summary.lost != 0) {
      Print(stderr, "  records were lost where a ring was full; larger rings help: -m 64M\n");
    }
    // As root there is no cure; then it is one that keeps everybody out.
    const uint64_t hidden = summary.counters.Get("record.maps_not_readable");
    if (hidden != 0 && geteuid() != 0) {
      Print(stderr,
            "  the mappings of {} process{} of other users may not be read: their stacks end at "
            "once, and their functions have no names\n"
            "  try: as root: sudo stackreel record …\n",
            hidden, hidden == 1 ? "" : "es");
    }
    if (!summary.not_measured.empty()) {
      Print(stderr,
            "  {}: the kernel ends the events of whoever executes such a program\n"
            "  try: sudo stackreel record -- {}\n"
            "       or all that runs meanwhile: sudo stackreel record -a -- {}\n",
            summary.not_measured, fmt::join(options_.command, " "),
            fmt::join(options_.command, " "));
    }
    if (global.verbose > 0) {
      Print(stderr, "  ended by: {}\n", summary.ended_by);
      if (!summary.masks.empty()) Print(stderr, "  masks: {}\n", summary.masks);
      for (const auto& [counter, n] : summary.counters.values()) {
        Print(stderr, "  {:<40} {}\n", counter, n);
      }
    }
  }
  if (summary.write_failed) {
    PrintError(Error(ErrorKind::kIo, fmt::format("recording stopped: {}; what was written up to "
                                                 "then is kept",
                                                 summary.ended_by)),
               global);
    return kExitFailed;
  }
  return summary.exit_code.value_or(kExitDone);
}

}  // namespace

std::unique_ptr<Command> MakeRecordCommand() { return std::make_unique<RecordCommand>(); }

}  // namespace stackreel::cli
