#include "views/flame_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "views/text_escape.h"

namespace stackreel::views {
namespace {

constexpr std::string_view kScript =
#include "views/flame_script.inc"
    ;

constexpr size_t kRow = 17;   // pixels from row to row; a box is one less
constexpr size_t kPad = 10;   // at the sides and the bottom
constexpr size_t kLine = 16;  // of text above the boxes

// Layout: title, notes, legend and status line on top, then the rows of boxes. All positions
// across are percentages, all positions down are pixels; the boxes lie in one inner <svg> that
// leaves a margin. Each box is an <svg> of its own, so that its text is cut at its edge without any
// script. Only presentation attributes are used: a strict content-security policy stops style
// sheets and style attributes, but not these.
class SvgWriter {
 public:
  explicit SvgWriter(const FlameSvg& svg) : svg_(svg) {
    top_ = kPad + 22 + kLine * svg.notes.size() + 18 + kLine + 8;
    height_ = top_ + kRow * svg.depth + kPad;
  }

  std::string Write() {
    out_ += "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n";
    out_ += fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"{}\" height=\"{}\" "
        "font-family=\"Verdana, 'DejaVu Sans', sans-serif\" font-size=\"12\" "
        "data-schema=\"stackreel.flamegraph/1\" data-total=\"{}\" data-root-on-top=\"{}\">\n",
        svg_.width, height_, svg_.total, svg_.root_on_top ? 1 : 0);
    Element("title", svg_.title);
    out_ += "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
    WriteBoxes();
    WriteHead();
    out_ += "<script><![CDATA[\n";
    out_ += kScript;
    out_ += "]]></script>\n</svg>\n";
    return std::move(out_);
  }

 private:
  void Element(std::string_view name, std::string_view text) {
    out_ += fmt::format("<{}>", name);
    AppendXml(out_, text);
    out_ += fmt::format("</{}>\n", name);
  }

  void WriteHead() {
    out_ += "<g id=\"head\">\n";
    out_ += fmt::format("<rect width=\"100%\" height=\"{}\" fill=\"#ffffff\"/>\n", top_ - 4);
    size_t y = kPad + 14;
    out_ += fmt::format("<text x=\"{}\" y=\"{}\" font-size=\"17\">", kPad, y);
    AppendXml(out_, svg_.title);
    out_ += "</text>\n";
    y += 8;
    for (const std::string& note : svg_.notes) {
      y += kLine;
      out_ += fmt::format("<text x=\"{}\" y=\"{}\" fill=\"#555555\" font-size=\"11\">", kPad, y);
      AppendXml(out_, note);
      out_ += "</text>\n";
    }
    y += 18;
    WriteLegend(y);
    y += kLine;
    out_ += fmt::format("<text id=\"status\" x=\"{}\" y=\"{}\"> </text>\n", kPad, y);
    out_ += "</g>\n";
  }

  void WriteLegend(size_t y) {
    size_t x = kPad;
    for (const SvgLegendEntry& entry : svg_.legend) {
      out_ += fmt::format(
          "<rect x=\"{}\" y=\"{}\" width=\"11\" height=\"11\" fill=\"{}\" stroke=\"#999999\" "
          "stroke-width=\"0.5\"/><text x=\"{}\" y=\"{}\" font-size=\"11\">",
          x, y - 10, entry.fill, x + 15, y);
      AppendXml(out_, entry.text);
      out_ += "</text>\n";
      x += 15 + 7 * DisplayWidth(entry.text) + 14;
    }
  }

  void WriteBoxes() {
    // The margin is a share of the width, so that it needs no calc().
    out_ += "<svg id=\"boxes\" x=\"0.8%\" width=\"98.4%\">\n";
    for (const SvgBox& box : svg_.boxes) WriteBox(box);
    out_ += "</svg>\n";
  }

  void WriteBox(const SvgBox& box) {
    const double whole = static_cast<double>(std::max<uint64_t>(svg_.total, 1));
    const double x = 100.0 * static_cast<double>(box.start) / whole;
    const double width = 100.0 * static_cast<double>(box.weight) / whole;
    const double pixels = width / 100 * 0.984 * static_cast<double>(svg_.width);
    const size_t row = svg_.root_on_top ? box.depth : svg_.depth - 1 - box.depth;
    out_ += fmt::format(
        "<svg class=\"b\" x=\"{:.4f}%\" y=\"{}\" width=\"{:.4f}%\" height=\"{}\" data-s=\"{}\" "
        "data-w=\"{}\"><title>",
        x, top_ + row * kRow, width, kRow - 1, box.start, box.weight);
    AppendXml(out_, box.name);
    out_ += '\n';
    AppendXml(out_, box.tooltip);
    out_ += fmt::format("</title><rect width=\"100%\" height=\"100%\" fill=\"{}\"{}/>", box.fill,
                        pixels >= 4 ? " stroke=\"#ffffff\" stroke-width=\"1\"" : "");
    // A box too narrow for three letters gets its text from the script, once it is zoomed.
    if (pixels >= 25) {
      out_ += "<text x=\"3\" y=\"12\">";
      // No letter is narrower than three pixels.
      AppendXml(out_, CutTo(box.name, static_cast<size_t>(pixels)));
      out_ += "</text>";
    }
    out_ += "</svg>\n";
  }

  const FlameSvg& svg_;
  size_t top_ = 0, height_ = 0;
  std::string out_;
};

}  // namespace

std::string WriteFlameSvg(const FlameSvg& svg) { return SvgWriter(svg).Write(); }

std::string HslColor(double hue, double saturation, double lightness) {
  // CSS Color 4, section 7.1.
  const double a = saturation * std::min(lightness, 1 - lightness);
  const auto channel = [&](double n) {
    const double k = std::fmod(n + hue / 30, 12);
    const double value = lightness - a * std::max(-1.0, std::min({k - 3, 9 - k, 1.0}));
    return static_cast<int>(std::lround(value * 255));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", channel(0), channel(8), channel(4));
}

}  // namespace stackreel::views
