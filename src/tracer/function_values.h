// Which values are recorded with the calls of each function: from what the user has asked for, and
// from debug information.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "dwarf/source_index.h"
#include "tracedata/trace_facts.h"
#include "tracer/target_modules.h"
#include "tracer/value_plan.h"
#include "tracer/value_spec.h"

namespace stackreel::tracer {

struct ValueOptions {
  bool all = false;                  // -a: of each function that is recorded, by its prototype
  std::vector<ValueChoice> choices;  // -A, -R: the last that matches decides, each for its side
  [[nodiscard]] bool empty() const { return !all && choices.empty(); }
};

// How the values of a function are recorded. Empty: none are.
struct RecordedValues {
  std::vector<tracedata::ValueFormat> arguments, results;
  std::vector<uint8_t> reads;  // tracedata::ValueReads and what follows
};

class FunctionValues {
 public:
  // Takes facts of enumerations, before the functions that have them.
  using FactSink = std::function<Status(const tracedata::TraceFact&)>;
  FunctionValues(const ValueOptions& options, FactSink facts)
      : options_(options), facts_(std::move(facts)) {}

  // `pid` is a process that has the module mapped.
  Result<RecordedValues> Of(const TargetModule& module, uint32_t pid,
                            const ModuleFunction& function);
  // Whether a choice, by its place in the options, is about a function.
  [[nodiscard]] bool Matches(size_t choice, const TargetModule& module,
                             const ModuleFunction& function) const;
  [[nodiscard]] const ValueOptions& options() const { return options_; }
  // Functions of which values were wanted but are not recorded, by reason.
  [[nodiscard]] const std::map<std::string, size_t>& without() const { return without_; }
  // Whether system calls are made to read texts.
  [[nodiscard]] bool reads_texts() const { return reads_texts_; }

 private:
  // What is wanted of one side of a function.
  struct Wish {
    bool by_prototype = false;
    const std::vector<ValueSpec>* specs = nullptr;
  };
  [[nodiscard]] Wish WishFor(bool results, const TargetModule& module,
                             const ModuleFunction& function) const;
  dwarf::SourceIndex* IndexOf(const TargetModule& module, uint32_t pid);
  ValuePlan ByPrototype(const TargetModule& module, uint32_t pid, const ModuleFunction& function);
  Status AddFormats(const std::vector<PlannedValue>& values,
                    std::vector<tracedata::ValueFormat>& formats);

  const ValueOptions& options_;
  FactSink facts_;
  std::map<std::string, std::unique_ptr<dwarf::SourceIndex>> indexes_;  // by file; null: none
  // Ids, by what they are of; kept, so that no other comes to stand in the same place.
  std::map<std::shared_ptr<const dwarf::EnumerationNames>, uint32_t> enumerations_;
  std::map<std::string, size_t> without_;
  bool reads_texts_ = false;
};

}  // namespace stackreel::tracer
