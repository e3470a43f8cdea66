#include "views/trace_dump.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/plural.h"
#include "tracedata/loss_reason.h"
#include "views/json_text.h"
#include "views/trace_text_pieces.h"
#include "views/value_text.h"

namespace stackreel::views {

using analyze::CallStep;
using analyze::TraceCalls;
using tracedata::EventKind;
using tracedata::TraceTables;
using tracedata::TraceThread;

namespace {

std::string_view KindText(const CallStep& step) {
  switch (step.kind) {
    case EventKind::kEntry:
      return "entry";
    case EventKind::kExit:
      return "exit";
    case EventKind::kLeft:
      return step.unfinished ? "open" : "left";
    case EventKind::kLost:
      return "lost";
    case EventKind::kEnd:
    case EventKind::kCall:
    case EventKind::kBase:
      break;
  }
  return "?";
}

// How a process ended, of its status as wait(2) gives it: the signal in its low seven bits, the
// code in its second byte.
std::string EndText(int32_t status) {
  if (status == tracedata::ProcessExit::kUnknownStatus) return "code unknown";
  const int signal = status & 0x7f;
  if (signal != 0) return fmt::format("killed by signal {}", signal);
  return fmt::format("code {}", status >> 8 & 0xff);
}

// Arguments of calls on their way to the calls' ends, where some formats want them.
class OpenArguments {
 public:
  explicit OpenArguments(TraceCalls& calls) : values_(calls) {}
  // To be called for each step.
  void Enter(const CallStep& step, const TraceThread& thread) {
    if (step.kind != EventKind::kEntry || !values_.Has(step)) return;
    std::string text;
    values_.Append(text, step);
    open_[&thread].emplace_back(step.depth, std::move(text));
  }
  // Of a call that ends; empty if it has none.
  std::string Leave(const CallStep& step, const TraceThread& thread) {
    const auto at = open_.find(&thread);
    if (at == open_.end()) return {};
    auto& calls = at->second;
    while (!calls.empty() && calls.back().first > step.depth) calls.pop_back();
    if (calls.empty() || calls.back().first != step.depth) return {};
    std::string text = std::move(calls.back().second);
    calls.pop_back();
    return text;
  }
  std::string Result(const CallStep& step) {
    std::string text;
    if (values_.Has(step)) values_.Append(text, step);
    return text;
  }

 private:
  ValueText values_;
  std::map<const TraceThread*, std::vector<std::pair<uint32_t, std::string>>> open_;  // by depth
};

// Calls put(step, thread, text) for each step in order of time, then passes the text on.
template <typename Put>
Status EachStep(TraceCalls& calls, TextStream& out, Put put) {
  analyze::MergedSteps steps(calls);
  CallStep step;
  while (true) {
    TRY_ASSIGN(const bool more, steps.Next(step));
    if (!more) return {};
    put(step, calls.source().tables().threads[steps.thread_row()], out.text());
    TRY(out.Pass());
  }
}

// "3.141" of 3141 nanoseconds.
void AppendMicroseconds(std::string& text, uint64_t nanoseconds) {
  AppendNumber(text, nanoseconds / 1000);
  text += '.';
  AppendNumber(text, nanoseconds % 1000, 3, '0');
}

std::string_view ActionText(tracedata::PatchEvent::Action action) {
  using Action = tracedata::PatchEvent::Action;
  switch (action) {
    case Action::kPatched:
      return "patched";
    case Action::kUnpatched:
      return "unpatched";
    case Action::kDeferred:
      return "deferred";
    case Action::kRefused:
      return "refused";
    case Action::kDetached:
      return "detached";
  }
  return "?";
}

// What was patched, by action and reason; of refusals the functions that were not patched later.
std::map<std::string, uint64_t> PatchCounts(const TraceTables& tables) {
  std::map<std::string, uint64_t> counts;
  std::map<uint32_t, std::string> refused;
  for (const tracedata::PatchEvent& patch : tables.patches) {
    std::string name(ActionText(patch.action));
    if (!patch.reason.empty()) name += ": " + patch.reason;
    if (patch.action == tracedata::PatchEvent::Action::kRefused) {
      refused[patch.function] = std::move(name);
      continue;
    }
    if (patch.action == tracedata::PatchEvent::Action::kPatched) refused.erase(patch.function);
    ++counts[name];
  }
  for (const auto& [function, name] : refused) ++counts[name];
  return counts;
}

// Calls that were not recorded, by reason; 0: it is not known how many.
std::vector<std::pair<std::string, uint64_t>> LossesOf(const TraceTables& tables,
                                                       const tracedata::CallLosses& losses) {
  std::vector<std::pair<std::string, uint64_t>> all;
  for (uint32_t reason = 0; reason < losses.calls.size(); ++reason) {
    if (losses.calls[reason] == 0) continue;
    all.emplace_back(tracedata::LossReasonText(reason), losses.calls[reason]);
  }
  if (losses.places != 0) all.emplace_back("in " + Plural(losses.places, "place"), 0);
  for (const auto& loss : tables.losses) {
    if (tracedata::LossReasonOf(loss.reason)) continue;  // counted above
    all.emplace_back(fmt::format("of process {}: {}", loss.pid, loss.reason), loss.calls);
  }
  return all;
}

// "-F parse -D 3", or that there are none.
std::string FiltersText(const tracedata::FilterChange& change) {
  std::string text;
  for (const tracedata::FilterOption& filter : change.filters) {
    if (!text.empty()) text += ' ';
    text += tracedata::ToText(filter);
  }
  return text.empty() ? "none" : text;
}

void AppendFacts(TraceCalls& calls, std::string& text) {
  const TraceTables& tables = calls.source().tables();
  const auto time = [&](uint64_t ticks) {
    std::string seconds;
    AppendSeconds(seconds, calls.scale().Time(ticks));
    return seconds;
  };
  const auto put = std::back_inserter(text);
  for (const auto& module : tables.modules) {
    fmt::format_to(put, "module {} {} {}\n", module.id, module.build_id.ToHex(), module.path);
  }
  for (const auto& load : tables.loads) {
    fmt::format_to(put, "load {} pid {} module {} {:#x}-{:#x} bias {:#x}\n", time(load.ticks),
                   load.pid, load.module, load.start.value, load.end.value, load.bias);
  }
  for (const auto& function : tables.functions) {
    fmt::format_to(put, "function {} module {} {:#x} {} {}\n", function.id,
                   static_cast<int32_t>(function.module), function.svma.value, function.size,
                   function.name);
  }
  for (const auto& thread : tables.threads) {
    fmt::format_to(put, "thread {} pid {} tid {} {}\n", thread.index, thread.pid, thread.tid,
                   thread.comm);
  }
  for (const auto& fork : tables.forks) {
    fmt::format_to(put, "fork {} pid {} parent {}\n", time(fork.ticks), fork.pid, fork.parent_pid);
  }
  for (const auto& exec : tables.execs) {
    fmt::format_to(put, "exec {} pid {} {}\n", time(exec.ticks), exec.pid, exec.path);
  }
  for (const auto& exit : tables.exits) {
    fmt::format_to(put, "exit {} pid {} {}\n", time(exit.ticks), exit.pid, EndText(exit.status));
  }
  for (const auto& patch : tables.patches) {
    fmt::format_to(put, "{} {} pid {} function {} {}\n", ActionText(patch.action),
                   time(patch.ticks), patch.pid, patch.function, patch.reason);
  }
  for (const auto& change : tables.filters) {
    fmt::format_to(put, "filters {} pid {} {}\n", time(change.ticks), change.pid,
                   FiltersText(change));
  }
}

}  // namespace

Status TraceDumpText(TraceCalls& calls, ByteSink& sink) {
  TextStream out(sink);
  AppendFacts(calls, out.text());
  ValueText values(calls);
  TRY(EachStep(calls, out, [&](const CallStep& step, const TraceThread& thread, std::string& text) {
    AppendSeconds(text, calls.scale().Time(step.ticks), 15);
    text += " [";
    AppendNumber(text, thread.pid, 6);
    text += '/';
    AppendNumber(text, thread.tid, 6);
    text += "] ";
    text += KindText(step);
    text += ' ';
    if (step.kind == EventKind::kLost) {
      AppendNumber(text, step.lost);
      text += ' ';
      text += tracedata::LossReasonText(step.function);
    } else {
      text += calls.names().NameOf(step.function);
      if (values.Has(step)) {
        text += step.kind == EventKind::kEntry ? " (" : " = ";
        values.Append(text, step);
        if (step.kind == EventKind::kEntry) text += ')';
      }
    }
    text += '\n';
  }));
  return out.Flush();
}

Status TraceDumpJson(TraceCalls& calls, ByteSink& sink) {
  TextStream out(sink);
  out.text() += "{\"schema\":\"stackreel.trace_events\",\"version\":1}\n";
  ValueText value_text(calls);
  TRY(EachStep(calls, out, [&](const CallStep& step, const TraceThread& thread, std::string& text) {
    text += "{\"time_ns\":";
    AppendNumber(text, calls.scale().Time(step.ticks));
    text += ",\"pid\":";
    AppendNumber(text, thread.pid);
    text += ",\"tid\":";
    AppendNumber(text, thread.tid);
    text += ",\"event\":\"";
    text += KindText(step);
    text += "\",\"depth\":";
    AppendNumber(text, step.depth);
    if (step.kind == EventKind::kLost) {
      text += ",\"calls\":";
      AppendNumber(text, step.lost);
      text += ",\"reason\":";
      AppendJsonString(text, tracedata::LossReasonText(step.function));
    } else {
      text += ",\"function\":";
      AppendJsonString(text, calls.names().NameOf(step.function));
      if (step.kind != EventKind::kEntry) {
        text += ",\"duration_ns\":";
        AppendNumber(text, calls.scale().Nanoseconds(step.duration));
      }
      if (value_text.Has(step)) {
        std::string values;
        value_text.Append(values, step);
        text += ",\"values\":";
        AppendJsonString(text, values);
      }
    }
    text += "}\n";
  }));
  return out.Flush();
}

Status TraceDumpChrome(TraceCalls& calls, std::span<const analyze::TimedSample> samples,
                       ByteSink& sink) {
  TextStream out(sink);
  out.text() += "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
  bool first = true;
  for (const size_t row : calls.threads()) {
    const TraceThread& thread = calls.source().tables().threads[row];
    out.text() += fmt::format(
        "{}\n{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{},\"tid\":{},\"args\":{{\"name\":",
        first ? "" : ",", thread.pid, thread.tid);
    AppendJsonString(out.text(), thread.comm);
    out.text() += "}}";
    first = false;
  }
  OpenArguments arguments(calls);
  TRY(EachStep(calls, out, [&](const CallStep& step, const TraceThread& thread, std::string& text) {
    arguments.Enter(step, thread);
    if (step.kind == EventKind::kEntry || step.kind == EventKind::kLost) return;
    text += ",\n{\"ph\":\"X\",\"pid\":";
    AppendNumber(text, thread.pid);
    text += ",\"tid\":";
    AppendNumber(text, thread.tid);
    text += ",\"ts\":";
    AppendMicroseconds(text, calls.scale().Time(step.ticks - step.duration));
    text += ",\"dur\":";
    AppendMicroseconds(text, calls.scale().Nanoseconds(step.duration));
    text += ",\"name\":";
    AppendJsonString(text, calls.names().NameOf(step.function));
    const std::string given = arguments.Leave(step, thread);
    const std::string result = arguments.Result(step);
    if (!given.empty() || !result.empty()) {
      text += ",\"args\":{";
      if (!given.empty()) {
        text += "\"arguments\":";
        AppendJsonString(text, given);
      }
      if (!result.empty()) {
        text += given.empty() ? "\"returns\":" : ",\"returns\":";
        AppendJsonString(text, result);
      }
      text += '}';
    }
    text += '}';
  }));
  const auto& tids = calls.selection().tids;
  for (const analyze::TimedSample& sample : samples) {
    if (!tids.empty() && std::ranges::find(tids, sample.tid) == tids.end()) continue;
    std::string& text = out.text();
    text += first ? "\n" : ",\n";
    first = false;
    text += fmt::format("{{\"ph\":\"P\",\"pid\":{},\"tid\":{},\"ts\":", sample.pid, sample.tid);
    AppendMicroseconds(text, sample.time);
    text += ",\"name\":";
    AppendJsonString(text, sample.function);
    text += '}';
    TRY(out.Pass());
  }
  out.text() += "\n]}\n";
  return out.Flush();
}

std::string TraceInfoText(TraceCalls& calls, const tracedata::CallLosses& losses,
                          const std::optional<TraceSamples>& samples) {
  const TraceTables& tables = calls.source().tables();
  std::string text;
  const auto line = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) text += fmt::format("{:<12} {}\n", name, value);
  };
  const auto number = [&](std::string_view name, uint64_t value) {
    line(name, fmt::format("{}", value));
  };
  line("format", calls.source().FormatName());
  number("bytes", calls.source().bytes());
  line("command", tables.host.command_line);
  line("host", tables.host.host_name);
  line("kernel", tables.host.kernel);
  line("cpu", tables.host.cpu);
  if (tables.host.cpus != 0) number("cpus", tables.host.cpus);
  if (tables.host.memory_bytes != 0) number("memory", tables.host.memory_bytes);
  line("clock", fmt::format("{} ticks per second", tables.clock.ticks_per_second));
  std::string start;
  AppendSeconds(start, calls.scale().Time(calls.first_ticks()));
  line("first call", start);
  number("modules", tables.modules.size());
  number("functions", tables.functions.size());
  number("threads", calls.threads().size());
  number("forks", tables.forks.size());
  for (const auto& exec : tables.execs) line("exec", fmt::format("{} {}", exec.pid, exec.path));
  for (const auto& exit : tables.exits) {
    line("exit", fmt::format("{} {}", exit.pid, EndText(exit.status)));
  }
  for (const auto& [name, count] : PatchCounts(tables)) line(name, fmt::format("{}", count));
  for (const auto& change : tables.filters) {
    std::string time;
    AppendSeconds(time, calls.scale().Time(change.ticks));
    line("filters", fmt::format("{} since {}", FiltersText(change), time));
  }
  for (const auto& [where, count] : LossesOf(tables, losses)) {
    line("lost", count == 0 ? "calls " + where : Plural(count, "call") + " " + where);
  }
  if (samples) {
    line("samples",
         fmt::format("{} of {} in {}, {} lost{}{}", samples->samples, samples->event, samples->file,
                     samples->lost, samples->clock.empty() ? "" : "; ", samples->clock));
  }
  line("damage", calls.source().damage());
  for (const auto& [name, count] : calls.source().counters().values()) number(name, count);
  return text;
}

namespace {

// Ends the list before it.
void AppendExits(std::string& out, const TraceTables& tables) {
  out += "],\n\"exits\":[";
  for (const auto& exit : tables.exits) {
    out += fmt::format("{}\n{{\"pid\":{}", &exit == tables.exits.data() ? "" : ",", exit.pid);
    const int signal = exit.status & 0x7f;
    if (exit.status == tracedata::ProcessExit::kUnknownStatus) {
      out += '}';
    } else if (signal != 0) {
      out += fmt::format(",\"signal\":{}}}", signal);
    } else {
      out += fmt::format(",\"code\":{}}}", exit.status >> 8 & 0xff);
    }
  }
  out += ']';
}

}  // namespace

std::string TraceInfoJson(TraceCalls& calls, const tracedata::CallLosses& losses,
                          const std::optional<TraceSamples>& samples) {
  const TraceTables& tables = calls.source().tables();
  std::string out = "{\"schema\":\"stackreel.trace_info\",\"version\":1";
  const auto text = [&](std::string_view name, std::string_view value) {
    out += fmt::format(",\n\"{}\":", name);
    AppendJsonString(out, value);
  };
  const auto number = [&](std::string_view name, uint64_t value) {
    out += fmt::format(",\n\"{}\":{}", name, value);
  };
  text("format", calls.source().FormatName());
  number("bytes", calls.source().bytes());
  text("command", tables.host.command_line);
  text("host", tables.host.host_name);
  text("kernel", tables.host.kernel);
  text("cpu", tables.host.cpu);
  number("cpus", tables.host.cpus);
  number("memory_bytes", tables.host.memory_bytes);
  number("ticks_per_second", tables.clock.ticks_per_second);
  number("first_ns", calls.scale().Time(calls.first_ticks()));
  number("functions", tables.functions.size());
  number("forks", tables.forks.size());
  if (samples) {
    out += ",\n\"samples\":{\"file\":";
    AppendJsonString(out, samples->file);
    out += fmt::format(",\"samples\":{},\"lost\":{},\"event\":", samples->samples, samples->lost);
    AppendJsonString(out, samples->event);
    out += ",\"clock\":";
    AppendJsonString(out, samples->clock);
    out += '}';
  }
  out += ",\n\"modules\":[";
  for (const auto& module : tables.modules) {
    out += &module == tables.modules.data() ? "\n{\"path\":" : ",\n{\"path\":";
    AppendJsonString(out, module.path);
    out += fmt::format(",\"build_id\":\"{}\"}}", module.build_id.ToHex());
  }
  out += "],\n\"threads\":[";
  bool first = true;
  for (const size_t row : calls.threads()) {
    const TraceThread& thread = tables.threads[row];
    out += fmt::format("{}\n{{\"pid\":{},\"tid\":{},\"comm\":", first ? "" : ",", thread.pid,
                       thread.tid);
    AppendJsonString(out, thread.comm);
    out += '}';
    first = false;
  }
  AppendExits(out, tables);
  out += ",\n\"patches\":{";
  first = true;
  for (const auto& [name, count] : PatchCounts(tables)) {
    if (!first) out += ',';
    AppendJsonString(out, name);
    out += fmt::format(":{}", count);
    first = false;
  }
  out += "},\n\"filters\":[";
  for (const auto& change : tables.filters) {
    out += fmt::format("{}\n{{\"since_ns\":{},\"pid\":{},\"options\":[",
                       &change == tables.filters.data() ? "" : ",",
                       calls.scale().Time(change.ticks), change.pid);
    for (const auto& filter : change.filters) {
      if (&filter != change.filters.data()) out += ',';
      AppendJsonString(out, tracedata::ToText(filter));
    }
    out += "]}";
  }
  out += "],\n\"losses\":[";
  first = true;
  for (const auto& [where, count] : LossesOf(tables, losses)) {
    out += first ? "\n{\"calls\":" : ",\n{\"calls\":";
    out += count == 0 ? std::string("null") : fmt::format("{}", count);
    out += ",\"where\":";
    AppendJsonString(out, where);
    out += '}';
    first = false;
  }
  out += ']';
  text("damage", calls.source().damage());
  out += ",\n\"counters\":{";
  first = true;
  for (const auto& [name, count] : calls.source().counters().values()) {
    out += fmt::format("{}\"{}\":{}", first ? "" : ",", name, count);
    first = false;
  }
  return out + "}}\n";
}

}  // namespace stackreel::views
