// A tracepoint's format file (Documentation/trace/events.rst): what its raw data are, and the text
// that the kernel makes of them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "perfdata/print_format.h"

namespace stackreel::perfdata {

//   field:__data_loc char[] filename;  offset:8;  size:4;  signed:0;
struct TraceField {
  enum class Place : uint8_t {
    kHere,      // `size` bytes at `offset`
    kDataLoc,   // there: u16 offset from the record's start, then u16 length
    kRelative,  // the same from behind the field
  };
  std::string name;
  uint32_t offset = 0, size = 0;
  uint32_t element_size = 0;  // of an array, if its type is a known one
  Place place = Place::kHere;
  bool is_signed = false;
  bool is_array = false;  // a dynamic one too
  bool is_text = false;   // an array of char
  bool is_pointer = false;
  bool is_long = false;  // shown as hex where there is no text of the kernel's
};

// Texts of the kernel by their addresses (printk_formats).
using TraceLiterals = std::map<uint64_t, std::string>;

class TraceFormat {
 public:
  // Never fails: what is not understood in "print fmt" is shown by its fields. `literals` may be
  // null.
  static TraceFormat Parse(std::string_view format_file, Endian endian, unsigned long_size,
                           std::shared_ptr<const TraceLiterals> literals);

  // Turns the address of a function into "name" and its offset there; false if none is known.
  using Resolver = std::function<bool(uint64_t address, std::string& name, uint64_t& offset)>;
  // The text of one record's raw bytes, as libtraceevent makes it for perf:
  // "prev_comm=sh prev_pid=…", or "[FAILED TO PARSE] prev_comm=sh …" by fields.
  void AppendText(ByteView raw, const Resolver& resolve, std::string& out) const;

  [[nodiscard]] const std::vector<TraceField>& fields() const { return fields_; }
  // Those that every event begins with, as common_type and common_pid.
  [[nodiscard]] const std::vector<TraceField>& common_fields() const { return common_fields_; }
  [[nodiscard]] const TraceField* Find(std::string_view name) const;
  [[nodiscard]] bool has_text() const { return print_.has_value(); }

 private:
  void AppendFields(ByteView raw, std::string& out) const;

  std::vector<TraceField> fields_, common_fields_;
  std::optional<PrintFormat> print_;
  std::shared_ptr<const TraceLiterals> literals_;
  Endian endian_ = Endian::kLittle;
  unsigned long_size_ = 8;
};

// The bytes of an array, wherever they are; what of them lies outside `raw` is left out.
ByteView ArrayBytes(ByteView raw, const TraceField& field, Endian endian);
// A number of 1, 2, 4 or 8 bytes, not sign-extended; 0 if it is not one or lies outside.
uint64_t FieldNumber(ByteView raw, const TraceField& field, Endian endian);

}  // namespace stackreel::perfdata
