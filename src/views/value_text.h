// Arguments and return values as text.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/trace_calls.h"
#include "base/bytes.h"
#include "tracedata/functions_by_address.h"
#include "tracedata/trace_facts.h"

namespace stackreel::views {

// Knows the names that values of a trace have. The trace's tables may grow meanwhile.
class ValueText {
 public:
  explicit ValueText(analyze::TraceCalls& calls)
      : calls_(calls), functions_(calls.source().tables()) {}

  // Whether a step has values to show: some were recorded, or it is of a kind whose values take no
  // bytes. A call that did not return has no return value.
  [[nodiscard]] bool Has(const analyze::CallStep& step) const;
  // The arguments of an entry, the return value of an exit.
  void Append(std::string& out, const analyze::CallStep& step);
  // As the formats say: `1, "text", 'c', 0x1234, kRed, true, &main, {...}`. Texts that went on
  // behind what was recorded end with "...", and a pointer to what could not be read is in <>. A
  // number of unknown type is decimal where it is small (an int's -1, too), else hexadecimal. What
  // there is no format for, or what lies outside of the bytes, is "?".
  void Append(std::string& out, const std::vector<tracedata::ValueFormat>& formats,
              ByteView values);

 private:
  [[nodiscard]] const std::vector<tracedata::ValueFormat>& FormatsOf(
      const analyze::CallStep& step) const;
  using Names = std::map<int64_t, std::string_view>;
  void AppendOne(std::string& out, const tracedata::ValueFormat& format, ByteView bytes);
  void AppendEnumeration(std::string& out, uint32_t id, int64_t value);
  void AppendFunction(std::string& out, uint64_t avma);
  const Names& NamesOf(uint32_t enumeration);

  analyze::TraceCalls& calls_;
  std::map<uint32_t, Names> enumerations_;  // by id; filled on first need
  tracedata::FunctionsByAddress functions_;
};

}  // namespace stackreel::views
