// What the text and the JSON of samples share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "perfdata/tracing_data.h"
#include "views/chain_text.h"
#include "views/script_text.h"

namespace stackreel::views {

// The lines of a frame that was printed before: few addresses make most frames. Direct-mapped.
class FrameLines {
 public:
  struct Line {
    // Which address it is: symbols are looked up once an address, and stay where they are.
    const symbolize::SymbolizedFrame* symbols = nullptr;
    uint64_t shown = 0;
    uint32_t fields = 0;
    std::string text;
  };
  Line& At(const symbolize::SymbolizedFrame* symbols) {
    const uint64_t key = reinterpret_cast<uintptr_t>(symbols) / sizeof(symbolize::SymbolizedFrame);
    return lines_[(key * 0x9e3779b97f4a7c15U) >> (64 - kBits)];
  }

 private:
  static constexpr unsigned kBits = 13;
  std::vector<Line> lines_ = std::vector<Line>(size_t{1} << kBits);
};

struct ScriptFormatter::State {
  State(analyze::Analysis& a, const ScriptOptions& o) : analysis(a), options(o) {}

  // What is printed of an event's samples.
  struct EventFormat {
    bool ready = false;
    uint32_t fields = 0;
    std::optional<uint64_t> fixed_period;  // samples have none: what the event was opened with
    std::string padded_name;               // to the width of the longest
    bool names_addr = false;
    const perfdata::TraceFormat* trace = nullptr;
  };
  Result<const EventFormat*> FormatOf(uint32_t event);
  Status Prepare(uint32_t event);
  // Null if the recording has no format of it.
  const perfdata::TraceFormat* Tracepoint(uint64_t config);
  // The function that a tracepoint's pointer leads to.
  bool FunctionAt(const analyze::AnalyzedSample& sample, uint64_t address, std::string& name,
                  uint64_t& offset);
  std::string_view DsoOf(session::ModuleId module);
  // Whether the event's samples are printed with places that only Analysis::LocateInSample finds.
  [[nodiscard]] static bool HasFurtherPlaces(const EventFormat& format);
  std::string_view CommOf(const analyze::AnalyzedSample& sample) const {
    return analysis.session().strings().Text(sample.comm);
  }
  std::string_view Text(StringInterner::Id id) const { return analysis.symbolizer().Text(id); }

  analyze::Analysis& analysis;
  ScriptOptions options;
  std::vector<EventFormat> events;
  std::vector<std::string> dsos;                           // by module
  std::optional<perfdata::TracepointFormats> tracepoints;  // once one was met
  FrameLines lines;
  ChainText chain;
  std::string scratch;  // lines of a frame without symbols
};

// The address that perf prints for a frame: of frames it unwound, the last byte of the call.
inline bool PrintsLookupAddress(const analyze::AnalyzedFrame& frame) {
  return frame.origin != unwind::FrameOrigin::kKernelChain &&
         frame.address.kind == CodeAddressKind::kReturnAddress;
}

}  // namespace stackreel::views
