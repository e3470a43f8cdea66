// The layout of perf_event_attr (linux/perf_event.h): 144 bytes in its longest published form.
#pragma once

#include "perfdata/attr.h"
#include "perfdata/layout.h"

namespace stackreel::perfdata {

// The low `count` bits of `value`, in reverse order.
constexpr uint64_t ReverseBits(uint64_t value, unsigned count) {
  uint64_t out = 0;
  for (unsigned i = 0; i < count; ++i) out |= ((value >> i) & 1) << (count - 1 - i);
  return out;
}

// precise_ip with its two bits exchanged, the other bits as they are.
constexpr uint64_t TurnPreciseIp(uint64_t flags) {
  const uint64_t precise = flags & kAttrPreciseIpMask;
  const uint64_t turned = ((precise << 1) | (precise >> 1)) & kAttrPreciseIpMask;
  return (flags & ~uint64_t{kAttrPreciseIpMask}) | turned;
}

// A word of bitfields. A big-endian compiler allots them from the most significant bit down, so
// that the number read has its fields in reverse order:
//   little   bit 0  [disabled][inherit] … [precise_ip:2] … bit 63
//   big      bit 63 [disabled][inherit] … [precise_ip:2] … bit 0
// Reversing all bits puts each field in its place but turns the two bits of precise_ip around.
struct AttrFlagWord {
  static void Decode(ByteReader& in, uint64_t& value, const WireScope&) {
    value = in.U64();
    if (in.endian() == Endian::kBig) value = TurnPreciseIp(ReverseBits(value, 64));
  }
  static void Encode(ByteWriter& out, uint64_t value, const WireScope&) {
    out.U64(out.endian() == Endian::kBig ? ReverseBits(TurnPreciseIp(value), 64) : value);
  }
};

// Single bits (aux_start_paused, aux_pause, aux_resume), allotted as above.
struct AuxActionWord {
  static void Decode(ByteReader& in, uint32_t& value, const WireScope&) {
    value = in.U32();
    if (in.endian() == Endian::kBig) value = static_cast<uint32_t>(ReverseBits(value, 32));
  }
  static void Encode(ByteWriter& out, uint32_t value, const WireScope&) {
    out.U32(out.endian() == Endian::kBig ? static_cast<uint32_t>(ReverseBits(value, 32)) : value);
  }
};

template <>
inline constexpr auto kLayout<Attr> = Layout<Attr>(
    F("type", &Attr::type, Sensitivity::kNone),                                              // 0
    F("size", &Attr::size, Sensitivity::kNone),                                              // 4
    F("config", &Attr::config, Sensitivity::kEventConfig, Display::kHex),                    // 8
    F("sample_period_or_freq", &Attr::sample_period_or_freq, Sensitivity::kNone),            // 16
    F("sample_type", &Attr::sample_type, Sensitivity::kNone, Display::kSampleType),          // 24
    F("read_format", &Attr::read_format, Sensitivity::kNone, Display::kReadFormat),          // 32
    F<AttrFlagWord>("flags", &Attr::flags, Sensitivity::kNone, Display::kAttrFlags),         // 40
    F("wakeup_events_or_watermark", &Attr::wakeup_events_or_watermark, Sensitivity::kNone),  // 48
    F("bp_type", &Attr::bp_type, Sensitivity::kNone),                                        // 52
    F("config1", &Attr::config1, Sensitivity::kEventConfig, Display::kHex),                  // 56
    F("config2", &Attr::config2, Sensitivity::kEventConfig, Display::kHex),                  // 64
    F("branch_sample_type", &Attr::branch_sample_type, Sensitivity::kNone, Display::kHex),   // 72
    F("sample_regs_user", &Attr::sample_regs_user, Sensitivity::kNone, Display::kHex),       // 80
    F("sample_stack_user", &Attr::sample_stack_user, Sensitivity::kNone),                    // 88
    F("clockid", &Attr::clockid, Sensitivity::kNone),                                        // 92
    F("sample_regs_intr", &Attr::sample_regs_intr, Sensitivity::kNone, Display::kHex),       // 96
    F("aux_watermark", &Attr::aux_watermark, Sensitivity::kNone),                            // 104
    F("sample_max_stack", &Attr::sample_max_stack, Sensitivity::kNone),                      // 108
    Pad<2>(),                                                                                // 110
    F("aux_sample_size", &Attr::aux_sample_size, Sensitivity::kNone),                        // 112
    F<AuxActionWord>("aux_action", &Attr::aux_action, Sensitivity::kNone, Display::kHex),    // 116
    F("sig_data", &Attr::sig_data, Sensitivity::kPayload, Display::kHex),                    // 120
    F("config3", &Attr::config3, Sensitivity::kEventConfig, Display::kHex),                  // 128
    F("config4", &Attr::config4, Sensitivity::kEventConfig, Display::kHex),                  // 136
    F<RestBytes>("tail", &Attr::tail, Sensitivity::kEventConfig));                           // 144

inline constexpr uint32_t kAttrSizeFirst = 64;  // PERF_ATTR_SIZE_VER0
inline constexpr uint32_t kAttrSizeLast = 144;  // PERF_ATTR_SIZE_VER9

}  // namespace stackreel::perfdata
