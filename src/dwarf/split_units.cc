#include "dwarf/split_units.h"

#include <utility>

#include "dwarf/constants.h"

namespace stackreel::dwarf {

DebugInfo& SplitUnits::Keep(std::shared_ptr<const DebugSectionFile> file,
                            const DebugSections& sections) {
  infos_.push_back(std::make_unique<DebugInfo>(std::move(file), sections, counters_));
  return *infos_.back();
}

// The addresses of a split unit are in the file of its skeleton, which also has the bases they are
// found by.
SplitUnits::Found SplitUnits::FindUnit(DebugInfo& info, const Unit& skeleton) const {
  for (Unit& unit : info.units()) {
    info.ReadRoot(unit);
    if (unit.tag != kTagCompileUnit || unit.dwo_id != skeleton.dwo_id) continue;
    unit.skeleton_sections = &skeletons_.sections();
    unit.low_pc = skeleton.low_pc;
    unit.addr_base = skeleton.addr_base;
    unit.gnu_ranges_base = skeleton.gnu_ranges_base;
    return {.info = &info, .unit = &unit};
  }
  return {};
}

SplitUnits::Found SplitUnits::FindInPackage(const Unit& skeleton) {
  if (!package_tried_) {
    package_tried_ = true;
    if (FileImagePtr image = loader_("", ""); image != nullptr) {
      auto file = DebugSectionFile::Open(image, DebugSectionFile::Kind::kSplit);
      std::optional<PackageIndex> index;
      if (file) index = PackageIndex::Parse((*file)->package_index(), (*file)->sections().endian);
      if (index) {
        package_ = Package{.file = *file, .index = *index};
      } else {
        counters_.Add("dwarf.bad_package");
      }
    }
  }
  if (!package_ || !skeleton.dwo_id) return {};
  const auto sections = package_->index.Find(*skeleton.dwo_id, package_->file->sections());
  return sections ? FindUnit(Keep(package_->file, *sections), skeleton) : Found{};
}

SplitUnits::Found SplitUnits::FindInFile(const Unit& skeleton) {
  const FileImagePtr image =
      loader_(skeleton.dwo_name, skeletons_.TextOf(skeleton, skeleton.comp_dir));
  if (image == nullptr) return {};
  auto file = DebugSectionFile::Open(image, DebugSectionFile::Kind::kSplit);
  if (!file) return {};
  counters_.Add("dwarf.bad_section", (*file)->bad_sections());
  const DebugSections& sections = (*file)->sections();
  return FindUnit(Keep(*file, sections), skeleton);
}

SplitUnits::Found SplitUnits::Find(const Unit& skeleton) {
  Found found;
  if (loader_) {
    found = FindInPackage(skeleton);
    if (found.unit == nullptr) found = FindInFile(skeleton);
  }
  if (found.unit == nullptr) counters_.Add("dwarf.missing_split_unit");
  return found;
}

}  // namespace stackreel::dwarf
