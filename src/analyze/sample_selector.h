// Which samples were asked for.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analyze/analysis.h"

namespace stackreel::analyze {

class SampleSelector {
 public:
  explicit SampleSelector(const profile::Filter& filter) : filter_(filter) {}

  // What can be said before the stack is unwound.
  bool Selects(const perfdata::Sample& sample, uint32_t event, StringInterner::Id comm,
               const session::Session& session);
  // Whether a frame is in one of the binaries and named as one of the functions asked for.
  bool SelectsFrames(std::span<const AnalyzedFrame> frames, const session::Session& session,
                     const symbolize::Symbolizer& symbolizer);
  [[nodiscard]] bool looks_at_frames() const {
    return !filter_.dsos.empty() || !filter_.symbols.empty();
  }

 private:
  enum class Answer : uint8_t { kNotAsked, kYes, kNo };
  bool MatchesFrame(const AnalyzedFrame& frame, const session::Session& session,
                    const symbolize::Symbolizer& symbolizer) const;

  profile::Filter filter_;
  std::vector<Answer> comms_;                                           // by id
  std::unordered_map<const symbolize::SymbolizedFrame*, bool> frames_;  // by where symbols lie
};

// As perf shortens names: "libc.so.6" of "/usr/lib/x86_64-linux-gnu/libc.so.6", "[nf_tables]" of
// "/lib/modules/…/nf_tables.ko.xz", "[JIT] tid 12" of "/tmp/perf-12.map"; names in brackets stay.
std::string ShortModuleName(const session::Module& module);

}  // namespace stackreel::analyze
