#include "views/script_state.h"

#include <fmt/format.h>

#include <algorithm>

namespace stackreel::views {
namespace {

using perfdata::Attr;

constexpr uint32_t kUsualSample = kFieldComm | kFieldTid | kFieldCpu | kFieldTime | kFieldPeriod |
                                  kFieldEvent | kFieldIp | kFieldSym | kFieldSymoff | kFieldDso;

uint32_t UsualFields(const Attr& attr) {
  if (attr.type == perfdata::kTypeTracepoint) {
    const uint32_t fields =
        kFieldComm | kFieldTid | kFieldCpu | kFieldTime | kFieldEvent | kFieldTrace;
    const bool chains = (attr.sample_type & perfdata::kSampleCallchain) != 0;
    return chains ? fields | kFieldIp | kFieldSym | kFieldSymoff | kFieldDso : fields;
  }
  return attr.type == perfdata::kTypeRaw ? kUsualSample | kFieldAddr : kUsualSample;
}

struct Requirement {
  ScriptField field;
  uint64_t sample_bits;  // one of these
  const char* field_name;
  const char* bit_name;
};
constexpr Requirement kRequirements[] = {
    {kFieldPid, perfdata::kSampleTid, "pid", "TID"},
    {kFieldTid, perfdata::kSampleTid, "tid", "TID"},
    {kFieldCpu, perfdata::kSampleCpu, "cpu", "CPU"},
    {kFieldTime, perfdata::kSampleTime, "time", "TIME"},
    {kFieldIp, perfdata::kSampleIp, "ip", "IP"},
    {kFieldAddr, perfdata::kSampleAddr, "addr", "ADDR"},
    {kFieldTrace, perfdata::kSampleRaw, "trace", "RAW"},
    {kFieldBrstack, perfdata::kSampleBranchStack, "brstack", "BRANCH_STACK"},
    {kFieldBrstackSym, perfdata::kSampleBranchStack, "brstacksym", "BRANCH_STACK"},
    {kFieldBrstackOff, perfdata::kSampleBranchStack, "brstackoff", "BRANCH_STACK"},
    {kFieldCgroup, perfdata::kSampleCgroup, "cgroup", "CGROUP"},
};

}  // namespace

ScriptFormatter::ScriptFormatter(analyze::Analysis& analysis, const ScriptOptions& options)
    : state_(std::make_unique<State>(analysis, options)) {}
ScriptFormatter::~ScriptFormatter() = default;

std::string DsoName(const session::Module& module) {
  const std::string& path = module.path();
  if (module.key.kind != session::ModuleKind::kKernelModule || !path.starts_with('/')) {
    return module.name();
  }
  std::string name = path.substr(path.rfind('/') + 1);
  name.resize(std::min(name.size(), name.find(".ko")));
  std::replace(name.begin(), name.end(), '-', '_');
  return "[" + name + "]";
}

std::string_view ScriptFormatter::State::DsoOf(session::ModuleId module) {
  if (module == session::kNoModule) return "[unknown]";
  if (module >= dsos.size()) dsos.resize(module + size_t{1});
  std::string& name = dsos[module];
  if (name.empty()) name = DsoName(analysis.session().modules()[module]);
  return name;
}

Result<const ScriptFormatter::State::EventFormat*> ScriptFormatter::State::FormatOf(
    uint32_t event) {
  if (event >= events.size() || !events[event].ready) TRY(Prepare(event));
  return &events[event];
}

Status ScriptFormatter::State::Prepare(uint32_t event) {
  const std::vector<perfdata::Event>& all = analysis.events().events();
  const Attr& attr = all[event].attr;
  size_t width = 0;
  for (const perfdata::Event& each : all) width = std::max(width, each.name.size());
  if (event >= events.size()) events.resize(all.size());
  EventFormat& format = events[event];
  const FieldSelection& selection = options.fields;
  uint32_t fields =
      selection.only ? *selection.only : (UsualFields(attr) | selection.add) & ~selection.remove;
  for (const Requirement& need : kRequirements) {
    if ((fields & need.field) == 0 || (attr.sample_type & need.sample_bits) != 0) continue;
    if (((selection.only.value_or(0) | selection.add) & need.field) != 0) {
      return Fail(Error(ErrorKind::kUsage,
                        fmt::format("the samples of event '{}' have no {}, so '{}' cannot be "
                                    "printed",
                                    all[event].name, need.bit_name, need.field_name))
                      .WithCure(fmt::format("leave out '{}'", need.field_name)));
    }
    fields &= ~static_cast<uint32_t>(need.field);
  }
  format.fields = fields;
  // perf looks up what page faults touched.
  format.names_addr =
      attr.type == perfdata::kTypeSoftware &&
      (attr.config == perfdata::kSwPageFaults || attr.config == perfdata::kSwPageFaultsMin ||
       attr.config == perfdata::kSwPageFaultsMaj);
  format.trace = attr.type == perfdata::kTypeTracepoint ? Tracepoint(attr.config) : nullptr;
  if ((attr.sample_type & perfdata::kSamplePeriod) == 0) {
    format.fixed_period = attr.sample_period_or_freq;
  }
  format.padded_name = fmt::format("{:>{}}: ", all[event].name, width);
  format.ready = true;
  return {};
}

const perfdata::TraceFormat* ScriptFormatter::State::Tracepoint(uint64_t config) {
  if (!tracepoints) {
    const auto& raw = analysis.reader().features().raw;
    const auto found = raw.find(static_cast<uint32_t>(perfdata::Feature::kTracingData));
    tracepoints.emplace(found == raw.end() ? std::vector<uint8_t>() : found->second);
  }
  return tracepoints->Of(config);
}

bool ScriptFormatter::State::HasFurtherPlaces(const EventFormat& format) {
  constexpr uint32_t kBranches = kFieldBrstack | kFieldBrstackSym | kFieldBrstackOff;
  return format.trace != nullptr || format.names_addr || (format.fields & kBranches) != 0;
}

bool ScriptFormatter::State::FunctionAt(const analyze::AnalyzedSample& sample, uint64_t address,
                                        std::string& name, uint64_t& offset) {
  const analyze::AnalyzedFrame frame = analysis.LocateInSample(sample, Avma(address));
  // Of the kernel's only, as perf does.
  if (!frame.kernel || frame.symbols.empty() || frame.symbols.back().function == 0) return false;
  name = Text(frame.symbols.back().function);
  offset = frame.symbols.back().offset;
  return true;
}

}  // namespace stackreel::views
