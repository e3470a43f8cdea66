#include "anonymize/raw_fields.h"

#include <algorithm>
#include <deque>
#include <string>
#include <string_view>

namespace stackreel::anonymize {

using perfdata::TraceField;

namespace {

std::vector<uint8_t> TracingDataOf(const perfdata::Features& features) {
  const auto found = features.raw.find(static_cast<uint32_t>(perfdata::Feature::kTracingData));
  return found == features.raw.end() ? std::vector<uint8_t>() : found->second;
}

bool IsNumber(const TraceField& field) {
  const bool is_size = field.size == 1 || field.size == 2 || field.size == 4 || field.size == 8;
  // A text is an array.
  return is_size && field.place == TraceField::Place::kHere && !field.is_array && !field.is_pointer;
}

}  // namespace

RawFields::RawFields(const perfdata::Features& features, const AddressWidth& width, Endian endian,
                     const Remap& remap)
    : formats_(TracingDataOf(features)), width_(width), endian_(endian), remap_(remap) {}

bool RawFields::Knows(const perfdata::Attr& attr) {
  return attr.type == perfdata::kTypeTracepoint && formats_.Of(attr.config) != nullptr;
}

bool RawFields::MayBeAddress(uint64_t value, uint32_t size) const {
  if (size < 4) return false;
  if (remap_.IsOriginal(value)) return true;
  constexpr uint64_t kLowest = 0x10000;
  constexpr int64_t kMaxErrno = 4095;
  if (!width_.is_64_bit) {
    const bool is_error =
        static_cast<int32_t>(value) < 0 && static_cast<int32_t>(value) >= -kMaxErrno;
    return value >= kLowest && !is_error;
  }
  const bool is_error =
      static_cast<int64_t>(value) < 0 && static_cast<int64_t>(value) >= -kMaxErrno;
  return size == 8 && value > UINT32_MAX && !is_error;
}

std::vector<uint8_t> RawFields::Safe(const perfdata::Attr& attr, ByteView raw) {
  std::vector<uint8_t> out(raw.size());
  const perfdata::TraceFormat& format = *formats_.Of(attr.config);
  for (const auto* fields : {&format.common_fields(), &format.fields()}) {
    for (const TraceField& field : *fields) {
      const bool is_here = field.offset <= raw.size() && field.size <= raw.size() - field.offset;
      if (!is_here || !IsNumber(field)) continue;
      if (MayBeAddress(perfdata::FieldNumber(raw, field, endian_), field.size)) continue;
      std::ranges::copy(raw.subspan(field.offset, field.size), out.begin() + field.offset);
    }
  }
  return out;
}

std::optional<std::vector<uint8_t>> ScrubTracingData(ByteView bytes, const TextScrub& text) {
  std::optional<perfdata::TracingDataParts> parts = perfdata::ParseTracingData(bytes);
  if (!parts) return std::nullopt;
  // What the parts then point into.
  std::deque<std::string> moved;
  const auto scrub = [&](std::string_view& part) { part = moved.emplace_back(text.Moved(part)); };
  scrub(parts->header_page);
  scrub(parts->header_event);
  for (std::string_view& format : parts->ftrace_formats) scrub(format);
  for (perfdata::TracingDataParts::System& system : parts->systems) {
    scrub(system.name);
    for (std::string_view& format : system.formats) scrub(format);
  }
  parts->kallsyms = parts->printk_formats = parts->saved_cmdlines = {};
  return perfdata::EncodeTracingData(*parts);
}

}  // namespace stackreel::anonymize
