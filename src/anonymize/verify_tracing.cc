#include "anonymize/verify_tracing.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/byte_reader.h"

namespace stackreel::anonymize {
namespace {

void SkipSized(ByteReader& in) { in.Skip(in.U64()); }

void SkipFormats(ByteReader& in) {
  for (int i = 0; i < 2; ++i) {  // header_page, header_event
    in.CString();
    SkipSized(in);
  }
  const uint32_t ftrace = in.U32();
  for (uint32_t i = 0; i < ftrace && in.ok(); ++i) SkipSized(in);
  const uint32_t systems = in.U32();
  for (uint32_t i = 0; i < systems && in.ok(); ++i) {
    in.CString();
    const uint32_t events = in.U32();
    for (uint32_t k = 0; k < events && in.ok(); ++k) SkipSized(in);
  }
}

}  // namespace

std::string WhatElseIsInTracingData(ByteView bytes) {
  static constexpr std::string_view kMagic = "\x17\x08\x44tracing";
  if (std::ranges::all_of(bytes, [](uint8_t byte) { return byte == 0; })) return "";
  if (!AsText(bytes).starts_with(kMagic)) return "it is not TRACING_DATA";
  ByteReader head(bytes);
  head.Skip(kMagic.size());
  head.CString();  // the version
  const Endian endian = head.U8() == 0 ? Endian::kLittle : Endian::kBig;
  head.Skip(1 + 4);  // sizes of long and page
  ByteReader in(bytes, endian);
  in.Seek(head.offset());
  SkipFormats(in);
  const uint32_t kallsyms = in.U32();
  if (!head.ok() || !in.ok()) return "it ends amid its formats";
  if (kallsyms != 0) return fmt::format("{} bytes of kallsyms", kallsyms);
  const uint32_t literals = in.U32();
  if (literals != 0) return fmt::format("{} bytes of printk_formats", literals);
  // Older files end here; zeros, and a size of 0, are none.
  const ByteView rest = in.Rest();
  if (std::ranges::all_of(rest, [](uint8_t byte) { return byte == 0; })) return "";
  return fmt::format("{} bytes behind its formats", rest.size());
}

}  // namespace stackreel::anonymize
