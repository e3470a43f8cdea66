// What users write behind -A and -R: whatever it is, it is understood or refused, and what is
// understood can be told to the agent.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "tracedata/value_reads.h"
#include "tracer/value_plan.h"
#include "tracer/value_spec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stackreel;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto specs = tracer::ParseValueSpecs(text);
  if (!specs) {
    if (specs.error().kind != ErrorKind::kUsage || specs.error().message.empty()) std::abort();
    return 0;
  }
  const tracer::ValuePlan plan = tracer::PlanValues(*specs);
  if (plan.arguments.size() + plan.results.size() != specs->size()) std::abort();
  const auto reads = tracer::EncodeReads(plan);
  if (reads.size() !=
      sizeof(tracedata::ValueReads) + specs->size() * sizeof(tracedata::ValueRead)) {
    std::abort();
  }
  return 0;
}
