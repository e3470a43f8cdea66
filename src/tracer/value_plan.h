// From a prototype, or from what the user has written, to what the agent is to read, and how what
// it writes is to be read back.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dwarf/prototype.h"
#include "tracedata/trace_facts.h"
#include "tracedata/value_reads.h"
#include "tracer/value_spec.h"

namespace stackreel::tracer {

struct PlannedValue {
  tracedata::ValueFormat format;  // without an enumeration's id
  // Nothing is read for a kStruct.
  tracedata::ValueRead read;
  std::shared_ptr<const dwarf::EnumerationNames> enumeration;
};

struct ValuePlan {
  std::vector<PlannedValue> arguments;
  std::vector<PlannedValue> results;  // one, or none
  [[nodiscard]] bool empty() const { return arguments.empty() && results.empty(); }
};

// Of a function with that prototype.
[[nodiscard]] ValuePlan PlanValues(const dwarf::Prototype& prototype);
// As told.
[[nodiscard]] ValuePlan PlanValues(std::span<const ValueSpec> specs);

// The tracedata::ValueReads and what follows; empty if there is nothing to read. Texts are cut so
// that all of it fits into an event.
[[nodiscard]] std::vector<uint8_t> EncodeReads(const ValuePlan& plan);

}  // namespace stackreel::tracer
