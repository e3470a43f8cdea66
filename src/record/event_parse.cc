#include "record/event_parse.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>
#include <linux/perf_event.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <numeric>
#include <optional>
#include <utility>

#include "os/file.h"
#include "os/proc.h"
#include "record/breakpoint_event.h"
#include "record/recorder.h"

namespace stackreel::record {

namespace {

using perfdata::Attr;
using perfdata::Event;

struct NamedEvent {
  const char* name;
  uint32_t type;
  uint64_t config;
};

constexpr NamedEvent kNamedEvents[] = {
    {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    {"cpu-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    {"cache-references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES},
    {"cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
    {"branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
    {"branch-instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
    {"branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
    {"bus-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BUS_CYCLES},
    {"stalled-cycles-frontend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND},
    {"idle-cycles-frontend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND},
    {"stalled-cycles-backend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND},
    {"idle-cycles-backend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND},
    {"ref-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES},
    {"cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK},
    {"task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
    {"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
    {"faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
    {"context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
    {"cs", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
    {"cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
    {"migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
    {"minor-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN},
    {"major-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ},
    {"alignment-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_ALIGNMENT_FAULTS},
    {"emulation-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_EMULATION_FAULTS},
    {"dummy", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY},
    {"bpf-output", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_BPF_OUTPUT},
    {"cgroup-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CGROUP_SWITCHES},
};

// Cache events: config = cache | op << 8 | result << 16. "L1-dcache-loads" counts accesses,
// "L1-dcache-load-misses" misses.
struct CachePart {
  const char* name;
  uint64_t code;
};
constexpr CachePart kCaches[] = {
    {"L1-dcache", PERF_COUNT_HW_CACHE_L1D}, {"L1-icache", PERF_COUNT_HW_CACHE_L1I},
    {"LLC", PERF_COUNT_HW_CACHE_LL},        {"dTLB", PERF_COUNT_HW_CACHE_DTLB},
    {"iTLB", PERF_COUNT_HW_CACHE_ITLB},     {"branch", PERF_COUNT_HW_CACHE_BPU},
    {"node", PERF_COUNT_HW_CACHE_NODE},
};
constexpr CachePart kCacheOps[] = {
    {"load", PERF_COUNT_HW_CACHE_OP_READ},
    {"store", PERF_COUNT_HW_CACHE_OP_WRITE},
    {"prefetch", PERF_COUNT_HW_CACHE_OP_PREFETCH},
};

template <typename Visit>
void ForEachCacheEvent(const Visit& visit) {
  for (const CachePart& cache : kCaches) {
    for (const CachePart& op : kCacheOps) {
      const uint64_t access = cache.code | op.code << 8;
      // "prefetch" has "prefetches", the others an s.
      const char* plural = op.code == PERF_COUNT_HW_CACHE_OP_PREFETCH ? "es" : "s";
      visit(fmt::format("{}-{}{}", cache.name, op.name, plural),
            access | uint64_t{PERF_COUNT_HW_CACHE_RESULT_ACCESS} << 16);
      visit(fmt::format("{}-{}-misses", cache.name, op.name),
            access | uint64_t{PERF_COUNT_HW_CACHE_RESULT_MISS} << 16);
    }
  }
}

bool FindBuiltin(std::string_view name, Attr& attr) {
  for (const NamedEvent& event : kNamedEvents) {
    if (name != event.name) continue;
    attr.type = event.type;
    attr.config = event.config;
    return true;
  }
  bool found = false;
  ForEachCacheEvent([&](const std::string& cache_name, uint64_t config) {
    if (name != cache_name) return;
    attr.type = PERF_TYPE_HW_CACHE;
    attr.config = config;
    found = true;
  });
  return found;
}

// A whole number, decimal or 0x hexadecimal; nothing if `text` is not all of one.
std::optional<uint64_t> ParseNumber(std::string_view text) {
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    text.remove_prefix(2);
    base = 16;
  }
  uint64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (result.ec != std::errc{} || result.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

// ---- modifiers ----

Status ApplyModifiers(std::string_view modifiers, const std::string& text, Attr& attr) {
  uint64_t kept = 0;  // of user, kernel, hypervisor
  uint64_t side = 0;  // of host, guest
  uint64_t precise = 0;
  for (const char c : modifiers) {
    switch (c) {
      case 'u':
        kept |= perfdata::kAttrExcludeUser;
        break;
      case 'k':
        kept |= perfdata::kAttrExcludeKernel;
        break;
      case 'h':
        kept |= perfdata::kAttrExcludeHv;
        break;
      case 'H':
        side |= perfdata::kAttrExcludeHost;
        break;
      case 'G':
        side |= perfdata::kAttrExcludeGuest;
        break;
      case 'I':
        attr.flags |= perfdata::kAttrExcludeIdle;
        break;
      case 'D':
        attr.flags |= perfdata::kAttrPinned;
        break;
      case 'e':
        attr.flags |= perfdata::kAttrExclusive;
        break;
      case 'S':
        attr.sample_type |= perfdata::kSampleRead;
        break;
      case 'p':
        ++precise;
        break;
      case 'P':
        precise = 3;
        break;
      default:
        return Fail(ErrorKind::kUsage,
                    fmt::format("event '{}': '{}' is no modifier; there are u k h G H p P D e I S",
                                text, c));
    }
  }
  if (precise > 3) {
    return Fail(ErrorKind::kUsage,
                fmt::format("event '{}': at most three p: ppp is the most precise", text));
  }
  constexpr uint64_t kRings =
      perfdata::kAttrExcludeUser | perfdata::kAttrExcludeKernel | perfdata::kAttrExcludeHv;
  constexpr uint64_t kSides = perfdata::kAttrExcludeHost | perfdata::kAttrExcludeGuest;
  if (kept != 0) attr.flags |= kRings & ~kept;
  if (side != 0) attr.flags |= kSides & ~side;
  attr.flags |= precise << 15;  // kAttrPreciseIpMask
  return {};
}

// ---- PMU events ----

// Puts `value` into the attr's bits that a format file names: "config:0-7,32-35", "config1:3".
Status PutFormatBits(std::string_view format, uint64_t value, const std::string& text, Attr& attr) {
  const auto bad = [&] {
    return Fail(ErrorKind::kUnsupported,
                fmt::format("event '{}': the kernel's format '{}' is not known", text, format));
  };
  const size_t colon = format.find(':');
  if (colon == std::string_view::npos) return bad();
  const std::string_view field = format.substr(0, colon);
  uint64_t* target = field == "config"    ? &attr.config
                     : field == "config1" ? &attr.config1
                     : field == "config2" ? &attr.config2
                     : field == "config3" ? &attr.config3
                                          : nullptr;
  if (target == nullptr) return bad();
  const auto bits = os::ParseCpuList(format.substr(colon + 1));  // the same form: "0-7,32-35"
  if (!bits) return bad();
  uint64_t rest = value;
  for (const uint32_t bit : *bits) {
    if (bit > 63) return bad();
    *target = (*target & ~(uint64_t{1} << bit)) | (rest & 1) << bit;
    rest >>= 1;
  }
  if (rest != 0) {
    return Fail(ErrorKind::kUsage,
                fmt::format("event '{}': {:#x} is too large for {}", text, value, format));
  }
  return {};
}

class PmuTerms {
 public:
  PmuTerms(std::string folder, const std::string& text, Event& event)
      : folder_(std::move(folder)), text_(text), event_(event) {}

  // `depth`: named events are made of terms, but not of named events.
  Status Apply(std::string_view terms, int depth = 0) {
    while (!terms.empty()) {
      const size_t comma = std::min(terms.find(','), terms.size());
      TRY(ApplyTerm(terms.substr(0, comma), depth));
      terms.remove_prefix(std::min(comma + 1, terms.size()));
    }
    return {};
  }

 private:
  Status ApplyTerm(std::string_view term, int depth) {
    const size_t equals = std::min(term.find('='), term.size());
    const std::string name(term.substr(0, equals));
    const bool has_value = equals < term.size();
    const std::string_view value_text = has_value ? term.substr(equals + 1) : "1";
    if (name == "name") {
      event_.name = std::string(value_text);
      return {};
    }
    if (!has_value && depth == 0 && IsFileName(name)) {
      if (auto alias = os::ReadTextFile(folder_ + "/events/" + name, 4096)) {
        while (alias->ends_with('\n')) alias->pop_back();
        return Apply(*alias, depth + 1);
      }
    }
    const auto value = ParseNumber(value_text);
    if (!value) {
      return Fail(ErrorKind::kUsage,
                  fmt::format("event '{}': '{}' is not a number", text_, value_text));
    }
    return ApplyNumber(name, *value);
  }

  Status ApplyNumber(const std::string& name, uint64_t value) {
    Attr& attr = event_.attr;
    if (name == "config") {
      attr.config = value;
    } else if (name == "config1") {
      attr.config1 = value;
    } else if (name == "config2") {
      attr.config2 = value;
    } else if (name == "period") {
      attr.sample_period_or_freq = value;
      attr.flags &= ~static_cast<uint64_t>(perfdata::kAttrFreq);
    } else if (name == "freq") {
      attr.sample_period_or_freq = value;
      attr.flags |= perfdata::kAttrFreq;
    } else {
      auto format = IsFileName(name) ? os::ReadTextFile(folder_ + "/format/" + name, 4096)
                                     : Result<std::string>(Fail(ErrorKind::kNotFound, ""));
      if (!format) return UnknownTerm(name);
      while (format->ends_with('\n')) format->pop_back();
      return PutFormatBits(*format, value, text_, attr);
    }
    return {};
  }

  [[nodiscard]] Status UnknownTerm(const std::string& name) const {
    std::vector<std::string> names = {"config", "config1", "config2", "period", "freq", "name"};
    for (const char* kind : {"/format", "/events"}) {
      for (const std::string& file : ListFolder(folder_ + kind)) names.push_back(file);
    }
    std::ranges::sort(names);
    return Fail(ErrorKind::kNotFound, fmt::format("event '{}': no term '{}'; there are {}", text_,
                                                  name, fmt::join(names, " ")));
  }

 public:
  static bool IsFileName(std::string_view name) {
    return !name.empty() && name != "." && name != ".." &&
           name.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos;
  }
  static std::vector<std::string> ListFolder(const std::string& folder) {
    std::vector<std::string> names;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
      names.push_back(entry.path().filename());
    }
    std::ranges::sort(names);
    return names;
  }

 private:
  std::string folder_;
  const std::string& text_;
  Event& event_;
};

Result<Event> ParsePmuEvent(const EventFolders& folders, const std::string& text,
                            const std::string& more_modifiers) {
  const size_t first = text.find('/');
  const size_t last = text.rfind('/');
  const std::string pmu = text.substr(0, first);
  if (first == last) {
    return Fail(ErrorKind::kUsage,
                fmt::format("event '{}': a PMU event ends with '/', as in cpu/event=0x3c/", text));
  }
  const std::string folder = folders.pmus + "/" + pmu;
  const auto type = PmuTerms::IsFileName(pmu) ? os::ReadNumberFile(folder + "/type") : std::nullopt;
  if (!type) {
    return Fail(ErrorKind::kNotFound,
                fmt::format("event '{}': no PMU '{}'; there are {}", text, pmu,
                            fmt::join(PmuTerms::ListFolder(folders.pmus), " ")));
  }
  Event event;
  event.name = text;
  event.attr.type = static_cast<uint32_t>(*type);
  TRY(PmuTerms(folder, text, event)
          .Apply(std::string_view(text).substr(first + 1, last - first - 1)));
  std::string modifiers = text.substr(last + 1);
  if (modifiers.starts_with(':')) modifiers.erase(0, 1);
  TRY(ApplyModifiers(modifiers + more_modifiers, text, event.attr));
  return event;
}

// ---- tracepoints ----

Result<Event> ParseTracepoint(const EventFolders& folders, const std::string& text,
                              const std::string& more_modifiers) {
  const size_t colon = text.find(':');
  const size_t end = std::min(text.find(':', colon + 1), text.size());
  const std::string system = text.substr(0, colon);
  const std::string name = text.substr(colon + 1, end - colon - 1);
  std::error_code error;
  const std::string tracefs = FindTracefs(folders);
  if (tracefs.empty()) {
    Error out(ErrorKind::kUnsupported,
              fmt::format("event '{}': tracepoints are listed in {}, which is not mounted or may "
                          "not be read",
                          text, folders.tracefs.empty() ? "tracefs" : folders.tracefs.front()));
    return Fail(
        std::move(out).WithCure("mount it: sudo mount -t tracefs nodev /sys/kernel/tracing\n"
                                "let others read it: sudo chmod a+rx /sys/kernel/tracing"));
  }
  const std::string events = tracefs + "/events";
  const auto id = PmuTerms::IsFileName(system) && PmuTerms::IsFileName(name)
                      ? os::ReadNumberFile(events + "/" + system + "/" + name + "/id")
                      : std::nullopt;
  if (!id) {
    const bool has_system =
        PmuTerms::IsFileName(system) && std::filesystem::is_directory(events + "/" + system, error);
    const auto nearest = has_system
                             ? NearestNames(name, PmuTerms::ListFolder(events + "/" + system), 3)
                             : NearestNames(system, PmuTerms::ListFolder(events), 3);
    std::string message =
        has_system ? fmt::format("event '{}': no tracepoint '{}' in {}", text, name, system)
                   : fmt::format("event '{}': there are no tracepoints '{}'", text, system);
    if (!nearest.empty()) message += fmt::format("; near it: {}", fmt::join(nearest, ", "));
    return Fail(ErrorKind::kNotFound, std::move(message));
  }
  Event event;
  event.name = text;
  event.attr.type = PERF_TYPE_TRACEPOINT;
  event.attr.config = static_cast<uint64_t>(*id);
  event.attr.sample_type = perfdata::kSampleRaw;
  const std::string modifiers = end < text.size() ? text.substr(end + 1) : "";
  TRY(ApplyModifiers(modifiers + more_modifiers, text, event.attr));
  return event;
}

std::optional<uint64_t> ParseRawConfig(std::string_view name) {
  if (name.size() < 2 || name.size() > 17 || name[0] != 'r') return std::nullopt;
  return ParseNumber(fmt::format("0x{}", name.substr(1)));
}

}  // namespace

std::string FindTracefs(const EventFolders& folders) {
  std::error_code error;
  const auto mounted = std::ranges::find_if(folders.tracefs, [&](const std::string& folder) {
    return std::filesystem::is_directory(folder + "/events", error);
  });
  return mounted != folders.tracefs.end() ? *mounted : "";
}

Result<std::vector<std::string>> ExpandTracepoints(const EventFolders& folders,
                                                   const std::string& text) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos || text.find_first_of("*?[") == std::string::npos ||
      text.find('/') != std::string::npos) {
    return std::vector{text};
  }
  const size_t end = std::min(text.find(':', colon + 1), text.size());
  const std::string system_glob = text.substr(0, colon);
  const std::string name_glob = text.substr(colon + 1, end - colon - 1);
  const std::string events = FindTracefs(folders) + "/events";
  std::vector<std::string> found;
  for (const std::string& system : PmuTerms::ListFolder(events)) {
    if (fnmatch(system_glob.c_str(), system.c_str(), 0) != 0) continue;
    for (const std::string& name : PmuTerms::ListFolder(events + "/" + system)) {
      const std::string folder = events + "/" + system + "/" + name;
      if (fnmatch(name_glob.c_str(), name.c_str(), 0) != 0 ||
          !os::ReadNumberFile(folder + "/id")) {  // "enable", "filter" and what cannot be recorded
        continue;
      }
      found.push_back(system + ":" + name + text.substr(end));
    }
  }
  if (found.empty()) {
    return Fail(ErrorKind::kNotFound, fmt::format("event '{}': no tracepoint matches", text));
  }
  return found;
}

std::vector<std::string> BuiltinEventNames() {
  std::vector<std::string> names;
  for (const NamedEvent& event : kNamedEvents) names.emplace_back(event.name);
  ForEachCacheEvent([&](const std::string& name, uint64_t) { names.push_back(name); });
  return names;
}

std::vector<std::string> NearestNames(const std::string& text,
                                      const std::vector<std::string>& names, size_t count) {
  // Levenshtein's distance, one row at a time.
  constexpr size_t kLongestText = 64;
  const std::string_view from = std::string_view(text).substr(0, kLongestText);
  std::vector<std::pair<size_t, std::string>> ranked;
  for (const std::string& name : names) {
    std::vector<size_t> row(name.size() + 1);
    std::iota(row.begin(), row.end(), size_t{0});
    for (size_t i = 0; i < from.size(); ++i) {
      size_t diagonal = std::exchange(row[0], i + 1);
      for (size_t j = 0; j < name.size(); ++j) {
        const size_t replaced = diagonal + (from[i] == name[j] ? 0 : 1);
        diagonal = row[j + 1];
        row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
      }
    }
    const size_t distance = name.starts_with(from) ? 0 : row.back();
    if (distance <= std::max<size_t>(2, from.size() / 3)) ranked.emplace_back(distance, name);
  }
  std::ranges::stable_sort(ranked, {}, &std::pair<size_t, std::string>::first);
  std::vector<std::string> out;
  for (const auto& [distance, name] : ranked) {
    if (out.size() == count) break;
    out.push_back(name);
  }
  return out;
}

Result<Event> ParseEventIn(const EventFolders& folders, const std::string& text,
                           const std::string& more_modifiers) {
  if (text.empty()) return Fail(ErrorKind::kUsage, "an event's name is missing");
  if (IsBreakpoint(text)) {
    Event event;
    event.name = text;
    TRY_ASSIGN(const std::string modifiers, ParseBreakpoint(text, event.attr));
    TRY(ApplyModifiers(modifiers + more_modifiers, text, event.attr));
    return event;
  }
  if (text.find('/') != std::string::npos) {
    return ParsePmuEvent(folders, text, more_modifiers);
  }
  const size_t colon = std::min(text.find(':'), text.size());
  const std::string name = text.substr(0, colon);
  Event event;
  event.name = text;
  if (!FindBuiltin(name, event.attr)) {
    if (const auto raw = ParseRawConfig(name)) {
      event.attr.type = PERF_TYPE_RAW;
      event.attr.config = *raw;
    } else if (colon < text.size()) {
      return ParseTracepoint(folders, text, more_modifiers);
    } else {
      std::string message = fmt::format("there is no event '{}'", text);
      if (const auto nearest = NearestNames(name, BuiltinEventNames(), 3); !nearest.empty()) {
        message += fmt::format("; near it: {}", fmt::join(nearest, ", "));
      }
      return Fail(ErrorKind::kNotFound, std::move(message));
    }
  }
  const std::string modifiers = colon < text.size() ? text.substr(colon + 1) : "";
  TRY(ApplyModifiers(modifiers + more_modifiers, text, event.attr));
  return event;
}

Result<Event> ParseEvent(const std::string& text) { return ParseEventIn(EventFolders(), text); }

}  // namespace stackreel::record
