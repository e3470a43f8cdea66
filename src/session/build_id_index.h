// Build-ids by path, from the BUILD_ID feature and HEADER_BUILD_ID records.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "base/build_id.h"
#include "perfdata/features.h"

namespace stackreel::session {

class BuildIdIndex {
 public:
  // `features` may grow later (pipe mode); it must outlive the index.
  explicit BuildIdIndex(const perfdata::Features& features) : features_(features) {}

  void Add(const perfdata::HeaderBuildId& id) { by_path_[id.filename] = id.build_id; }
  // Empty if none is known.
  BuildId Find(const std::string& path) {
    for (; taken_ < features_.build_ids.size(); ++taken_) Add(features_.build_ids[taken_]);
    const auto it = by_path_.find(path);
    return it == by_path_.end() ? BuildId() : it->second;
  }

 private:
  const perfdata::Features& features_;
  size_t taken_ = 0;
  std::unordered_map<std::string, BuildId> by_path_;
};

}  // namespace stackreel::session
