#include "views/script_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <span>

#include "base/hex_digits.h"
#include "views/branch_text.h"
#include "views/record_text.h"
#include "views/script_state.h"

namespace stackreel::views {
namespace {

using analyze::AnalyzedFrame;
using analyze::AnalyzedSample;
using symbolize::SymbolizedFrame;

void AppendHexDigits(std::string& out, uint64_t value) {
  char digits[16];
  size_t at = sizeof(digits);
  do {
    digits[--at] = "0123456789abcdef"[value & 15];
    value >>= 4;
  } while (value != 0);
  out.append(digits + at, sizeof(digits) - at);
}

// printf's "%16lx".
void AppendHex16(std::string& out, uint64_t value) {
  char digits[16];
  StoreUnaligned(reinterpret_cast<uint8_t*>(digits), HexDigits(static_cast<uint32_t>(value >> 32)),
                 Endian::kLittle);
  StoreUnaligned(reinterpret_cast<uint8_t*>(digits) + 8, HexDigits(static_cast<uint32_t>(value)),
                 Endian::kLittle);
  const size_t blanks = std::min<size_t>(std::countl_zero(value) / 4, 15);
  std::memset(digits, ' ', blanks);
  out.append(digits, sizeof(digits));
}

// "%5d/%-5d ", "%5d "
void AppendIds(std::string& out, uint32_t of_pid, uint32_t of_tid, uint32_t fields) {
  const auto pid = static_cast<int32_t>(of_pid);
  const auto tid = static_cast<int32_t>(of_tid);
  auto to = std::back_inserter(out);
  if ((fields & kFieldPid) != 0 && (fields & kFieldTid) != 0) {
    fmt::format_to(to, "{:5}/{:<5} ", pid, tid);
  } else if ((fields & kFieldPid) != 0) {
    fmt::format_to(to, "{:5} ", pid);
  } else if ((fields & kFieldTid) != 0) {
    fmt::format_to(to, "{:5} ", tid);
  }
}

void AppendTime(std::string& out, uint64_t time, bool nanoseconds) {
  constexpr uint64_t kNsPerS = 1'000'000'000;
  const uint64_t s = time / kNsPerS;
  const uint64_t ns = time % kNsPerS;
  auto to = std::back_inserter(out);
  if (nanoseconds) {
    fmt::format_to(to, "{:5}.{:09}: ", s, ns);
  } else {
    // perf pads the whole to 12 columns.
    fmt::format_to(to, "{:>5}.{:06}: ", s, ns / 1000);
  }
}

}  // namespace

struct ScriptText {
  ScriptFormatter::State& state;
  std::string& out;
  uint32_t fields;

  [[nodiscard]] bool Has(ScriptField field) const { return (fields & field) != 0; }
  void Symbol(const SymbolizedFrame* symbol, uint64_t offset_past_lookup) {
    out += ' ';
    if (symbol == nullptr || symbol->function == 0) {
      out += "[unknown]";
      return;
    }
    out += state.Text(symbol->function);
    if (!Has(kFieldSymoff)) return;
    out += "+0x";
    AppendHexDigits(out, symbol->offset + offset_past_lookup);
  }
  void Dso(session::ModuleId module) {
    out += " (";
    out += state.DsoOf(module);
    out += ')';
  }
  void Srcline(const AnalyzedFrame& frame, const SymbolizedFrame* symbol) {
    if (frame.module == session::kNoModule) return;
    out += "\n  ";
    if (symbol != nullptr && symbol->file != 0) {
      const std::string_view file = state.Text(symbol->file);
      out += file.substr(file.rfind('/') + 1);
      fmt::format_to(std::back_inserter(out), ":{}", symbol->line);
    } else {
      const std::string_view dso = state.DsoOf(frame.module);
      out += dso.substr(dso.rfind('/') + 1);
      out += '[';
      AppendHexDigits(out, frame.svma.value);
      out += ']';
    }
  }
  void Chain(std::span<const AnalyzedFrame> frames);
  std::string_view ChainLines(const AnalyzedFrame& frame, uint64_t shown);
  void MakeChainLines(const AnalyzedFrame& frame, uint64_t shown, std::string& to);
  void SampledFrame(const AnalyzedFrame& frame);
  void Trace(const ScriptFormatter::State::EventFormat& format, const AnalyzedSample& sample);
  void Addr(const ScriptFormatter::State::EventFormat& format, const AnalyzedSample& sample);
  void Branches(const AnalyzedSample& sample);
  // In the file, or from the start of the kernel or its module; the address where that is unknown.
  [[nodiscard]] uint64_t PlaceInModule(const AnalyzedFrame& at, uint64_t address) const {
    if (at.module == session::kNoModule) return address;
    if (!at.kernel) return at.offset.value;
    return address - state.analysis.session().modules()[at.module].kernel_start.value;
  }
};

// perf prints one kind only, by address before by function.
void ScriptText::Branches(const AnalyzedSample& sample) {
  const bool by_function = !Has(kFieldBrstack) && Has(kFieldBrstackSym);
  const bool by_offset = !Has(kFieldBrstack) && !by_function;
  const auto place = [&](uint64_t address, std::string& to) {
    const bool plain = !by_function && !by_offset && !Has(kFieldDso);
    const AnalyzedFrame at =
        plain ? AnalyzedFrame() : state.analysis.LocateInSample(sample, Avma(address));
    if (by_function) {
      const SymbolizedFrame* symbol = at.symbols.empty() ? nullptr : &at.symbols.back();
      if (symbol == nullptr || symbol->function == 0) {
        to += "[unknown]";
      } else {
        to += state.Text(symbol->function);
        to += "+0x";
        AppendHexDigits(to, symbol->offset);
      }
    } else {
      to += "0x";
      AppendHexDigits(to, by_offset ? PlaceInModule(at, address) : address);
    }
    if (Has(kFieldDso)) {
      to += '(';
      to += state.DsoOf(at.module);
      to += ')';
    }
  };
  AppendBranches(sample.sample->branches, by_function ? "" : " ", place, out);
}

void ScriptText::Trace(const ScriptFormatter::State::EventFormat& format,
                       const AnalyzedSample& sample) {
  if (format.trace == nullptr) return;
  format.trace->AppendText(
      sample.sample->raw,
      [&](uint64_t address, std::string& name, uint64_t& offset) {
        return state.FunctionAt(sample, address, name, offset);
      },
      out);
}

void ScriptText::Addr(const ScriptFormatter::State::EventFormat& format,
                      const AnalyzedSample& sample) {
  const uint64_t addr = sample.sample->addr;
  AppendHex16(out, addr);
  if (!format.names_addr || (!Has(kFieldSym) && !Has(kFieldDso))) return;
  const AnalyzedFrame place = state.analysis.LocateInSample(sample, Avma(addr));
  if (Has(kFieldSym)) Symbol(place.symbols.empty() ? nullptr : &place.symbols.back(), 0);
  if (Has(kFieldDso)) Dso(place.module);
}

namespace {

ChainFrameKey KeyOf(const AnalyzedFrame& frame) {
  const bool has_offset = frame.module != session::kNoModule && !frame.kernel;
  return {.symbols = frame.symbols.data(),
          .shown = (has_offset ? frame.offset.value : frame.address.avma.value) -
                   (PrintsLookupAddress(frame) ? 1 : 0),
          .svma = frame.svma.value,
          .module = frame.module};
}

}  // namespace

void ScriptText::Chain(std::span<const AnalyzedFrame> frames) {
  ChainText& chain = state.chain;
  chain.Begin(fields);
  size_t left = frames.size();
  while (left > 0 && chain.Keep(KeyOf(frames[left - 1]))) --left;
  chain.Cut();
  while (left > 0) {
    const ChainFrameKey key = KeyOf(frames[--left]);
    chain.Add(key, ChainLines(frames[left], key.shown));
  }
  out += chain.text();
}

// The view is good until the next call.
std::string_view ScriptText::ChainLines(const AnalyzedFrame& frame, uint64_t shown) {
  if (frame.symbols.empty()) {
    state.scratch.clear();
    MakeChainLines(frame, shown, state.scratch);
    return state.scratch;
  }
  FrameLines::Line& line = state.lines.At(frame.symbols.data());
  if (line.symbols == frame.symbols.data() && line.shown == shown && line.fields == fields) {
    return line.text;
  }
  line.text.clear();
  MakeChainLines(frame, shown, line.text);
  line.symbols = frame.symbols.data();
  line.shown = shown;
  line.fields = fields;
  return line.text;
}

// One line for each function at the frame, the inlined ones first.
void ScriptText::MakeChainLines(const AnalyzedFrame& frame, uint64_t shown, std::string& to) {
  ScriptText lines{state, to, fields};
  // Symbols are of the lookup address; the address shown may be one past it.
  const bool is_return = frame.address.kind == CodeAddressKind::kReturnAddress;
  const uint64_t past_lookup = is_return && !PrintsLookupAddress(frame) ? 1 : 0;
  const size_t count = frame.symbols.empty() ? 1 : frame.symbols.size();
  for (size_t i = 0; i < count; ++i) {
    const SymbolizedFrame* symbol = frame.symbols.empty() ? nullptr : &frame.symbols[i];
    to += '\t';
    AppendHex16(to, shown);
    if (Has(kFieldSym)) lines.Symbol(symbol, past_lookup);
    const bool inlined = symbol != nullptr && symbol->inlined;
    if (Has(kFieldDso) && !inlined) lines.Dso(frame.module);
    if (Has(kFieldSrcline)) lines.Srcline(frame, symbol);
    if (inlined) to += " (inlined)";
    to += '\n';
  }
}

void ScriptText::SampledFrame(const AnalyzedFrame& frame) {
  AppendHex16(out, frame.address.avma.value);
  const SymbolizedFrame* symbol = frame.symbols.empty() ? nullptr : &frame.symbols.back();
  if (Has(kFieldSym)) Symbol(symbol, 0);
  if (Has(kFieldDso)) Dso(frame.module);
  if (Has(kFieldSrcline)) Srcline(frame, symbol);
}

Result<bool> ScriptFormatter::IsIndependent(uint32_t event) {
  TRY_ASSIGN(const State::EventFormat* format, state_->FormatOf(event));
  return !State::HasFurtherPlaces(*format);
}

Status ScriptFormatter::AppendText(const AnalyzedSample& sample, std::string& out) {
  TRY_ASSIGN(const State::EventFormat* format, state_->FormatOf(sample.event));
  const uint32_t fields = format->fields;
  ScriptText text{*state_, out, fields};
  const bool chain = sample.has_callchain && text.Has(kFieldIp);
  auto to = std::back_inserter(out);
  if (text.Has(kFieldComm)) {
    if (chain) {
      out += state_->CommOf(sample);
      out += ' ';
    } else {
      fmt::format_to(to, "{:>16} ", state_->CommOf(sample));
    }
  }
  AppendIds(out, sample.pid, sample.tid, fields);
  if (text.Has(kFieldCpu)) {
    fmt::format_to(to, "[{:03}] ", static_cast<int32_t>(sample.sample->cpu));
  }
  if (text.Has(kFieldTime)) AppendTime(out, sample.sample->time, state_->options.nanoseconds);
  if (text.Has(kFieldPeriod)) {
    fmt::format_to(to, "{:10} ", format->fixed_period.value_or(sample.sample->period));
  }
  if (text.Has(kFieldEvent)) out += format->padded_name;
  if (text.Has(kFieldTrace)) text.Trace(*format, sample);
  if (text.Has(kFieldAddr)) text.Addr(*format, sample);
  if (state_->options.masks && sample.mask.source != session::MaskSource::kNone) {
    fmt::format_to(to, " [mask {:#018x} from {}]", sample.mask.insn,
                   session::MaskSourceName(sample.mask.source));
  }
  if (text.Has(kFieldIp)) {
    if (chain) {
      out += '\n';
      if (!sample.chain_is_empty) {
        text.Chain(sample.frames);
      }
    } else {
      out += ' ';
      if (!sample.frames.empty()) text.SampledFrame(sample.frames.front());
    }
  }
  if (text.Has(kFieldBrstack) || text.Has(kFieldBrstackSym) || text.Has(kFieldBrstackOff)) {
    text.Branches(sample);
  }
  if (text.Has(kFieldCgroup)) {
    const std::string_view path = state_->analysis.session().CgroupPath(sample.sample->cgroup);
    out += ' ';
    out += path.empty() ? "unknown" : path;
  }
  out += '\n';
  return {};
}

Status ScriptFormatter::AppendRecord(const perfdata::Record& record, uint32_t event,
                                     std::string& out) {
  TRY_ASSIGN(const State::EventFormat* format, state_->FormatOf(event));
  const ScriptText text{*state_, out, format->fields};
  const perfdata::Attr& attr = state_->analysis.events().events()[event].attr;
  const perfdata::SampleId id = record.sample_id.value_or(perfdata::SampleId());
  if (text.Has(kFieldComm)) {
    session::Session& session = state_->analysis.session();
    const uint32_t tid = ThreadOfRecord(record);
    const session::Thread* thread = session.FindThread(tid);
    const std::string comm =
        thread != nullptr ? session.CommOf(*thread) : fmt::format(":{}", static_cast<int32_t>(tid));
    const bool chain = (attr.sample_type & perfdata::kSampleCallchain) != 0 && text.Has(kFieldIp);
    fmt::format_to(std::back_inserter(out), "{:>{}} ", comm, chain ? 0 : 16);
  }
  AppendIds(out, id.pid, id.tid, format->fields);
  if (text.Has(kFieldCpu)) {
    fmt::format_to(std::back_inserter(out), "[{:03}] ", static_cast<int32_t>(id.cpu));
  }
  if (text.Has(kFieldTime)) AppendTime(out, id.time, state_->options.nanoseconds);
  AppendRecordText(record, out);
  out += '\n';
  return {};
}

}  // namespace stackreel::views
