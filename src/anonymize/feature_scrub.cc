#include "anonymize/feature_scrub.h"

#include <optional>

#include "anonymize/raw_fields.h"
#include "perfdata/feature_layout.h"

namespace stackreel::anonymize {

using perfdata::Feature;

namespace {

// Of the events, and of how and where things lie in the file: the Writer's own, and the mark, which
// is made anew.
bool IsWriters(uint32_t feature) {
  switch (static_cast<Feature>(feature)) {
    case Feature::kEventDesc:
    case Feature::kCompressed:
    case Feature::kDirFormat:
    case Feature::kStackreelAnonymized:
      return true;
    default:
      return false;
  }
}

// Where AUXTRACE records lie, none of which go out.
bool IsIndexOfDropped(uint32_t feature) {
  return static_cast<Feature>(feature) == Feature::kAuxtrace;
}

constexpr perfdata::FieldInfo kFormats("formats", perfdata::Sensitivity::kEventName);
constexpr perfdata::FieldInfo kKernelTexts("kernel_texts", perfdata::Sensitivity::kPayload);

void Tell(Report& report, const std::string& name, uint64_t size,
          const std::optional<std::vector<uint8_t>>& scrubbed) {
  if (!scrubbed) return report.AddDropped(name, kWhyDamaged, size);
  FieldTally& tally = report.Structure(name);
  tally.Begin();
  tally.Add(kFormats, Fate::kKept);
  tally.Add(kKernelTexts, scrubbed->size() < size ? Fate::kDropped : Fate::kKept);
}

struct Scrubbed {
  std::vector<uint8_t> bytes;
  std::string_view why_dropped;  // "" if it is not
};

}  // namespace

FeatureBytes ScrubFeatures(const FeatureBytes& features, uint32_t nr_cpus, Endian endian,
                           Level level, const TextScrub& text, FieldTransform& fields,
                           Report& report) {
  FeatureBytes out;
  for (const auto& [feature, bytes] : features) {
    if (IsWriters(feature)) continue;
    const std::string name = "feature " + perfdata::FeatureName(feature);
    if (IsIndexOfDropped(feature)) {
      report.AddDropped(name, "index of payload", bytes.size());
      continue;
    }
    const bool events_stay =
        TreatmentOf(level, perfdata::Sensitivity::kEventName) == Treatment::kText;
    if (static_cast<Feature>(feature) == Feature::kTracingData && events_stay) {
      const auto scrubbed = ScrubTracingData(bytes, text);
      if (scrubbed) out[feature] = *scrubbed;
      Tell(report, name, bytes.size(), scrubbed);
      continue;
    }
    const Scrubbed scrubbed = perfdata::WithFeatureBody(feature, [&]<typename Body>() -> Scrubbed {
      std::optional<Body> body = perfdata::DecodeFeatureAs<Body>(bytes, endian, nr_cpus);
      if (!body) return {{}, kWhyDamaged};
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

std::vector<uint8_t> MakeMark(Level level, Endian endian) {
  return perfdata::EncodeFeature(perfdata::AnonymizedMark{1, static_cast<uint32_t>(level)}, endian);
}

}  // namespace stackreel::anonymize
