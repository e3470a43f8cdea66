// Finds the unit of a .dwo or .dwp that a skeleton unit stands for.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/counters.h"
#include "base/io.h"
#include "dwarf/package_index.h"
#include "dwarf/unit.h"

namespace stackreel::dwarf {

class SplitUnits {
 public:
  // As DebugFileLoader::dwo_file; may be empty.
  using Loader = std::function<FileImagePtr(std::string_view dwo_name, std::string_view comp_dir)>;

  // `skeletons` is the file with the skeleton units; must outlive this.
  SplitUnits(const DebugInfo& skeletons, const Loader& loader, Counters& counters)
      : skeletons_(skeletons), loader_(loader), counters_(counters) {}

  struct Found {
    DebugInfo* info = nullptr;
    Unit* unit = nullptr;
  };
  // Null members if there is no such file, or it has another unit: that is counted. The found unit
  // has its skeleton's bases, and lives as long as this.
  Found Find(const Unit& skeleton);

 private:
  struct Package {
    std::shared_ptr<const DebugSectionFile> file;
    PackageIndex index;
  };

  Found FindInPackage(const Unit& skeleton);
  Found FindInFile(const Unit& skeleton);
  Found FindUnit(DebugInfo& info, const Unit& skeleton) const;
  DebugInfo& Keep(std::shared_ptr<const DebugSectionFile> file, const DebugSections& sections);

  const DebugInfo& skeletons_;
  const Loader& loader_;
  Counters& counters_;
  bool package_tried_ = false;
  std::optional<Package> package_;
  std::vector<std::unique_ptr<DebugInfo>> infos_;
};

}  // namespace stackreel::dwarf
