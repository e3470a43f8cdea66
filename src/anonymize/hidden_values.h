// Verification kind (e): the fields that a level hides, by their class.
//
// A text of OUT has no private part that one of its class has in IN. Numbers are compared one by
// one with IN's: a process or file has another number, the same everywhere, and all times are
// later by one amount. Nothing is asked of what is public (public_names.h).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "anonymize/private_parts.h"
#include "base/bytes.h"
#include "perfdata/features.h"
#include "perfdata/record.h"
#include "perfdata/sample.h"
#include "perfdata/schema.h"

namespace stackreel::anonymize {

class HiddenValues {
 public:
  explicit HiddenValues(PrivacyRules rules) : rules_(std::move(rules)) {}

  // IN: all its samples and other records in order, its features and events.
  void AddSample(const perfdata::Sample& sample);
  // Of one that does not go out only texts and build-ids are of interest.
  void AddRecord(const perfdata::Record& record, const perfdata::Attr* attr, Endian endian,
                 bool goes_out = true);
  void AddFeature(uint32_t feature, ByteView bytes, Endian endian, uint32_t nr_cpus);
  void AddEventName(const std::string& name);
  void SetPmuNames(std::map<uint32_t, std::string> names) { rules_.pmu_names = std::move(names); }
  // Names of modules that should stand nowhere in OUT, and build-ids in hex. After all of IN.
  [[nodiscard]] std::set<std::string> DeniedTexts() const;

  // Whether the text of a field has no part that the level hides, in whatever recording.
  [[nodiscard]] bool IsPublicPath(const perfdata::FieldInfo& field, std::string_view text) const {
    return rules_.level >= Level::kIdentity && field.sensitivity == perfdata::Sensitivity::kPath &&
           PrivateParts(field.sensitivity, text, rules_).empty();
  }

  // OUT, the same; `out_records`: how many of each type it has. Calls `tell` for each field that is
  // not hidden.
  using Tell = std::function<void(const perfdata::FieldInfo& field, std::string what)>;
  void CheckSample(const perfdata::Sample& sample, const Tell& tell);
  void CheckRecord(const perfdata::Record& record, const perfdata::Attr* attr, Endian endian,
                   const std::map<uint32_t, uint64_t>& out_records, const Tell& tell);
  void CheckFeature(uint32_t feature, ByteView bytes, Endian endian, uint32_t nr_cpus,
                    const Tell& tell);
  // What only all of OUT shows. `tell` gets the name of the record, too.
  void Finish(const std::function<void(const std::string& record, const perfdata::FieldInfo& field,
                                       std::string what)>& tell);

 private:
  class Adding;
  class Checking;
  // Numbers in the order in which a kind of record or feature has them.
  struct Sequence {
    std::vector<uint64_t> in;
    size_t next = 0;  // of OUT
    uint64_t records = 0;
    std::string name;
  };
  // The numbers that samples have, each once, in order of their first.
  struct FirstSeen {
    std::unordered_map<uint64_t, uint64_t> ordinals;
    std::vector<uint64_t> order;
    uint64_t digest = 0;
    void Add(uint64_t number);
  };
  // What is known of one field's numbers.
  struct Evidence {
    std::set<uint64_t> unchanged;  // the first few
    bool changed = false;
  };
  static constexpr uint32_t kFeatures = 1U << 31;  // sequences of features

  // Compares a number with IN's, which was `in`.
  void Compare(const std::string& record, const perfdata::FieldInfo& field, uint64_t in,
               uint64_t out, const Tell& tell);
  void CompareTime(const perfdata::FieldInfo& field, uint64_t in, uint64_t out, const Tell& tell);
  void CheckText(const perfdata::FieldInfo& field, std::string_view text, const Tell& tell);
  [[nodiscard]] bool IsPrivateBuild(const std::string& id) const {
    return builds_.contains(id) && !public_builds_.contains(id);
  }

  PrivacyRules rules_;
  std::map<perfdata::Sensitivity, std::set<std::string, std::less<>>> parts_;  // of IN
  std::set<std::string> modules_, public_parts_;
  std::set<std::string> builds_, public_builds_;
  std::map<uint32_t, Sequence> sequences_;
  FirstSeen in_pids_, in_tids_, in_files_, out_pids_, out_tids_, out_files_;
  std::unordered_map<uint64_t, uint64_t> pids_, pids_back_, files_;
  // By record, as several have the same fields: FORK and EXIT.
  std::map<std::pair<std::string, const perfdata::FieldInfo*>, Evidence> evidence_;
  std::string path_;  // of the module that functions which follow are of
  uint64_t first_time_ = 0, shift_ = 0;
  bool has_first_time_ = false, has_shift_ = false;
};

}  // namespace stackreel::anonymize
