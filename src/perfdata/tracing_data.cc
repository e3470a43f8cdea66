#include "perfdata/tracing_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/byte_reader.h"

namespace stackreel::perfdata {

namespace {

// A tracefs format file has a line "name: NAME" and a line "ID: N".
void AddTracepoint(std::string_view system, std::string_view format, TracepointNames& names) {
  std::string_view name;
  std::string_view number;
  while (!format.empty()) {
    const std::string_view line = format.substr(0, format.find('\n'));
    if (line.starts_with("name: ")) name = line.substr(6);
    if (line.starts_with("ID: ")) number = line.substr(4);
    if (!name.empty() && !number.empty()) break;
    format.remove_prefix(std::min(line.size() + 1, format.size()));
  }
  uint64_t id = 0;
  const auto parsed = std::from_chars(number.data(), number.data() + number.size(), id);
  if (name.empty() || number.empty() || parsed.ec != std::errc()) return;
  names[id] = fmt::format("{}:{}", system, name);
}

}  // namespace

bool DecodeTracepointNames(ByteView bytes, TracepointNames& names) {
  static constexpr std::string_view kMagic = "\x17\x08\x44tracing";
  if (!AsText(bytes).starts_with(kMagic)) return false;
  ByteReader head(bytes);
  head.Skip(kMagic.size());
  head.CString();
  const Endian endian = head.U8() == 0 ? Endian::kLittle : Endian::kBig;
  ByteReader in(bytes, endian);
  in.Seek(head.offset());
  in.Skip(1 + 4);
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
      AddTracepoint(system, AsText(in.Bytes(in.U64())), names);
    }
  }
  return head.ok() && in.ok();
}

}  // namespace stackreel::perfdata
