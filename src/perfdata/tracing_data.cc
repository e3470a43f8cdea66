#include "perfdata/tracing_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "base/byte_reader.h"

namespace stackreel::perfdata {

namespace {

// A tracefs format file has a line "name: NAME" and a line "ID: N".
struct FormatHead {
  std::string_view name;
  uint64_t id = 0;
};
std::optional<FormatHead> ParseHead(std::string_view format) {
  FormatHead head;
  std::string_view number;
  while (!format.empty()) {
    const std::string_view line = format.substr(0, format.find('\n'));
    if (line.starts_with("name: ")) head.name = line.substr(6);
    if (line.starts_with("ID: ")) number = line.substr(4);
    if (!head.name.empty() && !number.empty()) break;
    format.remove_prefix(std::min(line.size() + 1, format.size()));
  }
  const auto parsed = std::from_chars(number.data(), number.data() + number.size(), head.id);
  if (head.name.empty() || number.empty() || parsed.ec != std::errc()) return std::nullopt;
  return head;
}

struct Machine {
  Endian endian = Endian::kLittle;
  unsigned long_size = 8;
  ByteView rest;  // behind the tracepoints
};

// Calls visit(system, head, format text) for each tracepoint.
template <typename Visit>
bool ForEachTracepoint(ByteView bytes, Machine& machine, const Visit& visit) {
  static constexpr std::string_view kMagic = "\x17\x08\x44tracing";
  if (!AsText(bytes).starts_with(kMagic)) return false;
  ByteReader head(bytes);
  head.Skip(kMagic.size());
  head.CString();
  machine.endian = head.U8() == 0 ? Endian::kLittle : Endian::kBig;
  machine.long_size = head.U8();
  ByteReader in(bytes, machine.endian);
  in.Seek(head.offset());
  in.Skip(4);
  for (int i = 0; i < 2; ++i) {
    in.CString();
    in.Skip(in.U64());
  }
  const uint32_t ftrace_events = in.U32();
  for (uint32_t i = 0; i < ftrace_events && in.ok(); ++i) in.Skip(in.U64());
  const uint32_t systems = in.U32();
  for (uint32_t i = 0; i < systems && in.ok(); ++i) {
    const std::string_view system = in.CString();
    const uint32_t events = in.U32();
    for (uint32_t k = 0; k < events && in.ok(); ++k) {
      const std::string_view text = AsText(in.Bytes(in.U64()));
      if (const auto event = ParseHead(text)) visit(system, *event, text);
    }
  }
  machine.rest = in.Rest();
  return head.ok() && in.ok();
}

// "0xffffffff82345678 : "text"", a line each.
std::map<uint64_t, std::string> ParseLiterals(std::string_view text) {
  std::map<uint64_t, std::string> literals;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    uint64_t address = 0;
    if (!line.starts_with("0x")) continue;
    std::from_chars(line.data() + 2, line.data() + line.size(), address, 16);
    const size_t open = line.find('"');
    const size_t close = line.rfind('"');
    if (open < close) literals.emplace(address, line.substr(open + 1, close - open - 1));
  }
  return literals;
}

}  // namespace

bool DecodeTracepointNames(ByteView bytes, TracepointNames& names) {
  Machine machine;
  return ForEachTracepoint(bytes, machine,
                           [&](std::string_view system, const FormatHead& head, std::string_view) {
                             names[head.id] = fmt::format("{}:{}", system, head.name);
                           });
}

TracepointFormats::TracepointFormats(std::vector<uint8_t> bytes) : bytes_(std::move(bytes)) {
  Machine machine;
  ForEachTracepoint(bytes_, machine,
                    [&](std::string_view, const FormatHead& head, std::string_view text) {
                      texts_[head.id] = text;
                    });
  ByteReader rest(machine.rest, machine.endian);
  rest.Skip(rest.U32());  // /proc/kallsyms
  literals_ = std::make_shared<const TraceLiterals>(ParseLiterals(AsText(rest.Bytes(rest.U32()))));
  endian_ = machine.endian;
  long_size_ = machine.long_size;
}

const TraceFormat* TracepointFormats::Of(uint64_t config) {
  if (const auto known = parsed_.find(config); known != parsed_.end()) return &known->second;
  const auto text = texts_.find(config);
  if (text == texts_.end()) return nullptr;
  return &parsed_.emplace(config, TraceFormat::Parse(text->second, endian_, long_size_, literals_))
              .first->second;
}

}  // namespace stackreel::perfdata
