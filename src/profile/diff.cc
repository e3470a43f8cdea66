#include "profile/diff.h"

#include <cstdint>
#include <vector>

namespace stackreel::profile {
namespace {

void Append(const Profile& from, const std::vector<uint32_t>& samples, uint32_t event,
            Profile& to) {
  std::vector<FrameId> frames;
  frames.reserve(from.frames().size());
  for (Frame frame : from.frames()) {
    frame.function = to.Intern(from.Text(frame.function));
    frame.module = to.Intern(from.Text(frame.module));
    frame.file = 0;
    frame.line = 0;
    frame.address = 0;
    frames.push_back(to.AddFrame(frame));
  }
  std::vector<StackId> stacks;
  stacks.reserve(from.stacks().size());
  for (const StackNode& node : from.stacks()) {
    const StackId caller = node.caller == kEmptyStack ? kEmptyStack : stacks[node.caller];
    stacks.push_back(to.Push(caller, frames[node.frame]));
  }
  for (uint32_t i : samples) {
    ProfileSample sample = from.samples()[i];
    if (sample.stack != kEmptyStack) sample.stack = stacks[sample.stack];
    sample.comm = to.Intern(from.Text(sample.comm));
    sample.event = event;
    to.AddSample(sample);
  }
}

}  // namespace

Profile JoinForDiff(const Profile& before, const std::vector<uint32_t>& before_samples,
                    const Profile& after, const std::vector<uint32_t>& after_samples) {
  Profile joined;
  Append(before, before_samples, 0, joined);
  Append(after, after_samples, 1, joined);
  return joined;
}

}  // namespace stackreel::profile
