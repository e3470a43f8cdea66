// A tracepoint's format file and a record of it, with a 0xff byte between them.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "perfdata/trace_format.h"

using stackreel::ByteView;
using stackreel::Endian;
using stackreel::perfdata::TraceFormat;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const uint8_t* end = std::find(data, data + size, 0xff);
  const std::string_view text(reinterpret_cast<const char*>(data), static_cast<size_t>(end - data));
  const ByteView raw(end == data + size ? end : end + 1, data + size);
  const TraceFormat format =
      TraceFormat::Parse(text, size % 2 == 0 ? Endian::kLittle : Endian::kBig, 8, nullptr);
  std::string out;
  format.AppendText(
      raw,
      [](uint64_t address, std::string& name, uint64_t& offset) {
        name = "f";
        offset = address & 15;
        return address % 2 == 0;
      },
      out);
  // Widths are bounded, and each argument shows a part of the two at most a few times over.
  CHECK(out.size() <= (text.size() + 1) * (1024 + 8 * raw.size() + 8 * text.size()));
  return 0;
}
