// A profile from folded lines: for tests.
#pragma once

#include <charconv>
#include <string>
#include <string_view>

#include "profile/profile.h"

namespace stackreel::profile {

// "[MODULE!]FUNCTION", a trailing "~" for inlined; module "[kernel…]" is the kernel, "[jit]" is
// JIT, FUNCTION "0x…" is unresolved, a FUNCTION in brackets is a marker. The module is "app" by
// default.
inline FrameId AddFoldedFrame(Profile& profile, std::string_view text) {
  Frame frame;
  std::string_view module = "app";
  if (const size_t bang = text.find('!'); bang != std::string_view::npos) {
    module = text.substr(0, bang);
    text.remove_prefix(bang + 1);
  }
  frame.module = profile.Intern(module);
  frame.kernel = module.starts_with("[kernel");
  frame.jit = module == "[jit]";
  frame.marker = text.starts_with("[");
  if (text.ends_with("~")) {
    frame.inlined = true;
    text.remove_suffix(1);
  }
  if (text.starts_with("0x")) {
    std::from_chars(text.data() + 2, text.data() + text.size(), frame.address, 16);
  } else {
    frame.function = profile.Intern(text);
  }
  return profile.AddFrame(frame);
}

// Adds one sample for each line "COMM;OUTER;…;INNER WEIGHT"; pid and tid are 100, cpu is 0.
inline void AddFolded(Profile& profile, std::string_view lines, uint32_t event = 0) {
  while (!lines.empty()) {
    const size_t newline = lines.find('\n');
    std::string_view line = lines.substr(0, newline);
    lines.remove_prefix(newline == std::string_view::npos ? lines.size() : newline + 1);
    const size_t space = line.rfind(' ');
    if (space == std::string_view::npos) continue;
    ProfileSample sample;
    std::from_chars(line.data() + space + 1, line.data() + line.size(), sample.weight);
    sample.pid = sample.tid = 100;
    sample.cpu = 0;
    sample.event = event;
    std::string_view path = line.substr(0, space);
    size_t semicolon = path.find(';');
    sample.comm = profile.Intern(path.substr(0, semicolon));
    while (semicolon != std::string_view::npos) {
      path.remove_prefix(semicolon + 1);
      semicolon = path.find(';');
      sample.stack = profile.Push(sample.stack, AddFoldedFrame(profile, path.substr(0, semicolon)));
    }
    profile.AddSample(sample);
    ++profile.facts.samples;
  }
}

}  // namespace stackreel::profile
