#include "anonymize/verify_attr.h"

#include <fmt/format.h>

#include <algorithm>

#include "perfdata/sample_layout.h"

namespace stackreel::anonymize {
namespace {

bool MayBeProbe(uint32_t type, const std::map<uint32_t, std::string>& pmu_names) {
  if (type <= perfdata::kTypeBreakpoint) return false;
  const auto pmu = pmu_names.find(type);
  return pmu == pmu_names.end() || pmu->second == "kprobe" || pmu->second == "uprobe";
}

}  // namespace

bool MayHaveAddress(uint32_t type, const std::map<uint32_t, std::string>& pmu_names) {
  return type == perfdata::kTypeBreakpoint || MayBeProbe(type, pmu_names);
}

std::vector<AttrFault> CheckAttr(const perfdata::Attr& attr, Level level, bool keeps_raw,
                                 const std::map<uint32_t, std::string>& pmu_names,
                                 const AllowedPlaces& places) {
  std::vector<AttrFault> faults;
  const auto want = [&](bool good, std::string_view field, uint64_t value, std::string_view what) {
    if (!good) faults.push_back({std::string(field), fmt::format("{:#x}, {}", value, what)});
  };
  if (attr.type == perfdata::kTypeBreakpoint) {
    want(attr.config1 < kSmallestPage || places.Has(attr.config1), "config1", attr.config1,
         "a breakpoint in no mapping");
  } else if (MayBeProbe(attr.type, pmu_names)) {
    want(attr.config1 < kSmallestPage, "config1", attr.config1, "of a probe");
    want(attr.config2 < kSmallestPage, "config2", attr.config2, "of a probe");
  }
  uint64_t payload = perfdata::SampleBitsWith([level](const perfdata::FieldInfo& field) {
    return TreatmentOf(level, field.sensitivity) == Treatment::kDrop;
  });
  if (keeps_raw && attr.type == perfdata::kTypeTracepoint) {
    payload &= ~uint64_t{perfdata::kSampleRaw};
  }
  want((attr.sample_type & payload) == 0, "sample_type", attr.sample_type & payload,
       "fields of payload");
  want(attr.sample_regs_user == 0, "sample_regs_user", attr.sample_regs_user, "registers");
  want(attr.sample_regs_intr == 0, "sample_regs_intr", attr.sample_regs_intr, "registers");
  want(attr.sample_stack_user == 0, "sample_stack_user", attr.sample_stack_user, "stacks");
  want(attr.aux_sample_size == 0, "aux_sample_size", attr.aux_sample_size, "AUX data");
  want(attr.sig_data == 0, "sig_data", attr.sig_data, "anything");
  const auto unknown = std::ranges::find_if(attr.tail, [](uint8_t byte) { return byte != 0; });
  if (unknown != attr.tail.end()) want(false, "tail", *unknown, "of unknown meaning");
  return faults;
}

}  // namespace stackreel::anonymize
