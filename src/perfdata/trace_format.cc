#include "perfdata/trace_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>

#include "perfdata/print_text.h"

namespace stackreel::perfdata {
namespace {

std::string_view Trim(std::string_view text) {
  const size_t start = text.find_first_not_of(" \t");
  if (start == std::string_view::npos) return {};
  return text.substr(start, text.find_last_not_of(" \t\r") - start + 1);
}

// "offset:8;" → 8; 0 if it is not there.
uint32_t NumberAfter(std::string_view line, std::string_view key) {
  const size_t at = line.find(key);
  uint32_t value = 0;
  if (at == std::string_view::npos) return 0;
  std::from_chars(line.data() + at + key.size(), line.data() + line.size(), value);
  return value;
}

// Of one element of an array of this type; 0 if it is not known.
uint32_t ElementSize(std::string_view type, unsigned long_size) {
  if (type.find('*') != std::string_view::npos) return long_size;
  for (const auto& [bits, size] : {std::pair("64", 8), std::pair("32", 4), std::pair("16", 2)}) {
    if (type.find(bits) != std::string_view::npos) return static_cast<uint32_t>(size);
  }
  for (const char* byte : {"char", "u8", "s8", "uint8_t", "int8_t", "bool"}) {
    if (type.find(byte) != std::string_view::npos) return 1;
  }
  if (type.find("long long") != std::string_view::npos) return 8;
  if (type.find("long") != std::string_view::npos) return long_size;
  if (type.find("short") != std::string_view::npos) return 2;
  return type.find("int") != std::string_view::npos ? 4 : 0;
}

// "field:unsigned long args[6];" "offset:16;" "size:48;" "signed:0;", tabs between them.
bool ParseField(std::string_view line, unsigned long_size, TraceField& field) {
  const size_t end = line.find(';');
  if (end == std::string_view::npos) return false;
  std::string_view declared = Trim(line.substr(0, end));
  for (const auto& [prefix, place] : {std::pair("__data_loc ", TraceField::Place::kDataLoc),
                                      std::pair("__rel_loc ", TraceField::Place::kRelative)}) {
    if (!declared.starts_with(prefix)) continue;
    declared.remove_prefix(std::string_view(prefix).size());
    field.place = place;
    field.is_array = true;
  }
  const size_t bracket = declared.rfind('[');
  if (bracket != std::string_view::npos && field.place == TraceField::Place::kHere) {
    declared = Trim(declared.substr(0, bracket));
    field.is_array = true;
  }
  const size_t name = declared.find_last_of(" \t*]");
  if (name == std::string_view::npos) return false;
  field.name = declared.substr(name + 1);
  const std::string_view type = Trim(declared.substr(0, name + 1));
  field.offset = NumberAfter(line, "offset:");
  field.size = NumberAfter(line, "size:");
  field.is_signed = NumberAfter(line, "signed:") != 0;
  field.is_pointer = type.find('*') != std::string_view::npos;
  field.is_long = type.find("long") != std::string_view::npos;
  field.is_text = field.is_array && type.find("char") != std::string_view::npos;
  if (field.is_array) field.element_size = ElementSize(type, long_size);
  return !field.name.empty();
}

bool IsPrintable(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= ' ' && c <= '~') || (c >= '\t' && c <= '\r'); });
}

}  // namespace

ByteView ArrayBytes(ByteView raw, const TraceField& field, Endian endian) {
  uint64_t offset = field.offset;
  uint64_t size = field.size;
  if (field.place != TraceField::Place::kHere) {
    const auto location = static_cast<uint32_t>(FieldNumber(raw, field, endian));
    offset = location & 0xffff;
    size = location >> 16;
    if (field.place == TraceField::Place::kRelative) offset += field.offset + field.size;
  }
  if (offset >= raw.size()) return {};
  return raw.subspan(offset, std::min<uint64_t>(size, raw.size() - offset));
}

uint64_t FieldNumber(ByteView raw, const TraceField& field, Endian endian) {
  if (field.offset > raw.size() || field.size > raw.size() - field.offset) return 0;
  const uint8_t* at = raw.data() + field.offset;
  switch (field.size) {
    case 1:
      return *at;
    case 2:
      return LoadUnaligned<uint16_t>(at, endian);
    case 4:
      return LoadUnaligned<uint32_t>(at, endian);
    case 8:
      return LoadUnaligned<uint64_t>(at, endian);
    default:
      return 0;
  }
}

TraceFormat TraceFormat::Parse(std::string_view format_file, Endian endian, unsigned long_size,
                               std::shared_ptr<const TraceLiterals> literals) {
  TraceFormat format;
  format.literals_ = std::move(literals);
  format.endian_ = endian;
  format.long_size_ = long_size == 4 ? 4 : 8;
  std::string_view print;
  for (std::string_view rest = format_file; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const std::string_view text = Trim(line);
    TraceField field;
    if (text.starts_with("print fmt:")) {
      // To the end of the file: the format may have line breaks.
      print = text.substr(10);
      print = std::string_view(print.data(), print.size() + rest.size() + (rest.empty() ? 0 : 1));
      break;
    }
    if (!text.starts_with("field:") || !ParseField(text.substr(6), format.long_size_, field)) {
      continue;
    }
    const bool is_common = field.name.starts_with("common_");
    (is_common ? format.common_fields_ : format.fields_).push_back(std::move(field));
  }
  format.print_ = PrintFormat::Parse(print, format.fields_, format.long_size_);
  if (format.print_ && !KnowsConversions(format.print_->format)) format.print_.reset();
  return format;
}

const TraceField* TraceFormat::Find(std::string_view name) const {
  for (const TraceField& field : fields_) {
    if (field.name == name) return &field;
  }
  return nullptr;
}

void TraceFormat::AppendText(ByteView raw, const Resolver& resolve, std::string& out) const {
  if (!print_) {
    out += "[FAILED TO PARSE]";
    AppendFields(raw, out);
    return;
  }
  AppendPrintText(*print_, {raw, fields_, endian_, long_size_, resolve, literals_.get()}, out);
}

// " name=value" of each; addresses and longs in hex, as libtraceevent shows them.
void TraceFormat::AppendFields(ByteView raw, std::string& out) const {
  auto to = std::back_inserter(out);
  for (const TraceField& field : fields_) {
    fmt::format_to(to, " {}=", field.name);
    if (field.is_array) {
      const ByteView bytes = ArrayBytes(raw, field, endian_);
      const std::string_view text = AsText(bytes).substr(0, AsText(bytes).find('\0'));
      if (field.is_text && IsPrintable(text)) {
        out += text;
        continue;
      }
      out += "ARRAY[";
      for (size_t i = 0; i < bytes.size(); ++i) {
        fmt::format_to(to, "{}{:02x}", i == 0 ? "" : ", ", bytes[i]);
      }
      out += ']';
      continue;
    }
    const uint64_t value = FieldNumber(raw, field, endian_);
    if (field.is_pointer || field.is_long) {
      fmt::format_to(to, "{:#x}", value);
    } else if (field.is_signed) {
      const unsigned unused = field.size == 0 || field.size > 8 ? 0 : 64 - 8 * field.size;
      fmt::format_to(to, "{:{}}", static_cast<int64_t>(value << unused) >> unused,
                     field.size == 2 ? 2 : 1);
    } else {
      fmt::format_to(to, "{}", value);
    }
  }
}

}  // namespace stackreel::perfdata
