// samples → the text that perf script prints, and JSON lines.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/analysis.h"
#include "base/error.h"

namespace stackreel::views {

enum ScriptField : uint32_t {
  kFieldComm = 1u << 0,
  kFieldPid = 1u << 1,
  kFieldTid = 1u << 2,
  kFieldCpu = 1u << 3,
  kFieldTime = 1u << 4,
  kFieldPeriod = 1u << 5,
  kFieldEvent = 1u << 6,
  kFieldIp = 1u << 7,
  kFieldSym = 1u << 8,
  kFieldSymoff = 1u << 9,
  kFieldDso = 1u << 10,
  kFieldSrcline = 1u << 11,
  kFieldAddr = 1u << 12,
  kFieldTrace = 1u << 13,
  kFieldBrstack = 1u << 14,     // branches by address
  kFieldBrstackSym = 1u << 15,  // by function
  kFieldBrstackOff = 1u << 16,  // by place in the file
  kFieldCgroup = 1u << 17,
};

// Which fields to print: `only`, or what is usual for the event's type with some added or removed.
struct FieldSelection {
  std::optional<uint32_t> only;
  uint32_t add = 0, remove = 0;
  // As given to -F: "comm,tid,ip", or changes to the usual ones: "+srcline,-period". kUsage names
  // the known fields.
  static Result<FieldSelection> Parse(std::string_view text);
};
// Names of the fields, as -F takes them.
std::vector<std::string> ScriptFieldNames();

struct ScriptOptions {
  FieldSelection fields;
  bool nanoseconds = false;
  bool masks = false;  // arm64: the authentication mask of each sample, and where it is from
};

// Formats the samples of one analysis, one after the other.
class ScriptFormatter {
 public:
  ScriptFormatter(analyze::Analysis& analysis, const ScriptOptions& options);
  ~ScriptFormatter();
  ScriptFormatter(const ScriptFormatter&) = delete;
  ScriptFormatter& operator=(const ScriptFormatter&) = delete;

  // Appends the block of one sample, to the byte as perf 6.1 prints these fields. kUsage if a field
  // was asked for that the sample's event does not have.
  Status AppendText(const analyze::AnalyzedSample& sample, std::string& out);
  // The same of a record that is none, with the fields of `event`'s samples: see record_text.h.
  Status AppendRecord(const perfdata::Record& record, uint32_t event, std::string& out);
  // Appends one JSON object and a newline, without the schema.
  Status AppendJson(const analyze::AnalyzedSample& sample, std::string& out);

  // Whether a sample of an event is formatted from what it has and what only this changes: then
  // several formatters can do it at once. Else it has to be done where the analysis waits.
  Result<bool> IsIndependent(uint32_t event);

  struct State;

 private:
  std::unique_ptr<State> state_;
};

// What the first JSON object begins with, after its brace.
inline constexpr std::string_view kSampleSchema = R"("schema":"stackreel.sample/1",)";

// The name that perf shows for a module: "[nf_tables]" for a .ko, else the path.
std::string DsoName(const session::Module& module);

}  // namespace stackreel::views
