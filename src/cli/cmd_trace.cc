// stackreel trace: records the calls of chosen functions of a command or a running process.
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/plural.h"
#include "cli/command.h"
#include "cli/filter_options.h"
#include "cli/number_range.h"
#include "cli/print.h"
#include "cli/sample_summary.h"
#include "cli/size_text.h"
#include "cli/trace_control.h"
#include "cli/trace_input.h"
#include "cli/trace_samples.h"
#include "os/child_process.h"
#include "os/file.h"
#include "os/thread_pool.h"
#include "os/tracing_abilities.h"
#include "tracer/control_socket.h"
#include "tracer/trace_clock.h"
#include "tracer/trace_session.h"

namespace stackreel::cli {
namespace {

using std::chrono::steady_clock;
using tracer::TraceEnd;
using tracer::TraceSummary;

// Signals that end a trace, taken from a descriptor while this lives.
class EndSignals {
 public:
  EndSignals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaddset(&set, signal);
    if (sigismember(&inherited_.ignored, SIGHUP) == 1) sigdelset(&set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    fd_ = os::Fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    ::signal(SIGPIPE, SIG_IGN);
    ::signal(SIGCHLD, SIG_DFL);  // a child's end is kept for who waits for it
  }
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;
  ~EndSignals() { pthread_sigmask(SIG_SETMASK, &inherited_.blocked, nullptr); }
  [[nodiscard]] const os::SignalState& inherited() const { return inherited_; }
  [[nodiscard]] int fd() const { return fd_.get(); }
  // The next that came.
  [[nodiscard]] std::optional<signalfd_siginfo> Next() const {
    signalfd_siginfo info = {};
    if (read(fd_.get(), &info, sizeof(info)) != sizeof(info)) return std::nullopt;
    return info;
  }

 private:
  os::SignalState inherited_ = os::SignalState::Current();
  os::Fd fd_;
};

class TraceCommand : public Command {
 public:
  [[nodiscard]] const char* name() const override { return "trace"; }
  [[nodiscard]] const char* summary() const override {
    return "Record the calls of chosen functions of a command or a running process";
  }
  [[nodiscard]] std::vector<std::string> examples() const override {
    return {"stackreel trace -P 'parse_*' -- ./program args     # a command, from before main()",
            "stackreel trace -P . -U 'log_*' -- ./program       # all of its functions but some",
            "stackreel trace -P . -F parse -D 3 -- ./program    # three levels of what parse calls",
            "stackreel trace -p 1234 -P handle_request          # a running process, until Ctrl-C",
            "stackreel trace -a -P 'parse_*' -- ./program       # with arguments and return values",
            "stackreel trace -A 'open@libc@arg1/s,arg2/x32' -R 'open@libc@retval/i32' -- ./program",
            "stackreel trace -p 1234 -P 'malloc@libc' --duration 10",
            "stackreel trace --with-samples -P 'parse_*' -- ./program  # and a sampled profile"};
  }
  void AddOptions(CLI::App& app) override;
  Result<int> Run(const GlobalOptions& global) override;

 private:
  Status Convert();
  void ChooseClock(const GlobalOptions& global) const;
  Status ConvertValues();
  Status ConvertSamples(const GlobalOptions& global);
  [[nodiscard]] std::optional<int> TimeLeft() const;
  bool Converse(tracer::TraceSession& session, const tracer::ControlServer& server);
  TraceEnd Await(tracer::TraceSession& session, const EndSignals& signals,
                 const tracer::ControlServer* server);
  int Report(const TraceSummary& summary, const GlobalOptions& global) const;
  bool ReportSamples(const GlobalOptions& global) const;

  tracer::TraceOptions options_;
  // In the order of the command line: 'P' or 'U', and the pattern.
  std::vector<std::pair<char, std::string>> patterns_;
  std::vector<std::string> arguments_, returns_;
  FilterOptions filters_;
  std::optional<std::string> samples_;  // a frequency
  std::unique_ptr<TraceSamples> companion_;
  std::string on_full_ = "block", libraries_ = "wait", clock_ = "auto";
  double duration_ = 0;
  uint32_t buffer_mb_ = 32;
  std::optional<double> duration_s_;
  steady_clock::time_point begun_;
  bool write_error_told_ = false;
  tracer::ControlServer::Conversation leaving_;
};

void TraceCommand::AddOptions(CLI::App& app) {
  app.positionals_at_end();
  app.add_option("command", options_.command, "Command to run and trace, with its arguments")
      ->type_name("COMMAND");
  // Called at each -P and -U, not when all of the command line is read: their order counts.
  const auto note = [this](char kind) {
    return [this, kind](const std::vector<std::string>& patterns) {
      for (const std::string& pattern : patterns) patterns_.emplace_back(kind, pattern);
    };
  };
  app.add_option_function<std::vector<std::string>>(
         "-P,--patch", note('P'),
         "Record the functions that PATTERN names: NAME[@MODULE], a glob or a regular "
         "expression; . is all of the program. Of several that match, the last decides")
      ->trigger_on_parse()
      ->type_name("PATTERN");
  app.add_option_function<std::vector<std::string>>("-U,--unpatch", note('U'),
                                                    "Leave out the functions that PATTERN names")
      ->trigger_on_parse()
      ->type_name("PATTERN");
  app.add_flag("-a,--auto-args", options_.values.all,
               "Record arguments and return values of all functions, as their debug information "
               "tells of them");
  app.add_option(
         "-A,--argument", arguments_,
         "Record arguments of FUNCTION: NAME[@MODULE][@SPEC,SPEC...], SPEC such as arg1/i32, "
         "arg2/s, fparg1; without SPEC as debug information tells. Without -P it is also "
         "what is recorded")
      ->type_name("FUNCTION");
  app.add_option(
         "-R,--retval", returns_,
         "Record the return value of FUNCTION: NAME[@MODULE][@SPEC], SPEC such as retval/x64")
      ->type_name("FUNCTION");
  app.add_option("-p,--pid", options_.pid, "Trace a running process, and leave it as it was")
      ->type_name("PID")
      ->check(WholeNumber(1, INT32_MAX));
  app.add_option("--duration", duration_, "Stop after SECONDS. The program goes on, a command too")
      ->type_name("SECONDS")
      ->check(Number(0.001, 1e9));
  filters_.Add(app);
  app.add_option_function<std::string>(
         "--with-samples", [this](const std::string& frequency) { samples_ = frequency; },
         "Record a sampled profile of the process too, by the same clock, HZ samples a second "
         "and CPU (as record -F; 997 unless given): perf.data in the directory of the trace")
      ->type_name("HZ")
      ->expected(0, 1)
      ->default_str("997");
  app.add_option("-o,--output", options_.output,
                 "Write to the directory DIR. A trace that is there becomes DIR.old")
      ->type_name("DIR")
      ->capture_default_str();
  app.add_option("--buffer", buffer_mb_, "Memory that is shared with the program, in MB")
      ->type_name("MB")
      ->check(WholeNumber(1, 4096))
      ->capture_default_str();
  app.add_option("--on-full", on_full_,
                 "Where the program records faster than can be written: block it, or drop calls "
                 "and count them")
      ->check(CLI::IsMember({"block", "drop"}))
      ->capture_default_str();
  app.add_option("--libraries", libraries_,
                 "Libraries that are loaded later are patched as the patterns say: the thread that "
                 "loads one waits for that, or goes on, and first calls may be missed (later)")
      ->check(CLI::IsMember({"wait", "later"}))
      ->capture_default_str();
  app.add_flag(
      "--force", options_.force,
      "Trace a process whose seccomp filter cannot be looked at: it may be killed by that");
  app.add_flag("--follow", options_.follow,
               "Where the process or a child that it forks executes another program, trace that "
               "too, by the same patterns and from before its main()");
  app.add_option("--clock", clock_,
                 "What times are taken by: tsc (rdtsc), kernel (clock_gettime, a system call for "
                 "each time), or auto: tsc where that is steady")
      ->check(CLI::IsMember({"auto", "tsc", "kernel"}))
      ->capture_default_str();
  app.add_flag("--traps", options_.traps,
               "Put a trap (int3) at functions that are too short for anything else, or that "
               "something jumps into the beginning of: each of their calls costs microseconds. "
               "Refused where a thread or a signal handler of the program blocks SIGTRAP, which "
               "would end it; taken out before it does so later");
  app.add_option("-z,--compression-level", options_.level, "How hard to compress, 0 to 22")
      ->type_name("LEVEL")
      ->check(WholeNumber(0, 22))
      ->capture_default_str();
}

// -A and -R; where no -P is given they name what is recorded, too.
Status TraceCommand::ConvertValues() {
  const bool any = std::ranges::any_of(patterns_, [](const auto& one) { return one.first == 'P'; });
  for (const bool results : {false, true}) {
    for (const std::string& text : results ? returns_ : arguments_) {
      auto choice = tracer::ParseValueChoice(text, results);
      if (!choice) {
        Error error = std::move(choice.error());
        error.message = fmt::format("{}: {}", results ? "-R" : "-A", error.message);
        return Fail(std::move(error));
      }
      if (!any) patterns_.emplace(patterns_.begin(), 'P', choice->pattern.text());
      options_.values.choices.push_back(std::move(*choice));
    }
  }
  return {};
}

Status TraceCommand::ConvertSamples(const GlobalOptions& global) {
  if (!samples_) return {};
  TRY_ASSIGN(const uint64_t frequency, ParseFrequency(*samples_, "--with-samples"));
  if (frequency == 0) return Fail(ErrorKind::kUsage, "a frequency of 0 records nothing");
  companion_ = std::make_unique<TraceSamples>(frequency, global.cmdline,
                                              [quiet = global.quiet](const std::string& text) {
                                                if (!quiet) Print(stderr, "stackreel: {}\n", text);
                                              });
  options_.companion = companion_.get();
  return {};
}

Status TraceCommand::Convert() {
  if ((options_.pid != 0) == !options_.command.empty()) {
    return Fail(Error(ErrorKind::kUsage, options_.pid != 0
                                             ? "-p PID and a command exclude each other"
                                             : "what is to be traced?")
                    .WithCure("stackreel trace -P PATTERN -- COMMAND\n"
                              "or a running process: stackreel trace -P PATTERN -p PID"));
  }
  TRY(RefuseStandardOutput(options_.output));
  TRY(ConvertValues());
  bool any = false;
  for (const auto& [kind, text] : patterns_) {
    TRY_ASSIGN(tracer::FunctionPattern pattern, tracer::FunctionPattern::Parse(text));
    any = any || kind == 'P';
    options_.patterns.push_back(
        {std::move(pattern), kind == 'P' ? tracer::Choice::kPatch : tracer::Choice::kUnpatch});
  }
  if (!any) {
    return Fail(Error(ErrorKind::kUsage, "no function is named; only what -P names is recorded")
                    .WithCure(filters_.given().empty()
                                  ? "all of the program: -P ."
                                  : "filters choose among what is patched; all of the program: -P "
                                    "."));
  }
  // Told of before anything is started.
  TRY(tracer::CallFilters::Parse(filters_.given()));
  options_.filters = filters_.given();
  if (std::isnan(duration_)) return Fail(ErrorKind::kUsage, "--duration: nan is not a time");
  if (duration_ > 0) duration_s_ = duration_;
  options_.chunks = (buffer_mb_ << 20) / tracedata::kChunkSize;
  options_.await_libraries = libraries_ == "wait";
  options_.on_full = on_full_ == "drop" ? tracedata::OnFull::kDrop : tracedata::OnFull::kBlock;
  return {};
}

void TraceCommand::ChooseClock(const GlobalOptions& global) const {
  const os::TimestampCounter counter = os::LearnTimestampCounter();
  const bool by_kernel = clock_ == "kernel" || (clock_ == "auto" && !counter.IsSteady());
  tracer::SetTickSource(by_kernel ? tracer::TickSource::kKernel : tracer::TickSource::kCounter);
  if (global.quiet || counter.IsSteady() || clock_ == "kernel") return;
  const std::string why = fmt::format(
      "the time stamp counter of this CPU is not steady (the kernel keeps its time by {})",
      counter.kernel_clock.empty() ? "another clock" : counter.kernel_clock);
  if (by_kernel) {
    Print(stderr, "stackreel: {}: times are the kernel's, and each takes a system call\n", why);
  } else {
    Print(stderr, "stackreel: {}: times may be wrong\n", why);
  }
}

// Milliseconds to the next look; nothing if the time is over.
std::optional<int> TraceCommand::TimeLeft() const {
  constexpr int kTickMs = 100;
  if (!duration_s_) return kTickMs;
  const double left =
      *duration_s_ - std::chrono::duration<double>(steady_clock::now() - begun_).count();
  if (left <= 0) return std::nullopt;
  return std::min(kTickMs, static_cast<int>(left * 1000) + 1);
}

// Answers who asks; true if that was to end the trace, and `leaving_` waits for the answer.
bool TraceCommand::Converse(tracer::TraceSession& session, const tracer::ControlServer& server) {
  auto conversation = server.Accept();
  if (!conversation) return false;
  const auto request = tracedata::DecodeRequest(conversation->request);
  tracedata::ControlAnswer answer;
  if (!request) {
    answer.error = request.error();
  } else if (request->kind == tracedata::ControlRequest::Kind::kDetach) {
    leaving_ = std::move(*conversation);
    return true;
  } else {
    answer = AnswerRequest(session, *request);
  }
  // Who has gone away meanwhile needs no answer.
  (void)tracer::ControlServer::Answer(std::move(*conversation), tracedata::Encode(answer));
  return false;
}

TraceEnd TraceCommand::Await(tracer::TraceSession& session, const EndSignals& signals,
                             const tracer::ControlServer* server) {
  begun_ = steady_clock::now();
  while (true) {
    const auto wait = TimeLeft();
    if (!wait) return TraceEnd::kDuration;
    pollfd events[] = {
        {.fd = signals.fd(), .events = POLLIN, .revents = 0},
        {.fd = session.pidfd(), .events = POLLIN, .revents = 0},
        {.fd = session.asked_fd(), .events = POLLIN, .revents = 0},
        {.fd = server != nullptr ? server->fd() : -1, .events = POLLIN, .revents = 0}};
    (void)poll(events, std::size(events), *wait);
    if (const auto ended = session.Ended()) return *ended;
    if (const auto came = signals.Next()) {
      // A command that is told to end is traced to its end.
      if (session.child() == nullptr) return TraceEnd::kSignal;
      if (!os::CommandGotItToo(*came)) session.child()->Signal(static_cast<int>(came->ssi_signo));
    }
    if ((events[3].revents & POLLIN) != 0 && Converse(session, *server)) {
      return TraceEnd::kRequest;
    }
    if (const Status tended = session.Tend(); !tended && !write_error_told_) {
      write_error_told_ = true;
      Print(stderr, "stackreel: warning: {}; the trace goes on without\n", tended.error().message);
    }
  }
}

// Of what was named, what is not here yet: or never, as of a name that is misspelt.
void TellWhatIsAwaited(tracer::TraceSession& session) {
  const std::vector<std::string> awaited = session.Awaited();
  for (const std::string& pattern : awaited) {
    Print(stderr, "stackreel: '{}' waits for its module, which is not loaded yet\n", pattern);
  }
  for (const std::string& pattern : session.Unmatched()) {
    if (std::ranges::find(awaited, pattern) != awaited.end()) continue;
    Print(stderr, "stackreel: '{}' names nothing in this program; later ones may have it\n",
          pattern);
  }
}

Result<int> TraceCommand::Run(const GlobalOptions& global) {
  TRY(Convert());
  TRY(ConvertSamples(global));
  if (!options_.command.empty()) {
    if (const auto found = os::FindCommand(options_.command.front()); !found) {
      PrintError(found.error(), global);
      return found.error().kind == ErrorKind::kNotFound ? kExitNotFound : kExitNotRunnable;
    }
  }
  ChooseClock(global);
  const EndSignals signals;
  options_.signals = signals.inherited();
  const auto executor = os::MakeThreadPool(global.threads);
  auto session = tracer::TraceSession::Begin(std::move(options_), *executor);
  if (!session) {
    const int code = PrintError(session.error(), global);
    return code == kExitUsage ? kExitUsage : static_cast<int>(kExitCannotMeasure);
  }
  const auto& control = (*session)->control();
  if (!control) PrintError(control.error(), global);
  if (!global.quiet && (*session)->child() == nullptr) {
    const tracer::PatchCounts& begun = (*session)->begun_with();
    Print(stderr, "stackreel: tracing {} of process {}; Ctrl-C ends it\n",
          Plural(begun.patched, "function"), (*session)->pid());
  }
  if (!global.quiet) TellWhatIsAwaited(**session);
  const TraceEnd end = Await(**session, signals, control ? control->get() : nullptr);
  const auto summary = (*session)->Finish(end);
  if (leaving_.peer.valid()) {
    tracedata::ControlAnswer answer;
    if (summary) {
      answer = AnswerDetached(*summary);
    } else {
      answer.error = summary.error();
    }
    (void)tracer::ControlServer::Answer(std::move(leaving_), tracedata::Encode(answer));
  }
  if (!summary) return Fail(summary.error());
  return Report(*summary, global);
}

// What was sampled; false if not all of it could be written.
bool TraceCommand::ReportSamples(const GlobalOptions& global) const {
  if (companion_ == nullptr || !companion_->summary()) return true;
  const Result<record::RecordSummary>& recorded = *companion_->summary();
  if (!recorded) {
    PrintError(recorded.error(), global);
    return false;
  }
  if (!global.quiet) {
    Print(stderr, "stackreel: {}\n", DescribeSamples(*recorded));
    if (recorded->lost != 0) Print(stderr, "  records were lost where a ring was full\n");
    if (global.verbose > 0) {
      for (const auto& [counter, n] : recorded->counters.values()) {
        Print(stderr, "  {:<40} {}\n", counter, n);
      }
    }
  }
  if (!recorded->write_failed) return true;
  PrintError(Error(ErrorKind::kIo, fmt::format("sampling stopped: {}; what was written up to then "
                                               "is kept",
                                               recorded->ended_by)),
             global);
  return false;
}

int TraceCommand::Report(const TraceSummary& summary, const GlobalOptions& global) const {
  const bool goes_on = summary.end == TraceEnd::kDuration || summary.end == TraceEnd::kSignal ||
                       summary.end == TraceEnd::kRequest;
  uint64_t lost = summary.collected.unwritten;
  for (const uint64_t calls : summary.lost) lost += calls;
  if (!global.quiet) {
    Print(stderr, "stackreel: {} of {} in {}, {} lost; {} bytes in {}\n",
          Plural(summary.collected.calls, "call"), Plural(summary.patched.patched, "function"),
          Plural(summary.collected.threads, "thread"), lost, summary.bytes, summary.directory);
    for (const std::string& pattern : summary.unmatched) {
      Print(stderr, "  '{}' has matched nothing\n", pattern);
    }
    for (const auto& [reason, count] : summary.patched.refused) {
      Print(stderr, "  {} not patched: {}\n", Plural(count, "function"), reason);
    }
    if (!summary.anything_patched && summary.patched.refused.empty()) {
      // Of what came later.
      for (const auto& [reason, count] : summary.sites.refused) {
        Print(stderr, "  {} not patched: {}\n", Plural(count, "function"), reason);
      }
    }
    if (summary.followed.patched != 0) {
      Print(stderr, "  {} patched in {} later\n", Plural(summary.followed.patched, "function"),
            summary.executed != 0 ? "what was executed or loaded" : "libraries that were loaded");
    }
    for (const auto& [reason, count] : summary.without_values) {
      Print(stderr, "  {} without values: {}\n", Plural(count, "function"), reason);
    }
    if (summary.texts_unread) {
      Print(stderr,
            "  texts were not read: the program's filter of system calls (seccomp) might end it\n");
    }
    for (const auto& [reason, count] : summary.acting.refused) {
      Print(stderr, "  {} of filters not patched: {}\n", Plural(count, "function"), reason);
    }
    if (summary.patched.deferred != 0) {
      Print(stderr, "  {} patched late: a thread was inside\n",
            Plural(summary.patched.deferred, "function"));
    }
    if (summary.executed != 0) {
      Print(stderr, "  followed into {}\n", Plural(summary.executed, "program"));
    }
    if (summary.executed_children != 0) {
      const bool one = summary.executed_children == 1;
      Print(stderr, "  {} executed {}, not traced{}\n",
            one ? "1 child process has"
                : fmt::format("{} child processes have", summary.executed_children),
            one ? "another program" : "other programs",
            summary.child_error ? ": " + summary.child_error->message
            : summary.follows   ? ""
                                : "; see --follow");
    }
    if (summary.end == TraceEnd::kExecuted) {
      Print(stderr, "  the process has executed another program, which is not traced{}\n",
            summary.not_followed ? ": " + summary.not_followed->message : "; see --follow");
    }
    if (goes_on && summary.detached && summary.modified == 0) {
      Print(stderr, "  detached: every byte is as it was, {} put back\n",
            summary.put_back == 1 ? std::string("1 return address")
                                  : fmt::format("{} return addresses", summary.put_back));
    }
    if (global.verbose > 0) {
      Print(stderr, "  its threads were held {} times, for {:.1f} ms at most\n", summary.holds,
            static_cast<double>(summary.longest_hold.count()) / 1e3);
      for (const auto& [kind, count] : summary.sites.by_kind) {
        Print(stderr, "  {:<24} {}\n", kind, count);
      }
    }
  }
  const bool sampled = ReportSamples(global);
  for (const uint32_t pid : summary.not_left) {
    PrintError(
        Error(ErrorKind::kIo, fmt::format("process {}, which was followed, could not be left "
                                          "whole",
                                          pid))
            .WithCure(fmt::format("stackreel detach -p {}", pid)),
        global);
  }
  if (!summary.not_left.empty()) return kExitFailed;
  if (goes_on && (!summary.detached || summary.modified != 0)) {
    PrintError(Error(ErrorKind::kIo,
                     fmt::format("the process could not be left whole: {} busy, {} not as they "
                                 "were",
                                 Plural(summary.busy, "thread"), Plural(summary.modified, "site")))
                   .WithCure(fmt::format("stackreel detach -p {}", summary.pid)),
               global);
    return kExitFailed;
  }
  if (!summary.write_error) {
    PrintError(summary.write_error.error(), global);
    return kExitFailed;
  }
  if (!summary.anything_patched && !summary.unmatched.empty()) {
    PrintError(Error(ErrorKind::kNotFound,
                     "nothing was recorded: no program or library that came has functions that "
                     "could be patched as named")
                   .WithCure("functions of all modules: 'NAME@*'; every function: -P ."),
               global);
    return kExitFailed;
  }
  if (!sampled) return kExitFailed;
  return summary.exit_code.value_or(kExitDone);
}

}  // namespace

std::unique_ptr<Command> MakeTraceCommand() { return std::make_unique<TraceCommand>(); }

}  // namespace stackreel::cli
