// profile → folded stacks, and a self-contained SVG flame graph.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profile/filter.h"
#include "profile/profile.h"

namespace stackreel::views {

// "comm;outer;inner WEIGHT" a line, sorted by path, as flame-graph scripts read it. ';' in a name
// becomes ':', control characters become spaces.
std::string Folded(const profile::Profile& profile, const profile::Filter& filter);

struct FlameGraphOptions {
  std::string title = "Flame graph";
  profile::Filter filter;
  bool inverted = false;      // the root at the top
  bool reversed = false;      // stacks merged from the innermost frame up
  size_t width = 1200;        // at which it is first drawn; it follows the window's width
  double min_percent = 0.02;  // narrower boxes are left out; their sum is told
};
// No external asset. With its script: search, zoom, keyboard. Where a content-security policy stops
// the script, a picture with tooltips remains, since nothing in it needs script or style sheet.
std::string FlameGraphSvg(const profile::Profile& profile, const FlameGraphOptions& options);
// What grew and what shrank from `before` to `after`, by their shares of the whole, in a
// colour-blind-safe palette. A box is as wide as the mean of both shares, so that what is gone is
// seen too; differences that sampling alone explains are left white.
// The events of `after` are options.filter's, those of `before` are `before_events`.
std::string DiffFlameGraphSvg(const profile::Profile& before,
                              const std::vector<uint32_t>& before_events,
                              const profile::Profile& after, const FlameGraphOptions& options);

}  // namespace stackreel::views
