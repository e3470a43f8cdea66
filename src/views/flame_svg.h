// Boxes → a self-contained SVG.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stackreel::views {

struct SvgBox {
  uint64_t start = 0, weight = 0;  // of FlameSvg::total
  uint32_t depth = 0;
  std::string name;     // shown in the box, and searched
  std::string tooltip;  // after the name: "(libc.so.6) 12 samples, 3.40 %"
  std::string fill;     // "#rrggbb"
};
struct SvgLegendEntry {
  std::string fill, text;
};

struct FlameSvg {
  std::string title;
  std::vector<std::string> notes;  // lines below the title
  std::vector<SvgLegendEntry> legend;
  uint64_t total = 0;
  uint32_t depth = 0;  // rows
  std::vector<SvgBox> boxes;
  bool root_on_top = false;
  size_t width = 1200;
};
std::string WriteFlameSvg(const FlameSvg& svg);

// A colour "#rrggbb" from hue (degrees), saturation and lightness (0 to 1).
std::string HslColor(double hue, double saturation, double lightness);

}  // namespace stackreel::views
