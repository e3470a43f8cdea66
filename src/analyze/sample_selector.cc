#include "analyze/sample_selector.h"

#include <algorithm>

namespace stackreel::analyze {
namespace {

bool ContainsOrEmpty(const std::vector<uint32_t>& list, uint32_t value) {
  return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
}

}  // namespace

std::string_view ShortModuleName(std::string_view path) {
  return path.starts_with('[') ? path : path.substr(path.rfind('/') + 1);
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
    const std::string_view path = frame.module == session::kNoModule
                                      ? std::string_view("[unknown]")
                                      : session.modules()[frame.module].path();
    if (!profile::MatchesAny(path, filter_.dsos) &&
        !profile::MatchesAny(ShortModuleName(path), filter_.dsos)) {
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
