// Decoded fields as lines of text: what `dump` and `report --header` print.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "perfdata/attr_layout.h"
#include "perfdata/layout.h"
#include "perfdata/record.h"
#include "perfdata/sample.h"

namespace stackreel::perfdata {

// ---- single values ----
// Text in double quotes; what is not printable ASCII or UTF-8 as \xNN.
std::string QuotedText(std::string_view text);
// "2f 62 69 6e"; of more than `limit` bytes only so many, and how many more there are.
std::string HexBytes(ByteView bytes, size_t limit);
// "0-3,8"; numbers need not be sorted.
std::string NumberRanges(std::vector<uint32_t> numbers);
// "IP|TID|TIME", "ID|LOST", "mmap, comm, freq": the names of the bits that are set.
std::string SampleTypeNames(uint64_t sample_type);
std::string ReadFormatNames(uint64_t read_format);
std::string AttrFlagNames(uint64_t flags);
// "user", "kernel", … of a marker in a callchain; empty for an address.
std::string_view CallchainMarkerName(uint64_t ip);
// perf's name of a register ("ip", "sp", "x29") for ARCH's text "x86_64", "i686", "aarch64", …;
// else "r" and the number.
std::string RegisterName(std::string_view arch, unsigned reg);
std::string FormatNumber(const FieldInfo& info, uint64_t value, bool is_signed, size_t width);

// ---- whole structures ----
// Observes a decode and makes a line of each field:
//   "  +0x018 addr: 0x7f0000000000"
// Offsets count from the record's start, `base` being where the decoded bytes begin in it.
class FieldLines {
 public:
  struct Options {
    bool offsets = true;
    std::string_view arch;             // for names of registers
    size_t bytes_shown = 32;           // of byte arrays; SIZE_MAX for all
    size_t elements_shown = SIZE_MAX;  // of arrays of numbers
  };

  FieldLines(ByteView bytes, Endian endian, size_t base, const Options& options)
      : bytes_(bytes), endian_(endian), base_(base), options_(options) {}

  [[nodiscard]] std::vector<std::string>& lines() { return lines_; }

  // ---- as an observer ----
  template <typename M>
  void Field(const FieldInfo& info, const ByteReader& in, size_t begin, const M& value) {
    if (in.ok()) {
      Add(info, begin, value);
    } else if (!cut_off_) {
      cut_off_ = true;
      Line(begin, Path(info.name) + ": missing");
    }
  }
  void Enter(std::string_view name, size_t index);
  void Leave();

 private:
  template <std::integral M>
  void Add(const FieldInfo& info, size_t begin, const M& value) {
    Line(begin,
         Path(info.name) + ": " +
             FormatNumber(info, static_cast<uint64_t>(value), std::signed_integral<M>, sizeof(M)));
  }
  template <size_t kSize>
  void Add(const FieldInfo& info, size_t begin, const std::array<uint8_t, kSize>& value) {
    Add(info, begin, ByteView(value));
  }
  void Add(const FieldInfo& info, size_t begin, const std::string& value);
  void Add(const FieldInfo& info, size_t begin, const std::vector<std::string>& value);
  void Add(const FieldInfo& info, size_t begin, ByteView value);
  void Add(const FieldInfo& info, size_t begin, const std::vector<uint8_t>& value) {
    Add(info, begin, ByteView(value));
  }
  void Add(const FieldInfo& info, size_t begin, const std::vector<uint32_t>& value);
  void Add(const FieldInfo& info, size_t begin, const std::vector<uint64_t>& value);
  void Add(const FieldInfo& info, size_t begin, const U64Array& value);
  void Add(const FieldInfo& info, size_t begin, const BranchArray& value);
  void Add(const FieldInfo& info, size_t begin, const SampledRegs& value);
  void Add(const FieldInfo& info, size_t begin, const ReadValues& value);
  void Add(const FieldInfo& info, size_t begin, const BuildId& value);
  void Add(const FieldInfo& info, size_t begin, const CpuMap& value);
  void Add(const FieldInfo& info, size_t begin, const Attr& value);

  [[nodiscard]] std::string Path(std::string_view name) const;
  void Line(size_t begin, std::string text);
  // A line below the one before, for a part of the same field.
  void SubLine(std::string text);

  ByteView bytes_;
  Endian endian_;
  size_t base_;
  Options options_;
  std::vector<std::string> lines_;
  std::vector<std::string> path_;
  bool cut_off_ = false;
};

}  // namespace stackreel::perfdata
