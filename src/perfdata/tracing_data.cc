#include "perfdata/tracing_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "base/byte_reader.h"
#include "base/byte_writer.h"

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

constexpr std::string_view kMagic = "\x17\x08\x44tracing";
constexpr std::string_view kPageHead("header_page\0", 12), kEventHead("header_event\0", 13);

bool HasCmdlines(std::string_view version) {
  double number = 0;
  std::from_chars(version.data(), version.data() + version.size(), number);
  return number >= 0.6;
}

// Calls visit(system, head, format text) for each tracepoint.
template <typename Visit>
void ForEachTracepoint(const TracingDataParts& parts, const Visit& visit) {
  for (const TracingDataParts::System& system : parts.systems) {
    for (const std::string_view text : system.formats) {
      if (const auto event = ParseHead(text)) visit(system.name, *event, text);
    }
  }
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

std::optional<TracingDataParts> ParseTracingData(ByteView bytes) {
  if (!AsText(bytes).starts_with(kMagic)) return std::nullopt;
  TracingDataParts parts;
  ByteReader head(bytes);
  head.Skip(kMagic.size());
  parts.version = head.CString();
  if (parts.version.find_first_not_of("0123456789.") != std::string_view::npos) return std::nullopt;
  parts.endian = head.U8() == 0 ? Endian::kLittle : Endian::kBig;
  parts.long_size = head.U8();
  ByteReader in(bytes, parts.endian);
  in.Seek(head.offset());
  parts.page_size = in.U32();
  in.CString();
  parts.header_page = AsText(in.Bytes(in.U64()));
  in.CString();
  parts.header_event = AsText(in.Bytes(in.U64()));
  const uint32_t ftrace_events = in.U32();
  for (uint32_t i = 0; i < ftrace_events && in.ok(); ++i) {
    parts.ftrace_formats.push_back(AsText(in.Bytes(in.U64())));
  }
  const uint32_t systems = in.U32();
  for (uint32_t i = 0; i < systems && in.ok(); ++i) {
    TracingDataParts::System& system = parts.systems.emplace_back();
    system.name = in.CString();
    const uint32_t events = in.U32();
    for (uint32_t k = 0; k < events && in.ok(); ++k) {
      system.formats.push_back(AsText(in.Bytes(in.U64())));
    }
  }
  if (!head.ok() || !in.ok()) return std::nullopt;
  parts.kallsyms = AsText(in.Bytes(in.U32()));
  parts.printk_formats = AsText(in.Bytes(in.U32()));
  if (HasCmdlines(parts.version)) parts.saved_cmdlines = AsText(in.Bytes(in.U64()));
  return parts;
}

std::vector<uint8_t> EncodeTracingData(const TracingDataParts& parts) {
  ByteWriter out(parts.endian);
  const auto sized = [&out](std::string_view text) {
    out.U64(text.size());
    out.Text(text);
  };
  out.Text(kMagic);
  out.Text(parts.version);
  out.U8(0);
  out.U8(parts.endian == Endian::kLittle ? 0 : 1);
  out.U8(parts.long_size);
  out.U32(parts.page_size);
  out.Text(kPageHead);
  sized(parts.header_page);
  out.Text(kEventHead);
  sized(parts.header_event);
  out.U32(static_cast<uint32_t>(parts.ftrace_formats.size()));
  for (const std::string_view format : parts.ftrace_formats) sized(format);
  out.U32(static_cast<uint32_t>(parts.systems.size()));
  for (const TracingDataParts::System& system : parts.systems) {
    out.Text(system.name);
    out.U8(0);
    out.U32(static_cast<uint32_t>(system.formats.size()));
    for (const std::string_view format : system.formats) sized(format);
  }
  out.U32(static_cast<uint32_t>(parts.kallsyms.size()));
  out.Text(parts.kallsyms);
  out.U32(static_cast<uint32_t>(parts.printk_formats.size()));
  out.Text(parts.printk_formats);
  if (HasCmdlines(parts.version)) sized(parts.saved_cmdlines);
  return out.Take();
}

bool DecodeTracepointNames(ByteView bytes, TracepointNames& names) {
  const auto parts = ParseTracingData(bytes);
  if (!parts) return false;
  ForEachTracepoint(*parts, [&](std::string_view system, const FormatHead& head, std::string_view) {
    names[head.id] = fmt::format("{}:{}", system, head.name);
  });
  return true;
}

TracepointFormats::TracepointFormats(std::vector<uint8_t> bytes) : bytes_(std::move(bytes)) {
  const auto parts = ParseTracingData(bytes_);
  if (!parts) return;
  ForEachTracepoint(*parts, [&](std::string_view, const FormatHead& head, std::string_view text) {
    texts_[head.id] = text;
  });
  literals_ = std::make_shared<const TraceLiterals>(ParseLiterals(parts->printk_formats));
  endian_ = parts->endian;
  long_size_ = parts->long_size;
}

const TraceFormat* TracepointFormats::Of(uint64_t config) {
  if (const auto known = parsed_.find(config); known != parsed_.end()) return &known->second;
  const auto text = texts_.find(config);
  if (text == texts_.end()) return nullptr;
  return &parsed_.emplace(config, TraceFormat::Parse(text->second, endian_, long_size_, literals_))
              .first->second;
}

}  // namespace stackreel::perfdata
