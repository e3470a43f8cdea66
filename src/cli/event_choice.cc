#include "cli/event_choice.h"

#include <fmt/format.h>

#include <cstdio>

#include "base/plural.h"
#include "cli/print.h"
#include "profile/filter.h"

namespace stackreel::cli {

Result<std::vector<uint32_t>> ChooseEvents(const profile::Profile& profile,
                                           const std::vector<std::string>& patterns) {
  const std::vector<std::string>& events = profile.facts.events;
  std::vector<uint32_t> chosen;
  for (const std::string& pattern : patterns) {
    bool found = false;
    for (uint32_t i = 0; i < events.size(); ++i) {
      const std::string plain = events[i].substr(0, events[i].rfind(':'));
      if (!profile::MatchesPattern(events[i], pattern) &&
          !profile::MatchesPattern(plain, pattern)) {
        continue;
      }
      chosen.push_back(i);
      found = true;
    }
    if (!found) {
      return Fail(
          Error(ErrorKind::kNotFound, fmt::format("the recording has no event '{}'", pattern))
              .WithCure(fmt::format("--event with one of: {}", fmt::join(events, ", "))));
    }
  }
  return chosen;
}

void WarnOfUnfinished(bool unfinished, const GlobalOptions& global) {
  if (!unfinished || global.quiet) return;
  Print(stderr,
        "stackreel: warning: the recording was not finished, so its recorder was killed or the "
        "machine went down; what had been written was read, the last moments are missing\n");
}

std::string LossWarning(uint64_t lost, uint64_t samples) {
  return fmt::format("{} lost while recording; {} {} here", PluralWere(lost, "record"),
                     Plural(samples, "sample"), samples == 1 ? "is" : "are");
}

int WarnOfLoss(const profile::Profile& profile, const GlobalOptions& global) {
  const profile::Profile::Facts& facts = profile.facts;
  if (facts.lost > 0 && !global.quiet) {
    Print(stderr, "stackreel: warning: {}\n", LossWarning(facts.lost, facts.samples));
  }
  WarnOfUnfinished(facts.unfinished, global);
  if (facts.damage.empty()) return kExitDone;
  Print(stderr, "stackreel: warning: {}; what stands before was read\n", facts.damage);
  return kExitDamagedInput;
}

}  // namespace stackreel::cli
