#include "views/flame_graph.h"

#include <fmt/format.h>

#include <cmath>
#include <string_view>

#include "views/facts_text.h"
#include "views/flame_layout.h"
#include "views/flame_svg.h"
#include "views/report_section.h"
#include "views/text_escape.h"

namespace stackreel::views {
namespace {

struct KindColor {
  FlameKind kind;
  double hue, saturation, lightness;
  const char* legend;
};
// Light enough for black text; told apart by lightness as well as hue.
constexpr KindColor kKindColors[] = {
    {FlameKind::kUser, 28, 0.90, 0.68, "user"},
    {FlameKind::kInlined, 50, 0.88, 0.74, "inlined"},
    {FlameKind::kKernel, 207, 0.72, 0.72, "kernel"},
    {FlameKind::kJit, 155, 0.45, 0.66, "JIT"},
    {FlameKind::kUnresolved, 0, 0, 0.78, "function not known"},
    {FlameKind::kMarker, 300, 0.25, 0.85, "stack cut off"},
    {FlameKind::kComm, 40, 0.15, 0.88, "process"},
    {FlameKind::kRoot, 40, 0.15, 0.88, nullptr},
};

uint32_t HashName(std::string_view name) {
  uint32_t hash = 0x811c9dc5;  // FNV-1a
  for (unsigned char c : name) hash = (hash ^ c) * 0x01000193;
  return hash ^ (hash >> 15);
}

// The colour of the kind, varied a little by name: neighbours are told apart, and one function has
// one colour in every picture.
std::string ColorOf(FlameKind kind, std::string_view name) {
  for (const KindColor& color : kKindColors) {
    if (color.kind != kind) continue;
    const uint32_t hash = HashName(name);
    const double lighter = (static_cast<double>(hash % 64) / 63 - 0.5) * 0.10;
    const double turned = (static_cast<double>(hash / 64 % 64) / 63 - 0.5) * 14;
    const bool plain = kind == FlameKind::kRoot || kind == FlameKind::kComm;
    return HslColor(color.hue + (plain || color.saturation == 0 ? 0 : turned + 360),
                    color.saturation, color.lightness + (plain ? 0 : lighter));
  }
  return "#ffffff";
}

std::vector<std::string> Notes(const profile::Profile& profile, const FlameLayout& layout,
                               uint64_t samples, const FlameGraphOptions& options) {
  const profile::Profile::Facts& facts = profile.facts;
  std::vector<std::string> notes;
  std::string note = fmt::format("{} samples", Grouped(samples));
  if (!options.filter.events.empty() && options.filter.events[0] < facts.events.size()) {
    note += " of " + facts.events[options.filter.events[0]];
  }
  note += facts.lost == 0 ? ", none lost" : fmt::format(", {} lost", Grouped(facts.lost));
  if (facts.user_stacks > 0) {
    note += fmt::format("; {} of stacks complete",
                        PercentText(facts.complete_stacks, facts.user_stacks));
  }
  note +=
      fmt::format("; {} of frames unresolved", PercentText(facts.unresolved_frames, facts.frames));
  notes.push_back(std::move(note));
  note = fmt::format("Boxes narrower than {}% are left out; {} of the weight ends in such",
                     options.min_percent, PercentText(layout.left_out, layout.total));
  notes.push_back(std::move(note));
  if (facts.unfinished) notes.emplace_back(kUnfinishedText);
  if (!facts.damage.empty())
    notes.push_back("Damaged input, only a part was read: " + facts.damage);
  return notes;
}

profile::CallTree TreeOf(const profile::Profile& profile, const FlameGraphOptions& options) {
  uint64_t weight = 0;
  for (uint32_t i : SelectSamples(profile, options.filter)) weight += profile.samples()[i].weight;
  profile::TreeOptions tree;
  tree.by_comm = !options.reversed;
  tree.direction =
      options.reversed ? profile::TreeDirection::kCallers : profile::TreeDirection::kCallees;
  tree.merge_unresolved = true;
  tree.min_weight = static_cast<uint64_t>(
      std::ceil(std::max(options.min_percent, 0.0) / 100 * static_cast<double>(weight)));
  return MakeCallTree(profile, options.filter, tree);
}

}  // namespace

std::string FlameGraphSvg(const profile::Profile& profile, const FlameGraphOptions& options) {
  const profile::CallTree tree = TreeOf(profile, options);
  const FlameLayout layout = LayOut(profile, tree);
  FlameSvg svg;
  svg.title = options.title;
  svg.total = layout.total;
  svg.depth = layout.depth;
  svg.root_on_top = options.inverted;
  svg.width = options.width;
  svg.notes = Notes(profile, layout, tree.nodes[0].total.samples, options);
  uint32_t kinds = 0;
  for (const FlameBox& box : layout.boxes) {
    kinds |= 1u << static_cast<unsigned>(box.kind);
    SvgBox out;
    out.start = box.start;
    out.weight = box.weight;
    out.depth = box.depth;
    out.name = box.name;
    out.fill = ColorOf(box.kind, box.name);
    out.tooltip = fmt::format("{}{}{} samples, {}", box.module, box.module.empty() ? "" : ": ",
                              Grouped(box.total.samples), PercentText(box.weight, layout.total));
    svg.boxes.push_back(std::move(out));
  }
  for (const KindColor& color : kKindColors) {
    if (color.legend == nullptr || (kinds >> static_cast<unsigned>(color.kind) & 1) == 0) continue;
    svg.legend.push_back({HslColor(color.hue, color.saturation, color.lightness), color.legend});
  }
  return WriteFlameSvg(svg);
}

}  // namespace stackreel::views
