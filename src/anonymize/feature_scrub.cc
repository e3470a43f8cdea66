#include "anonymize/feature_scrub.h"

#include <optional>

#include "perfdata/feature_layout.h"

namespace stackreel::anonymize {

using perfdata::Feature;

namespace {

// Of the events, and of how and where things lie in the file: the Writer's own.
bool IsWriters(uint32_t feature) {
  switch (static_cast<Feature>(feature)) {
    case Feature::kEventDesc:
    case Feature::kCompressed:
    case Feature::kDirFormat:
      return true;
    default:
      return false;
  }
}

// Where AUXTRACE records lie, none of which go out.
bool IsIndexOfDropped(uint32_t feature) {
  return static_cast<Feature>(feature) == Feature::kAuxtrace;
}

struct Scrubbed {
  std::vector<uint8_t> bytes;
  std::string_view why_dropped;  // "" if it is not
};

}  // namespace

FeatureBytes ScrubFeatures(const FeatureBytes& features, uint32_t nr_cpus, Endian endian,
                           FieldTransform& fields, Report& report) {
  FeatureBytes out;
  for (const auto& [feature, bytes] : features) {
    if (IsWriters(feature)) continue;
    const std::string name = "feature " + perfdata::FeatureName(feature);
    if (IsIndexOfDropped(feature)) {
      report.AddDropped(name, "index of payload", bytes.size());
      continue;
    }
    const Scrubbed scrubbed = perfdata::WithFeatureBody(feature, [&]<typename Body>() -> Scrubbed {
      std::optional<Body> body = perfdata::DecodeFeatureAs<Body>(bytes, endian, nr_cpus);
      if (!body) return {{}, "damaged"};
      perfdata::WireScope scope;
      scope.nr_cpus = nr_cpus;
      fields.Begin(AddressContext(), report.Structure(name));
      perfdata::VisitFields(*body, scope, fields);
      if (fields.dropped_content()) return {{}, "payload"};
      return {perfdata::EncodeFeature(*body, endian), ""};
    });
    if (scrubbed.why_dropped.empty()) {
      out[feature] = scrubbed.bytes;
    } else {
      report.AddDropped(name, scrubbed.why_dropped, bytes.size());
    }
  }
  return out;
}

}  // namespace stackreel::anonymize
