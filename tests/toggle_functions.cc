// Runs a program, and patches and unpatches its functions while it runs.
//   toggle_functions [--toggles=N] [--keep-from=TIME] [--follow] [--traps] [--pattern=P]…
//                    --trace=DIR -- PROGRAM ARGUMENTS…
// Without --toggles (or with 0) it starts the program patched, and leaves it so to its end.
// --keep-from: shorter calls are not written, for so many toggles that the trace would be too long.
// --traps: functions that nothing else can be put at get a trap.
// Fails if the program does, if the process is not left as it was found (sites, and all code
// against the files that it is of), or if the trace is damaged or holds more calls of a function
// than the program says it made ("calls FUNCTION N" on its stdout); or, where it was patched from
// the start, fewer than that without saying so.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "os/file.h"
#include "os/proc.h"
#include "os/thread_pool.h"
#include "symbolize/symbol_table.h"
#include "tracedata/trace_reader.h"
#include "tracer/trace_session.h"

namespace stackreel {
namespace {

using tracer::TraceSession;

constexpr int kEndedBefore = 76;  // the program, before it was attached to
constexpr auto kBeforeAttach = std::chrono::milliseconds(200);
constexpr auto kBetweenLooks = std::chrono::milliseconds(10);

struct Options {
  uint64_t toggles = 0;
  std::string keep_from;
  bool traps = false;
  std::vector<std::string> patterns;
  bool follow = false;
  std::string trace;
  std::vector<std::string> command;
};

int Complain(std::string_view what) {
  fmt::print(stderr, "{}\n", what);
  return 1;
}

// Sends the stdout of this process, and of those it starts, to a file while it lives.
class StdoutToFile {
 public:
  explicit StdoutToFile(const std::string& path) : saved_(dup(STDOUT_FILENO)) {
    const os::Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    dup2(file.get(), STDOUT_FILENO);
  }
  StdoutToFile(const StdoutToFile&) = delete;
  StdoutToFile& operator=(const StdoutToFile&) = delete;
  ~StdoutToFile() { dup2(saved_.get(), STDOUT_FILENO); }

 private:
  os::Fd saved_;
};

std::string OutputPath(const Options& options) { return options.trace + ".stdout"; }

// Ends a hostile program before its time.
class EndFile {
 public:
  // What is started afterwards listens to it.
  explicit EndFile(const Options& options)
      : file_(open((options.trace + ".end").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    Set('\0');
    setenv("HOSTILE_END", (options.trace + ".end").c_str(), 1);
  }
  void EndNow() { Set('\1'); }

 private:
  void Set(char byte) {
    if (pwrite(file_.get(), &byte, 1, 0) != 1) perror("HOSTILE_END");
  }
  os::Fd file_;
};

// The bytes of code that differ from the files that they are of, as lines of text. A process that
// runs may map another library between two looks at it, so only what is found in a process that is
// stopped is certain.
std::vector<std::string> ChangedCode(uint32_t pid) {
  std::vector<std::string> changed;
  const auto maps = os::ReadProcMaps(pid);
  const os::Fd memory(open(fmt::format("/proc/{}/mem", pid).c_str(), O_RDONLY | O_CLOEXEC));
  if (!maps || !memory.valid()) return changed;  // it has ended
  for (const os::ProcMapping& mapping : *maps) {
    if ((mapping.prot & PROT_EXEC) == 0 || !mapping.path.starts_with('/')) continue;
    const auto file = os::MapFile(mapping.path);
    if (!file) continue;
    const ByteView all = (*file)->bytes();
    if (mapping.offset >= all.size()) continue;
    const ByteView wanted =
        all.subspan(mapping.offset)
            .first(std::min<uint64_t>(all.size() - mapping.offset, mapping.end - mapping.start));
    std::vector<uint8_t> there(wanted.size());
    const ssize_t got =
        pread(memory.get(), there.data(), there.size(), static_cast<off_t>(mapping.start));
    for (ssize_t i = 0; i < got; ++i) {
      const auto at = static_cast<size_t>(i);
      if (there[at] == wanted[at]) continue;
      changed.push_back(fmt::format("{} at {:#x}: {:02x}, not {:02x}", mapping.path,
                                    mapping.offset + at, there[at], wanted[at]));
    }
  }
  return changed;
}

// How many bytes of code differ from the files that they are of, in a child of this process. It is
// stopped only if it seems to have any: a stop ends some of its waits early.
size_t CountChangedCode(pid_t pid) {
  if (ChangedCode(static_cast<uint32_t>(pid)).empty() || kill(pid, SIGSTOP) != 0) return 0;
  // Every thread of it has stopped when this returns; its end is left to be waited for.
  siginfo_t unused;
  if (waitid(P_PID, static_cast<id_t>(pid), &unused, WSTOPPED | WEXITED | WNOWAIT) != 0) return 0;
  const std::vector<std::string> changed = ChangedCode(static_cast<uint32_t>(pid));
  kill(pid, SIGCONT);
  for (const std::string& line : changed) fmt::print(stderr, "{}\n", line);
  return changed.size();
}

pid_t StartProgram(const Options& options) {
  std::vector<char*> arguments;
  for (const std::string& word : options.command) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  const StdoutToFile redirected(OutputPath(options));
  const pid_t pid = fork();
  if (pid != 0) return pid;
  execv(arguments[0], arguments.data());
  _exit(127);
}
// Its exit code; 128 and the signal that killed it.
int WaitFor(pid_t pid) {
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::vector<tracer::PatternChoice> Patterns(const Options& options, tracer::Choice choice) {
  std::vector<tracer::PatternChoice> patterns;
  for (const std::string& text : options.patterns) {
    auto pattern = tracer::FunctionPattern::Parse(text);
    if (pattern) patterns.push_back({std::move(*pattern), choice});
  }
  return patterns;
}

// What a trace holds of each function, by name.
struct Counted {
  std::map<std::string, uint64_t, std::less<>> calls;
  bool complete = true;  // nothing is said to be lost
  std::string damage;
};

Result<Counted> CountCalls(const std::string& folder) {
  TRY_ASSIGN(auto calls, os::OpenSource(folder + "/" + tracedata::kCallsFile));
  TRY_ASSIGN(auto facts, os::OpenSource(folder + "/" + tracedata::kFactsFile));
  TRY_ASSIGN(const auto source, tracedata::OpenTrace(std::move(calls), std::move(facts)));
  Counted counted;
  std::map<uint32_t, uint64_t> by_row;
  for (size_t thread = 0; thread < source->tables().threads.size(); ++thread) {
    const auto events = source->CallsOf(thread);
    while (true) {
      TRY_ASSIGN(const tracedata::EventBatch batch, events->Next());
      if (batch.events.empty()) break;
      for (const tracedata::OrderedEvent& event : batch.events) {
        if (event.kind() == tracedata::EventKind::kEntry) ++by_row[event.function()];
        if (event.kind() == tracedata::EventKind::kLost) counted.complete = false;
      }
    }
  }
  for (const auto& [row, count] : by_row) {
    counted.calls[symbolize::Demangle(source->tables().functions[row].name)] += count;
  }
  if (!source->tables().losses.empty()) counted.complete = false;
  counted.damage = source->damage();
  return counted;
}

// The program's own count against the trace's.
int CompareCounts(const std::string& output, const Counted& counted, bool from_start) {
  std::istringstream lines(output);
  std::string word, function;
  uint64_t made = 0;
  while (lines >> word >> function >> made) {
    const auto found = counted.calls.find(function);
    const uint64_t recorded = found == counted.calls.end() ? 0 : found->second;
    if (recorded > made || (from_start && counted.complete && recorded < made)) {
      return Complain(fmt::format("{}: {} calls made, {} recorded", function, made, recorded));
    }
    fmt::print("{} of {} calls of {}{}; ", recorded, made, function,
               counted.complete ? "" : " (losses told)");
  }
  return 0;
}

int CheckEnd(const Options& options, int exit_code, bool from_start) {
  if (exit_code == 77) return 77;
  if (exit_code != 0) return Complain(fmt::format("the program ended with {}", exit_code));
  const auto counted = CountCalls(options.trace);
  if (!counted) return Complain(counted.error().ToString());
  if (!counted->damage.empty()) return Complain("the trace is damaged: " + counted->damage);
  return CompareCounts(os::ReadTextFile(OutputPath(options)).value_or(""), *counted, from_start);
}

tracer::TraceOptions WantedOf(const Options& options) {
  tracer::TraceOptions wanted;
  wanted.output = options.trace;
  wanted.patterns = Patterns(options, tracer::Choice::kPatch);
  wanted.traps = options.traps;
  return wanted;
}

// Changes them back and forth until there were enough, or the program has ended.
Result<uint64_t> ToggleAll(TraceSession& session, const Options& options) {
  const auto on = Patterns(options, tracer::Choice::kPatch);
  const auto off = Patterns(options, tracer::Choice::kUnpatch);
  uint64_t toggles = 0;
  for (; toggles < options.toggles && !session.Ended(); ++toggles) {
    const auto changed = session.Apply(toggles % 2 == 0 ? off : on);
    const Status tended = session.Tend();
    if (session.Ended()) break;
    if (!changed) return Fail(changed.error());
    if (!changed->error.empty()) return Fail(ErrorKind::kIo, changed->error);
    if (!tended) return Fail(tended.error());
  }
  return toggles;
}

int Toggle(const Options& options, Executor& executor) {
  EndFile end_file(options);
  const pid_t pid = StartProgram(options);
  // What toggles is not to wait for its turn among the program's threads, where that is allowed.
  (void)setpriority(PRIO_PROCESS, 0, -20);
  std::this_thread::sleep_for(kBeforeAttach);
  tracer::TraceOptions wanted = WantedOf(options);
  wanted.pid = static_cast<uint32_t>(pid);
  if (!options.keep_from.empty()) {
    wanted.filters.push_back(
        {.kind = tracedata::FilterOption::Kind::kTime, .text = options.keep_from});
  }
  auto session = TraceSession::Begin(std::move(wanted), executor);
  if (!session) {
    // What cannot be tried here ends early, and says so.
    const int code = WaitFor(pid);
    if (code == 77) return code;
    (void)Complain(session.error().ToString());
    if (code != 0) return Complain(fmt::format("the program ended with {}", code));
    return session.error().kind == ErrorKind::kNotFound ? kEndedBefore : 1;
  }
  const size_t patched = (*session)->begun_with().patched;
  const auto toggles = ToggleAll(**session, options);
  const auto end = (*session)->Ended();
  const auto summary = (*session)->Finish(end.value_or(tracer::TraceEnd::kRequest));
  const size_t changed = CountChangedCode(pid);
  end_file.EndNow();
  const int exit_code = WaitFor(pid);
  if (changed != 0) return Complain(fmt::format("{} bytes of code differ from the file", changed));
  if (!toggles) return Complain(toggles.error().ToString());
  if (!summary) return Complain(summary.error().ToString());
  if (summary->end == tracer::TraceEnd::kRequest &&
      (!summary->detached || summary->modified != 0)) {
    return Complain(fmt::format("not left as it was: {} threads busy, {} sites differ",
                                summary->busy, summary->modified));
  }
  const int code = CheckEnd(options, exit_code, /*from_start=*/false);
  if (code == 0) {
    fmt::print("{} toggles of {} functions, longest stop {} us\n", *toggles, patched,
               summary->longest_hold.count());
  }
  return code;
}

int TraceFromStart(const Options& options, Executor& executor) {
  tracer::TraceOptions wanted = WantedOf(options);
  wanted.command = options.command;
  wanted.follow = options.follow;
  auto session = [&] {
    const StdoutToFile redirected(OutputPath(options));
    return TraceSession::Begin(std::move(wanted), executor);
  }();
  if (!session) return Complain(session.error().ToString());
  std::optional<tracer::TraceEnd> end;
  while (!(end = (*session)->Ended())) {
    std::this_thread::sleep_for(kBetweenLooks);
    if (const Status tended = (*session)->Tend(); !tended && !(*session)->Ended()) {
      return Complain(tended.error().ToString());
    }
  }
  const size_t patched = (*session)->begun_with().patched;
  const auto summary = (*session)->Finish(*end);
  if (!summary) return Complain(summary.error().ToString());
  const int code = CheckEnd(options, summary->exit_code.value_or(0), /*from_start=*/true);
  if (code == 0) fmt::print("{} functions patched from the start\n", patched);
  return code;
}

int Main(int argc, char** argv) {
  Options options;
  int i = 1;
  for (; i < argc && std::string_view(argv[i]) != "--"; ++i) {
    const std::string_view argument = argv[i];
    const auto value = [&](std::string_view name) {
      return argument.starts_with(name) ? std::string(argument.substr(name.size())) : "";
    };
    if (const auto text = value("--toggles="); !text.empty()) options.toggles = std::stoull(text);
    if (argument == "--traps") options.traps = true;
    if (const auto text = value("--keep-from="); !text.empty()) options.keep_from = text;
    if (const auto text = value("--pattern="); !text.empty()) options.patterns.push_back(text);
    if (argument == "--follow") options.follow = true;
    if (const auto text = value("--trace="); !text.empty()) options.trace = text;
  }
  options.command.assign(argv + std::min(i + 1, argc), argv + argc);
  if (options.command.empty() || options.trace.empty()) return Complain("see the source's head");
  if (options.patterns.empty()) options.patterns = {"."};
  const auto executor = os::MakeThreadPool(0);
  return options.toggles == 0 ? TraceFromStart(options, *executor) : Toggle(options, *executor);
}

}  // namespace
}  // namespace stackreel

int main(int argc, char** argv) { return stackreel::Main(argc, argv); }
