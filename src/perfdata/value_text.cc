#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <span>

#include "perfdata/field_text.h"

namespace stackreel::perfdata {

std::string QuotedText(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string HexBytes(ByteView bytes, size_t limit) {
  std::string out;
  for (size_t i = 0; i < std::min(limit, bytes.size()); ++i) {
    out += fmt::format("{}{:02x}", i == 0 ? "" : " ", bytes[i]);
  }
  if (bytes.size() > limit) out += fmt::format(" … {} more", bytes.size() - limit);
  return out;
}

std::string NumberRanges(std::vector<uint32_t> numbers) {
  std::sort(numbers.begin(), numbers.end());
  std::string out;
  for (size_t i = 0; i < numbers.size();) {
    size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] - numbers[last] <= 1) ++last;
    if (!out.empty()) out += ',';
    out += numbers[i] == numbers[last] ? fmt::format("{}", numbers[i])
                                       : fmt::format("{}-{}", numbers[i], numbers[last]);
    i = last + 1;
  }
  return out;
}

namespace {

// The names of the bits set in `word`, bit 0 first; a bit without a name as its number.
std::string BitNames(uint64_t word, std::span<const std::string_view> names,
                     std::string_view separator) {
  std::string out;
  for (; word != 0; word &= word - 1) {
    const auto bit = static_cast<size_t>(std::countr_zero(word));
    if (!out.empty()) out += separator;
    out += bit < names.size() ? std::string(names[bit]) : fmt::format("bit{}", bit);
  }
  return out;
}

constexpr std::array<std::string_view, 26> kSampleTypeNames = {"IP",
                                                               "TID",
                                                               "TIME",
                                                               "ADDR",
                                                               "READ",
                                                               "CALLCHAIN",
                                                               "ID",
                                                               "CPU",
                                                               "PERIOD",
                                                               "STREAM_ID",
                                                               "RAW",
                                                               "BRANCH_STACK",
                                                               "REGS_USER",
                                                               "STACK_USER",
                                                               "WEIGHT",
                                                               "DATA_SRC",
                                                               "IDENTIFIER",
                                                               "TRANSACTION",
                                                               "REGS_INTR",
                                                               "PHYS_ADDR",
                                                               "AUX",
                                                               "CGROUP",
                                                               "DATA_PAGE_SIZE",
                                                               "CODE_PAGE_SIZE",
                                                               "WEIGHT_STRUCT",
                                                               "ARCH_1"};

constexpr std::array<std::string_view, 5> kReadFormatNames = {
    "TOTAL_TIME_ENABLED", "TOTAL_TIME_RUNNING", "ID", "GROUP", "LOST"};

// Bits 15 and 16 are one number.
constexpr std::array<std::string_view, 41> kAttrFlagNames = {"disabled",
                                                             "inherit",
                                                             "pinned",
                                                             "exclusive",
                                                             "exclude_user",
                                                             "exclude_kernel",
                                                             "exclude_hv",
                                                             "exclude_idle",
                                                             "mmap",
                                                             "comm",
                                                             "freq",
                                                             "inherit_stat",
                                                             "enable_on_exec",
                                                             "task",
                                                             "watermark",
                                                             "",
                                                             "",
                                                             "mmap_data",
                                                             "sample_id_all",
                                                             "exclude_host",
                                                             "exclude_guest",
                                                             "exclude_callchain_kernel",
                                                             "exclude_callchain_user",
                                                             "mmap2",
                                                             "comm_exec",
                                                             "use_clockid",
                                                             "context_switch",
                                                             "write_backward",
                                                             "namespaces",
                                                             "ksymbol",
                                                             "bpf_event",
                                                             "aux_output",
                                                             "cgroup",
                                                             "text_poke",
                                                             "build_id",
                                                             "inherit_thread",
                                                             "remove_on_exec",
                                                             "sigtrap",
                                                             "defer_callchain",
                                                             "defer_output",
                                                             "ptr_auth"};

// Numbers of arch/x86/include/uapi/asm/perf_regs.h.
constexpr std::array<std::string_view, 24> kX86Registers = {
    "ax", "bx", "cx", "dx", "si", "di", "bp",  "sp",  "ip",  "flags", "cs",  "ss",
    "ds", "es", "fs", "gs", "r8", "r9", "r10", "r11", "r12", "r13",   "r14", "r15"};

bool IsX86(std::string_view arch) {
  return arch == "x86_64" || arch == "x86" || (arch.size() == 4 && arch.ends_with("86"));
}

}  // namespace

std::string SampleTypeNames(uint64_t sample_type) {
  return BitNames(sample_type, kSampleTypeNames, "|");
}

std::string ReadFormatNames(uint64_t read_format) {
  return BitNames(read_format, kReadFormatNames, "|");
}

std::string AttrFlagNames(uint64_t flags) {
  std::string out = BitNames(flags & ~uint64_t{kAttrPreciseIpMask}, kAttrFlagNames, ", ");
  const uint64_t precise = (flags & kAttrPreciseIpMask) >> 15;
  if (precise == 0) return out;
  if (!out.empty()) out += ", ";
  return out + fmt::format("precise_ip {}", precise);
}

std::string_view CallchainMarkerName(uint64_t ip) {
  switch (ip) {
    case kContextHv:
      return "hypervisor";
    case kContextKernel:
      return "kernel";
    case kContextUser:
      return "user";
    case kContextUserDeferred:
      return "user, deferred: its cookie follows";
    case kContextGuest:
      return "guest";
    case kContextGuestKernel:
      return "guest kernel";
    case kContextGuestUser:
      return "guest user";
    default:
      return ip >= kContextMax ? "marker" : "";
  }
}

std::string RegisterName(std::string_view arch, unsigned reg) {
  if (IsX86(arch) && reg < kX86Registers.size()) return std::string(kX86Registers[reg]);
  // asm/perf_regs.h of arm64: x0 to x29, lr, sp, pc, and vg (the vector length) at 46.
  if (arch == "aarch64" || arch == "arm64") {
    if (reg < 30) return fmt::format("x{}", reg);
    if (reg == 30) return "lr";
    if (reg == 31) return "sp";
    if (reg == 32) return "pc";
    if (reg == 46) return "vg";
  }
  return fmt::format("r{}", reg);
}

std::string FormatNumber(const FieldInfo& info, uint64_t value, bool is_signed, size_t width) {
  const auto with_names = [value](const std::string& names) {
    return names.empty() ? fmt::format("{:#x}", value) : fmt::format("{:#x} {}", value, names);
  };
  switch (info.display) {
    case Display::kHex:
      return fmt::format("{:#x}", value);
    case Display::kReal:
      return fmt::format("{}", std::bit_cast<double>(value));
    case Display::kSampleType:
      return with_names(SampleTypeNames(value));
    case Display::kReadFormat:
      return with_names(ReadFormatNames(value));
    case Display::kAttrFlags:
      return with_names(AttrFlagNames(value));
    case Display::kDecimal:
      break;
  }
  // -1 stands for "no process" and is read as unsigned.
  if (is_signed || info.sensitivity == Sensitivity::kPid) {
    return fmt::format("{}",
                       width == 4 ? static_cast<int32_t>(value) : static_cast<int64_t>(value));
  }
  return fmt::format("{}", value);
}

}  // namespace stackreel::perfdata
