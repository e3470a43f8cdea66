#include "analyze/function_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <unordered_set>
#include <utility>

#include "analyze/module_images.h"
#include "base/memory_io.h"
#include "perfdata/context_marker.h"
#include "perfdata/feature_layout.h"
#include "session/session.h"

namespace stackreel::analyze {
namespace {

using perfdata::CpuMode;
using perfdata::Feature;
using session::ModuleKind;

constexpr uint64_t kKernelHalf = uint64_t{1} << 63;

class FunctionNamesStep : public anonymize::RecordStep {
 public:
  FunctionNamesStep(const anonymize::RecordingHead& head, perfdata::TimedSink& next,
                    symbolize::ModuleFileProvider& files);

  Status OnTimedRecord(const perfdata::TimedRecord& record) override;
  [[nodiscard]] std::vector<perfdata::Event> Events() const override { return events_; }
  Status Finish() override { return {}; }
  void CollectCounters(Counters& counters) const override;
  [[nodiscard]] std::map<uint32_t, std::vector<uint8_t>> Features() const override;

 private:
  struct Function {
    uint64_t size = 0;  // up to the last address of it that was met
    std::string name;
  };
  using Functions = std::map<uint64_t, Function>;  // by start
  struct Place {
    uint64_t version = 0, address = 0;
    friend bool operator==(const Place&, const Place&) = default;
  };
  struct HashPlace {
    size_t operator()(const Place& p) const {
      return (p.address * 0x9e3779b97f4a7c15U) ^ (p.version << 32);
    }
  };
  void NoteSample(const perfdata::TimedRecord& record, const perfdata::Attr& attr);
  void NoteChain(CpuMode mode);
  void Note(CpuMode mode, uint64_t address, bool is_return);
  [[nodiscard]] session::AddressSpacePtr MapsOf(CpuMode mode, uint64_t address);

  Endian endian_;
  std::vector<perfdata::Event> events_;
  perfdata::TimedSink& next_;
  Counters ignored_;  // who reads the output counts what it lacks
  session::Session session_;
  RecordedFunctionNames files_;  // it may have been anonymised before
  symbolize::Symbolizer symbolizer_;
  ModuleImages images_;
  perfdata::Sample sample_;
  std::unordered_set<Place, HashPlace> noted_;
  std::map<std::string, Functions> modules_, kernels_;  // by path
};

FunctionNamesStep::FunctionNamesStep(const anonymize::RecordingHead& head,
                                     perfdata::TimedSink& next,
                                     symbolize::ModuleFileProvider& files)
    : endian_(head.endian),
      events_(head.events),
      next_(next),
      session_(head.features, head.endian, ignored_),
      files_(files, head.features, head.endian),
      symbolizer_(files_, {}, ignored_),
      images_(session_, symbolizer_, ignored_) {
  session_.SetSegmentLoader([this](const session::Module& module) {
    const auto id = static_cast<session::ModuleId>(&module - session_.modules().data());
    const elf::Image* image = images_.MainOf(id);
    return image != nullptr ? session::LoadSegmentsOf(*image) : std::vector<session::LoadSegment>();
  });
}

Status FunctionNamesStep::OnTimedRecord(const perfdata::TimedRecord& record) {
  const perfdata::Attr* attr =
      record.event && *record.event < events_.size() ? &events_[*record.event].attr : nullptr;
  if (record.raw.record_type() != perfdata::RecordType::kSample) {
    session_.Apply(record, {endian_, attr});
  } else if (attr != nullptr) {
    NoteSample(record, *attr);
  }
  return next_.OnTimedRecord(record);
}

void FunctionNamesStep::NoteSample(const perfdata::TimedRecord& record,
                                   const perfdata::Attr& attr) {
  if (!perfdata::DecodeSample(record.raw, attr, endian_, sample_)) return;
  if (sample_.Has(perfdata::kSampleIp)) Note(record.raw.cpu_mode(), sample_.ip, false);
  NoteChain(record.raw.cpu_mode());
  for (size_t i = 0; i < sample_.branches.size(); ++i) {
    Note(CpuMode::kUnknown, sample_.branches[i].from, false);
    Note(CpuMode::kUnknown, sample_.branches[i].to, false);
  }
}

void FunctionNamesStep::NoteChain(CpuMode mode) {
  bool is_return = false, cookie_is_next = false;
  for (size_t i = 0; i < sample_.callchain.size(); ++i) {
    const uint64_t entry = sample_.callchain[i];
    if (cookie_is_next) {
      cookie_is_next = false;
    } else if (entry >= perfdata::kContextMax) {
      mode = perfdata::ModeOfMarker(entry).value_or(mode);
      cookie_is_next = entry == perfdata::kContextUserDeferred;
      is_return = false;
    } else {
      Note(mode, entry, is_return);
      is_return = true;
    }
  }
}

session::AddressSpacePtr FunctionNamesStep::MapsOf(CpuMode mode, uint64_t address) {
  switch (mode) {
    case CpuMode::kKernel:
      return session_.kernel_maps();
    case CpuMode::kUser:
      return session_.ProcessOf(sample_.pid).maps;
    case CpuMode::kUnknown:
      return (address & kKernelHalf) != 0 ? session_.kernel_maps()
                                          : session_.ProcessOf(sample_.pid).maps;
    default:
      return nullptr;  // guests: their files are not this machine's
  }
}

void FunctionNamesStep::Note(CpuMode mode, uint64_t address, bool is_return) {
  const session::AddressSpacePtr maps = MapsOf(mode, address);
  const uint64_t lookup = is_return ? address - 1 : address;
  if (maps == nullptr || !noted_.insert({maps->version(), lookup}).second) return;
  const session::Location location = session_.Find(*maps, Avma(lookup));
  if (location.module == session::kNoModule) return;
  const session::Module& module = session_.modules()[location.module];
  const bool is_file = module.key.kind == ModuleKind::kFile || module.key.kind == ModuleKind::kVdso;
  // The name of a BPF program is in its own record.
  if (module.ksymbol || (!is_file && !module.is_kernel())) return;
  const symbolize::SymbolizedFrame& frame =
      symbolizer_.Find(location.module, module, location.svma).back();
  const uint64_t place = is_file ? location.offset.value : lookup;
  // A signal handler returns to the first instruction of its trampoline.
  if (frame.function == 0 && is_return) return Note(mode, address, false);
  if (frame.function == 0 || frame.offset > place) return;
  Function& function = (is_file ? modules_ : kernels_)[module.path()][place - frame.offset];
  function.size = std::max(function.size, frame.offset + 1);
  if (function.name.empty()) function.name = symbolizer_.Text(frame.function);
}

void FunctionNamesStep::CollectCounters(Counters& counters) const {
  uint64_t functions = 0;
  for (const auto* modules : {&modules_, &kernels_}) {
    for (const auto& [path, of_module] : *modules) functions += of_module.size();
  }
  counters.Add("anonymize.functions_named", functions);
}

std::map<uint32_t, std::vector<uint8_t>> FunctionNamesStep::Features() const {
  perfdata::FunctionNames names;
  for (const auto& [path, functions] : modules_) {
    perfdata::ModuleFunctions& module = names.modules.emplace_back();
    module.path = path;
    for (const auto& [start, f] : functions) module.functions.push_back({start, f.size, f.name});
  }
  for (const auto& [path, functions] : kernels_) {
    perfdata::KernelFunctions& kernel = names.kernels.emplace_back();
    kernel.path = path;
    for (const auto& [start, f] : functions) kernel.functions.push_back({start, f.size, f.name});
  }
  return {{static_cast<uint32_t>(Feature::kStackreelFunctions),
           perfdata::EncodeFeature(names, endian_)}};
}

// A perf map: "START SIZE name", in hex. A place in the file is what a module without a file has
// for svma.
template <typename Modules>
std::string MapOf(const Modules& modules, std::string_view path) {
  std::string text;
  for (const auto& module : modules) {
    if (module.path != path) continue;
    for (const auto& function : module.functions) {
      // A name does not end a line.
      std::string name = function.name;
      std::ranges::replace(name, '\n', '_');
      text += fmt::format("{:x} {:x} {}\n", function.start, function.size, name);
    }
  }
  return text;
}

}  // namespace

std::unique_ptr<anonymize::RecordStep> MakeFunctionNamesStep(const anonymize::RecordingHead& head,
                                                             perfdata::TimedSink& next,
                                                             symbolize::ModuleFileProvider& files) {
  return std::make_unique<FunctionNamesStep>(head, next, files);
}

symbolize::ModuleFiles RecordedFunctionNames::FilesOf(const session::Module& module) {
  symbolize::ModuleFiles files = files_.FilesOf(module);
  const bool has_files = files.main != nullptr || files.debug != nullptr ||
                         files.kallsyms != nullptr || files.perf_map != nullptr;
  const auto recorded = features_.raw.find(static_cast<uint32_t>(Feature::kStackreelFunctions));
  if (has_files || module.ksymbol || recorded == features_.raw.end()) return files;
  const auto names = perfdata::DecodeFeatureAs<perfdata::FunctionNames>(recorded->second, endian_);
  if (!names || names->version != 1) return files;
  std::string text = module.is_kernel() ? MapOf(names->kernels, module.path())
                                        : MapOf(names->modules, module.path());
  if (!text.empty()) {
    files.perf_map = std::make_shared<TextImage>(std::move(text), "the recording's own names");
  }
  return files;
}

}  // namespace stackreel::analyze
