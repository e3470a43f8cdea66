#include "perfdata/schema.h"

#include "perfdata/feature_layout.h"
#include "perfdata/record_layout.h"
#include "perfdata/sample_layout.h"

namespace stackreel::perfdata {

std::string_view SensitivityName(Sensitivity sensitivity) {
  switch (sensitivity) {
    case Sensitivity::kNone:
      return "none";
    case Sensitivity::kCodeAddress:
      return "code address";
    case Sensitivity::kDataAddress:
      return "data address";
    case Sensitivity::kMapAddress:
      return "mapping address";
    case Sensitivity::kMapOffset:
      return "mapping offset";
    case Sensitivity::kKernelAddress:
      return "kernel address";
    case Sensitivity::kPhysicalAddress:
      return "physical address";
    case Sensitivity::kEventConfig:
      return "event configuration";
    case Sensitivity::kRegisters:
      return "registers";
    case Sensitivity::kPayload:
      return "payload";
    case Sensitivity::kPid:
      return "process or thread";
    case Sensitivity::kComm:
      return "comm";
    case Sensitivity::kSymbol:
      return "symbol";
    case Sensitivity::kFunction:
      return "function";
    case Sensitivity::kEventName:
      return "event name";
    case Sensitivity::kPath:
      return "path";
    case Sensitivity::kCgroupPath:
      return "cgroup path";
    case Sensitivity::kCommandLine:
      return "command line";
    case Sensitivity::kHostName:
      return "host name";
    case Sensitivity::kRelease:
      return "release";
    case Sensitivity::kMachine:
      return "machine";
    case Sensitivity::kFileId:
      return "file identity";
    case Sensitivity::kBuildId:
      return "build-id";
    case Sensitivity::kTime:
      return "time";
    case Sensitivity::kWallTime:
      return "wall-clock time";
    case Sensitivity::kCycles:
      return "cycle counter";
  }
  return "";
}

std::vector<SchemaRow> SchemaRows() {
  std::vector<SchemaRow> rows;
  std::string structure;
  auto add = [&](const FieldInfo& field) { rows.push_back({structure, field}); };
  const auto list_record = [&](uint32_t type) {
    structure = RecordTypeName(type);
    if (type == static_cast<uint32_t>(RecordType::kSample)) {
      ListFields<Sample>(add);
    } else {
      WithRecordBody(type, [&]<typename Body>() { ListFields<Body>(add); });
    }
  };
  constexpr auto kLastType = static_cast<uint32_t>(RecordType::kSchedstatDomain);
  for (uint32_t type = 1; type <= kLastType; ++type) {
    if (!RecordTypeName(type).starts_with("TYPE_")) list_record(type);
  }
  list_record(kRecordTypePacMask);
  structure = "sample_id";
  ListFields<SampleId>(add);
  structure = "attr";
  ListFields<Attr>(add);
  for (uint32_t feature = 1; feature < kFeatureBits; ++feature) {
    const std::string name = FeatureName(feature);
    if (name.starts_with("FEATURE_")) continue;
    structure = "feature " + name;
    WithFeatureBody(feature, [&]<typename Body>() { ListFields<Body>(add); });
  }
  return rows;
}

}  // namespace stackreel::perfdata
