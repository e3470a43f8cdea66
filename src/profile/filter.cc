#include "profile/filter.h"

#include <algorithm>

namespace stackreel::profile {
namespace {

bool Contains(const std::vector<uint32_t>& list, uint32_t value) {
  return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
}

// One answer a distinct text, found when first asked.
class TextMatcher {
 public:
  TextMatcher(const Profile& profile, const std::vector<std::string>& patterns)
      : profile_(profile), patterns_(patterns) {}

  bool Matches(TextId id) {
    if (patterns_.empty()) return true;
    if (id >= answers_.size()) answers_.resize(id + 1, Answer::kNotAsked);
    if (answers_[id] == Answer::kNotAsked) {
      answers_[id] = MatchesAny(profile_.Text(id), patterns_) ? Answer::kYes : Answer::kNo;
    }
    return answers_[id] == Answer::kYes;
  }

 private:
  enum class Answer : uint8_t { kNotAsked, kYes, kNo };
  const Profile& profile_;
  const std::vector<std::string>& patterns_;
  std::vector<Answer> answers_;
};

// For each stack, whether one of its frames is in `dsos` and named in `symbols`.
std::vector<bool> MatchStacks(const Profile& profile, const Filter& filter) {
  TextMatcher dsos(profile, filter.dsos);
  TextMatcher symbols(profile, filter.symbols);
  std::vector<bool> matches(profile.stacks().size());
  for (StackId id = 0; id < profile.stacks().size(); ++id) {
    const StackNode& node = profile.stacks()[id];
    const Frame& frame = profile.frames()[node.frame];
    // Callers have smaller ids, so theirs is known.
    matches[id] = (node.caller != kEmptyStack && matches[node.caller]) ||
                  (dsos.Matches(frame.module) && symbols.Matches(frame.function));
  }
  return matches;
}

}  // namespace

bool MatchesPattern(std::string_view text, std::string_view pattern) {
  // Greedy with one point to fall back to: the last '*' and the text it stands for so far.
  size_t t = 0;
  size_t p = 0;
  size_t star = std::string_view::npos;
  size_t star_text = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_text = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++star_text;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

bool MatchesAny(std::string_view text, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return MatchesPattern(text, pattern); });
}

std::vector<uint32_t> SelectSamples(const Profile& profile, const Filter& filter) {
  const bool by_frame = !filter.dsos.empty() || !filter.symbols.empty();
  const std::vector<bool> stack_matches =
      by_frame ? MatchStacks(profile, filter) : std::vector<bool>();
  TextMatcher comms(profile, filter.comms);
  std::vector<uint32_t> selected;
  for (uint32_t i = 0; i < profile.samples().size(); ++i) {
    const ProfileSample& sample = profile.samples()[i];
    if (sample.time < filter.time_start || sample.time > filter.time_end) continue;
    if (!Contains(filter.events, sample.event) || !Contains(filter.pids, sample.pid) ||
        !Contains(filter.tids, sample.tid) || !Contains(filter.cpus, sample.cpu)) {
      continue;
    }
    if (!comms.Matches(sample.comm)) continue;
    if (by_frame && (sample.stack == kEmptyStack || !stack_matches[sample.stack])) continue;
    selected.push_back(i);
  }
  return selected;
}

}  // namespace stackreel::profile
