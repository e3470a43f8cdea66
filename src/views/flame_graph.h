// profile → folded stacks, and a self-contained SVG flame graph.
#pragma once

#include <string>

#include "profile/call_tree.h"
#include "profile/profile.h"

namespace stackreel::views {

// "comm;outer;inner WEIGHT" a line, sorted, as flame-graph scripts read it.
std::string Folded(const profile::Profile& profile, const profile::Filter& filter);

struct FlameGraphOptions {
  std::string title = "Flame graph";
  profile::Filter filter;
  bool inverted = false;  // icicle
  size_t width = 1200;
  double min_percent = 0.02;  // narrower boxes are left out; their sum is told
};
// No external asset, works under file:// and a strict content-security policy; search and zoom.
std::string FlameGraphSvg(const profile::Profile& profile, const FlameGraphOptions& options);
// What grew and what shrank from `before` to `after`, in a colour-blind-safe palette.
std::string DiffFlameGraphSvg(const profile::Profile& before, const profile::Profile& after,
                              const FlameGraphOptions& options);

}  // namespace stackreel::views
