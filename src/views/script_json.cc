#include <fmt/format.h>

#include <iterator>

#include "views/json_text.h"
#include "views/script_state.h"

namespace stackreel::views {
namespace {

using analyze::AnalyzedFrame;
using analyze::AnalyzedSample;
using symbolize::SymbolizedFrame;

}  // namespace

// {"comm": …, "pid": …, "tid": …, "cpu": …, "time_ns": …, "event": …, "period": …,
//  "frames": [{"ip": "0x…", "sym": …, "offset": …, "dso": …, "file": …, "line": …}, …],
//  "stack_end": …}; what a sample does not have is left out.
Status ScriptFormatter::AppendJson(const AnalyzedSample& sample, std::string& out) {
  const perfdata::Sample& raw = *sample.sample;
  auto to = std::back_inserter(out);
  out += '{';
  out += "\"comm\":";
  AppendJsonString(out, state_->CommOf(sample));
  if (raw.Has(perfdata::kSampleTid)) {
    fmt::format_to(to, R"(,"pid":{},"tid":{})", sample.pid, sample.tid);
  }
  if (raw.Has(perfdata::kSampleCpu)) fmt::format_to(to, R"(,"cpu":{})", raw.cpu);
  if (raw.Has(perfdata::kSampleTime)) fmt::format_to(to, R"(,"time_ns":{})", raw.time);
  out += ",\"event\":";
  AppendJsonString(out, state_->analysis.events().events()[sample.event].name);
  fmt::format_to(to, R"(,"period":{})", sample.period);
  TRY_ASSIGN(const State::EventFormat* format, state_->FormatOf(sample.event));
  if (format->trace != nullptr && raw.Has(perfdata::kSampleRaw)) {
    std::string trace;
    format->trace->AppendText(
        raw.raw,
        [&](uint64_t address, std::string& name, uint64_t& offset) {
          return state_->FunctionAt(sample, address, name, offset);
        },
        trace);
    out += ",\"trace\":";
    AppendJsonString(out, trace);
  }
  if (raw.Has(perfdata::kSampleAddr)) fmt::format_to(to, R"(,"addr":"{:#x}")", raw.addr);
  out += ",\"frames\":[";
  const char* separator = "";
  for (const AnalyzedFrame& frame : sample.frames) {
    const size_t count = frame.symbols.empty() ? 1 : frame.symbols.size();
    for (size_t i = 0; i < count; ++i) {
      const SymbolizedFrame* symbol = frame.symbols.empty() ? nullptr : &frame.symbols[i];
      out += separator;
      separator = ",";
      fmt::format_to(to, R"({{"ip":"{:#x}")", frame.address.avma.value);
      if (symbol != nullptr && symbol->function != 0) {
        out += ",\"sym\":";
        AppendJsonString(out, state_->Text(symbol->function));
        fmt::format_to(to, R"(,"offset":{})", symbol->offset);
      }
      if (frame.module != session::kNoModule) {
        out += ",\"dso\":";
        AppendJsonString(out, state_->DsoOf(frame.module));
        fmt::format_to(to, R"(,"dso_offset":"{:#x}")", frame.svma.value);
      }
      if (symbol != nullptr && symbol->file != 0) {
        out += ",\"file\":";
        AppendJsonString(out, state_->Text(symbol->file));
        fmt::format_to(to, R"(,"line":{})", symbol->line);
      }
      if (symbol != nullptr && symbol->inlined) out += ",\"inlined\":true";
      if (frame.kernel) out += ",\"kernel\":true";
      out += '}';
    }
  }
  out += ']';
  if (sample.user_end) {
    out += ",\"stack_end\":";
    AppendJsonString(out, unwind::StackEndName(*sample.user_end));
  }
  if (state_->options.masks && sample.mask.source != session::MaskSource::kNone) {
    fmt::format_to(to, R"(,"insn_mask":"{:#x}","mask_source":)", sample.mask.insn);
    AppendJsonString(out, session::MaskSourceName(sample.mask.source));
  }
  out += "}\n";
  return {};
}

}  // namespace stackreel::views
