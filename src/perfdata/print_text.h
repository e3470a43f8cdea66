// Evaluates a PrintFormat over the raw bytes of a record.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "perfdata/trace_format.h"

namespace stackreel::perfdata {

// Whether every conversion of a printf format is one that AppendPrintText knows.
bool KnowsConversions(std::string_view format);

// The value of an expression without fields.
uint64_t ConstantValue(const PrintFormat& print, uint32_t root);

struct PrintInput {
  ByteView raw;
  const std::vector<TraceField>& fields;
  Endian endian = Endian::kLittle;
  unsigned long_size = 8;
  const TraceFormat::Resolver& resolve;
  const TraceLiterals* literals = nullptr;
};
void AppendPrintText(const PrintFormat& print, const PrintInput& input, std::string& out);

}  // namespace stackreel::perfdata
