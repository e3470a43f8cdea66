#include "dwarf/source_index.h"

#include <algorithm>
#include <deque>
#include <unordered_map>
#include <utility>

#include "dwarf/constants.h"
#include "dwarf/debug_sections.h"
#include "dwarf/flat_intervals.h"
#include "dwarf/function_index.h"
#include "dwarf/line_table.h"
#include "dwarf/range_list.h"
#include "dwarf/split_units.h"
#include "dwarf/unit.h"
#include "dwarf/unit_map.h"

namespace stackreel::dwarf {
namespace {

struct FunctionName {
  std::string_view text;
  bool is_linkage_name = false;
};

// A unit's own intervals, made on first need.
struct IndexedUnit {
  DebugInfo* info = nullptr;  // where its DIEs are: the file itself, or a .dwo
  FunctionIndex functions;
  LineTable* lines = nullptr;  // null: the unit has none
};

class DwarfSourceIndex : public SourceIndex {
 public:
  DwarfSourceIndex(std::shared_ptr<const DebugSectionFile> file, DebugFileLoader loader,
                   const SourceOptions& options)
      : options_(options),
        file_(std::move(file)),
        info_(file_, file_->sections(), counters_),
        loader_(std::move(loader)),
        split_units_(info_, loader_.dwo_file, counters_),
        lines_(info_, counters_) {
    counters_.Add("dwarf.bad_section", file_->bad_sections());
    counters_.Add("dwarf.relocation_not_done", file_->relocations_not_done());
    ranges_left_ = RangeBytes(file_->sections());
  }

  std::vector<SourceFrame> Find(Svma svma) override;
  std::expected<Prototype, std::string> PrototypeAt(Svma svma) override;
  [[nodiscard]] const Counters& counters() const override { return counters_; }

 private:
  // Chains of origins longer than this are circles.
  static constexpr int kMaxOrigins = 16;

  // As many ranges as there are bytes to write them down in, each being written once.
  static uint64_t RangeBytes(const DebugSections& sections) {
    return sections.info.size() + sections.ranges.size() + sections.rnglists.size();
  }
  IndexedUnit* UnitOf(Svma svma);
  IndexedUnit& Index(uint32_t unit);
  const FunctionName& NameOf(DebugInfo& info, FunctionNode& node);
  FunctionName ResolveName(DebugInfo& info, uint64_t die);
  DebugInfo* SupplementaryInfo();

  const SourceOptions options_;
  std::shared_ptr<const DebugSectionFile> file_;
  Counters counters_;
  DebugInfo info_;
  DebugFileLoader loader_;
  SplitUnits split_units_;
  LineTables lines_;
  uint64_t ranges_left_ = 0;
  std::optional<UnitMap> unit_map_;
  std::unordered_map<uint32_t, IndexedUnit> indexed_;               // by place in info_.units()
  std::vector<FunctionName> names_ = std::vector<FunctionName>(1);  // 0: not resolved yet
  bool supplementary_tried_ = false;
  std::unique_ptr<DebugInfo> supplementary_;
  PrototypeReader prototypes_{[this] { return SupplementaryInfo(); }};
};

DebugInfo* DwarfSourceIndex::SupplementaryInfo() {
  if (supplementary_tried_) return supplementary_.get();
  supplementary_tried_ = true;
  const auto& link = file_->supplementary();
  FileImagePtr image;
  if (link && loader_.alt_file) image = loader_.alt_file(link->path, link->build_id);
  if (image != nullptr) {
    auto file = DebugSectionFile::Open(image, DebugSectionFile::Kind::kSupplementary);
    if (file) {
      supplementary_ = std::make_unique<DebugInfo>(*file, (*file)->sections(), counters_);
    }
  }
  if (supplementary_ == nullptr) counters_.Add("dwarf.missing_alt_file");
  return supplementary_.get();
}

// A name is at the DIE itself, or at the one it is an instance or definition of, maybe in another
// unit or in the supplementary file. The linkage name is preferred, wherever it is.
FunctionName DwarfSourceIndex::ResolveName(DebugInfo& info, uint64_t die) {
  FunctionName name;
  DebugInfo* at = &info;
  for (int i = 0; i < kMaxOrigins && at != nullptr; ++i) {
    Unit* unit = at->UnitAt(die);
    DieName found;
    if (unit == nullptr || !at->ReadDieName(*unit, die, &found)) {
      counters_.Add("dwarf.bad_reference");
      break;
    }
    const auto text_of = [&](const FormValue& value) -> std::string_view {
      if (value.form_class != FormClass::kAltTextOffset) return at->TextOf(*unit, value);
      const DebugInfo* alt = SupplementaryInfo();
      return alt == nullptr ? std::string_view() : TextAt(alt->sections().str, value.number);
    };
    if (const std::string_view text = text_of(found.linkage_name); !text.empty()) {
      return {.text = text, .is_linkage_name = true};
    }
    if (name.text.empty()) name.text = text_of(found.name);
    if (found.origin.form_class == FormClass::kUnitRef) {
      die = unit->offset + found.origin.number;
    } else if (found.origin.form_class == FormClass::kInfoRef) {
      die = found.origin.number;
    } else if (found.origin.form_class == FormClass::kAltRef) {
      die = found.origin.number;
      at = SupplementaryInfo();
    } else {
      break;
    }
  }
  return name;
}

const FunctionName& DwarfSourceIndex::NameOf(DebugInfo& info, FunctionNode& node) {
  if (node.name == 0) {
    names_.push_back(ResolveName(info, node.die));
    node.name = static_cast<uint32_t>(names_.size() - 1);
  }
  return names_[node.name];
}

IndexedUnit& DwarfSourceIndex::Index(uint32_t number) {
  auto [it, added] = indexed_.try_emplace(number);
  IndexedUnit& indexed = it->second;
  if (!added) return indexed;
  Unit& unit = info_.units()[number];
  info_.ReadRoot(unit);
  SplitUnits::Found found{.info = &info_, .unit = &unit};
  if (!unit.dwo_name.empty()) {
    if (auto split = split_units_.Find(unit); split.unit != nullptr) {
      found = split;
      ranges_left_ += RangeBytes(split.info->sections());
    }
  }
  indexed.info = found.info;
  indexed.functions =
      FunctionIndex::Read(*found.info, *found.unit, *file_, &ranges_left_, counters_);
  if (options_.lines) indexed.lines = lines_.Of(unit);
  return indexed;
}

// Null if no unit covers it.
IndexedUnit* DwarfSourceIndex::UnitOf(Svma svma) {
  if (!unit_map_) unit_map_.emplace(info_, lines_, &ranges_left_, counters_);
  const uint32_t number = unit_map_->Find(svma.value);
  return number == FlatIntervals::kNone ? nullptr : &Index(number);
}

std::expected<Prototype, std::string> DwarfSourceIndex::PrototypeAt(Svma svma) {
  IndexedUnit* unit = UnitOf(svma);
  const auto outermost = [&](uint64_t address) {
    FunctionNode* node = unit->functions.Find(address);
    while (node != nullptr && unit->functions.CallerOf(*node) != nullptr) {
      node = unit->functions.CallerOf(*node);
    }
    return node;
  };
  const FunctionNode* function = unit == nullptr ? nullptr : outermost(svma.value);
  if (function == nullptr) return std::unexpected("no debug information");
  if (svma.value != 0 && outermost(svma.value - 1) == function) {
    return std::unexpected("in its debug information it begins elsewhere");
  }
  return prototypes_.Read(*unit->info, function->die);
}

std::vector<SourceFrame> DwarfSourceIndex::Find(Svma svma) {
  IndexedUnit* found = UnitOf(svma);
  if (found == nullptr) return {};
  IndexedUnit& unit = *found;
  std::vector<SourceFrame> frames;
  SourceFrame frame;
  if (unit.lines != nullptr) {
    if (const LineRow* row = unit.lines->Find(svma.value); row != nullptr) {
      frame.file = unit.lines->FilePath(row->file);
      frame.line = row->line;
      frame.column = row->column;
    }
  }
  FunctionNode* node = unit.functions.Find(svma.value);
  while (node != nullptr) {
    const FunctionName& name = NameOf(*unit.info, *node);
    frame.function = name.text;
    frame.function_is_linkage_name = name.is_linkage_name;
    FunctionNode* caller = unit.functions.CallerOf(*node);
    frame.inlined = caller != nullptr;
    frames.push_back(frame);
    // The caller is where the call stood.
    frame = SourceFrame{};
    if (options_.lines) {
      frame.line = node->call_line;
      frame.column = node->call_column;
      if (unit.lines != nullptr) frame.file = unit.lines->FilePath(node->call_file);
    }
    node = caller;
  }
  if (frames.empty() && (frame.line != 0 || !frame.file.empty())) frames.push_back(frame);
  return frames;
}

}  // namespace

Result<std::unique_ptr<SourceIndex>> SourceIndex::Open(FileImagePtr file, DebugFileLoader loader,
                                                       const SourceOptions& options) {
  TRY_ASSIGN(auto sections,
             DebugSectionFile::Open(std::move(file), DebugSectionFile::Kind::kLinked));
  return std::make_unique<DwarfSourceIndex>(std::move(sections), std::move(loader), options);
}

}  // namespace stackreel::dwarf
