#include "analyze/sample_selector.h"

#include <algorithm>

namespace stackreel::analyze {
namespace {

bool ContainsOrEmpty(const std::vector<uint32_t>& list, uint32_t value) {
  return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
}

}  // namespace

std::string ShortModuleName(const session::Module& module) {
  const std::string& path = module.path();
  if (path.starts_with('[')) return path;
  if (module.key.kind == session::ModuleKind::kKernelModule && path.starts_with('/')) {
    return "[" + symbolize::KallsymsModule(module) + "]";
  }
  std::string name = path.substr(path.rfind('/') + 1);
  if (module.key.kind == session::ModuleKind::kJit && name.starts_with("perf-")) {
    return "[JIT] tid " + std::to_string(module.key.pid);
  }
  return name;
}

bool SampleSelector::Selects(const perfdata::Sample& sample, uint32_t event,
                             StringInterner::Id comm, const session::Session& session) {
  if (!ContainsOrEmpty(filter_.pids, sample.pid) || !ContainsOrEmpty(filter_.tids, sample.tid) ||
      !ContainsOrEmpty(filter_.events, event)) {
    return false;
  }
  if (sample.Has(perfdata::kSampleCpu) && !ContainsOrEmpty(filter_.cpus, sample.cpu)) return false;
  if (sample.Has(perfdata::kSampleTime) &&
      (sample.time < filter_.time_start || sample.time > filter_.time_end)) {
    return false;
  }
  if (filter_.comms.empty()) return true;
  if (comm >= comms_.size()) comms_.resize(comm + size_t{1}, Answer::kNotAsked);
  if (comms_[comm] == Answer::kNotAsked) {
    const bool matches = profile::MatchesAny(session.strings().Text(comm), filter_.comms);
    comms_[comm] = matches ? Answer::kYes : Answer::kNo;
  }
  return comms_[comm] == Answer::kYes;
}

bool SampleSelector::SelectsFrames(std::span<const AnalyzedFrame> frames,
                                   const session::Session& session,
                                   const symbolize::Symbolizer& symbolizer) {
  if (!looks_at_frames()) return true;
  return std::any_of(frames.begin(), frames.end(), [&](const AnalyzedFrame& frame) {
    if (frame.symbols.empty()) return MatchesFrame(frame, session, symbolizer);
    const auto [it, made] = frames_.try_emplace(frame.symbols.data(), false);
    if (made) it->second = MatchesFrame(frame, session, symbolizer);
    return it->second;
  });
}

bool SampleSelector::MatchesFrame(const AnalyzedFrame& frame, const session::Session& session,
                                  const symbolize::Symbolizer& symbolizer) const {
  if (!filter_.dsos.empty()) {
    const bool known = frame.module != session::kNoModule;
    const session::Module* module = known ? &session.modules()[frame.module] : nullptr;
    if (!profile::MatchesAny(known ? module->path() : "[unknown]", filter_.dsos) &&
        !(known && profile::MatchesAny(ShortModuleName(*module), filter_.dsos))) {
      return false;
    }
  }
  if (filter_.symbols.empty()) return true;
  return std::any_of(
      frame.symbols.begin(), frame.symbols.end(), [&](const symbolize::SymbolizedFrame& symbol) {
        return profile::MatchesAny(symbolizer.Text(symbol.function), filter_.symbols);
      });
}

}  // namespace stackreel::analyze
