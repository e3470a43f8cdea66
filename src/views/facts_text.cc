#include "views/facts_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "views/report_section.h"
#include "views/text_escape.h"

namespace stackreel::views {
namespace {

constexpr size_t kMaxModules = 10;

std::string LostText(const profile::Profile::Facts& facts) {
  if (facts.lost == 0) return facts.unfinished ? "none that are known" : "none";
  return fmt::format("{} ({} of {} taken)", Grouped(facts.lost),
                     PercentText(facts.lost, facts.lost + facts.samples),
                     Grouped(facts.lost + facts.samples));
}

void AppendUnresolved(const profile::Profile::Facts& facts, std::vector<std::string>& lines) {
  lines.push_back(fmt::format("Unresolved frames: {} of {} ({})", Grouped(facts.unresolved_frames),
                              Grouped(facts.frames),
                              PercentText(facts.unresolved_frames, facts.frames)));
  std::vector<std::pair<std::string, profile::Profile::Unresolved>> modules(
      facts.unresolved_modules.begin(), facts.unresolved_modules.end());
  std::stable_sort(modules.begin(), modules.end(),
                   [](const auto& a, const auto& b) { return a.second.frames > b.second.frames; });
  for (size_t i = 0; i < modules.size(); ++i) {
    if (i == kMaxModules) {
      lines.push_back(fmt::format("  and in {} other modules", modules.size() - i));
      break;
    }
    const auto& [name, unresolved] = modules[i];
    lines.push_back(fmt::format("  {} in {}{}{}", Grouped(unresolved.frames), Printable(name),
                                unresolved.why.empty() ? "" : ": ", Printable(unresolved.why)));
  }
}

}  // namespace

std::vector<std::string> FactsLines(const profile::Profile::Facts& facts) {
  std::vector<std::string> lines;
  if (!facts.damage.empty()) {
    lines.push_back("Damaged input, only a part was read: " + Printable(facts.damage));
  }
  if (facts.unfinished) lines.emplace_back(kUnfinishedText);
  lines.push_back("Samples: " + Grouped(facts.samples));
  lines.push_back("Lost samples: " + LostText(facts));
  if (facts.user_stacks == 0) {
    lines.emplace_back("Unwound stacks: none (call chains are as recorded)");
  } else {
    std::string line = fmt::format("Complete stacks: {} of {} ({})", Grouped(facts.complete_stacks),
                                   Grouped(facts.user_stacks),
                                   PercentText(facts.complete_stacks, facts.user_stacks));
    lines.push_back(std::move(line));
    if (facts.complete_stacks != facts.user_stacks) {
      for (const auto& [end, count] : facts.stack_ends) {
        lines.push_back(fmt::format("  {} ended: {}", Grouped(count), Printable(end)));
      }
    }
  }
  for (const auto& [mask, samples] : facts.masks) {
    lines.push_back(fmt::format("Authentication mask: {:#018x}, from {} ({} samples)", mask.first,
                                mask.second, Grouped(samples)));
  }
  AppendUnresolved(facts, lines);
  return lines;
}

std::vector<std::string> CounterLines(const Counters& counters) {
  std::vector<std::string> lines;
  for (const auto& [name, count] : counters.values()) {
    lines.push_back(fmt::format("{:<40} {:>12}", name, Grouped(count)));
  }
  return lines;
}

}  // namespace stackreel::views
