#include "analyze/stack_to_chain.h"

#include <cstddef>
#include <span>

#include "analyze/chain_splice.h"

namespace stackreel::analyze {

perfdata::Attr WithoutStack(const perfdata::Attr& attr) {
  perfdata::Attr out = attr;
  constexpr uint64_t kStack = perfdata::kSampleRegsUser | perfdata::kSampleStackUser;
  if ((out.sample_type & perfdata::kSampleStackUser) != 0) {
    out.sample_type |= perfdata::kSampleCallchain;
  }
  out.sample_type &= ~kStack;
  out.sample_regs_user = 0;
  out.sample_stack_user = 0;
  out.flags &= ~uint64_t{perfdata::kAttrExcludeCallchainUser};  // there is one now
  return out;
}

void BuildCallchain(const perfdata::Sample& sample, const std::vector<unwind::Frame>& frames,
                    unwind::StackEnd end, std::vector<uint64_t>& out) {
  const perfdata::U64Array& recorded = sample.callchain;
  size_t user = 0;
  while (user < recorded.size() && recorded[user] != perfdata::kContextUser) {
    out.push_back(recorded[user++]);
  }
  if (frames.empty()) {  // no registers: whatever the kernel made of it
    for (; user < recorded.size(); ++user) out.push_back(recorded[user]);
    return;
  }
  out.push_back(perfdata::kContextUser);
  const size_t first = out.size();
  for (const unwind::Frame& frame : frames) out.push_back(frame.address.avma.value);
  if (end != unwind::StackEnd::kDumpExhausted) return;
  std::vector<uint64_t> chain;
  for (size_t i = user + 1; i < recorded.size() && recorded[i] < perfdata::kContextMax; ++i) {
    chain.push_back(recorded[i]);
  }
  const auto splice = FindSplice(std::span(out).subspan(first), chain);
  if (!splice) return;
  out.resize(first + splice->keep);
  out.insert(out.end(), chain.begin() + static_cast<std::ptrdiff_t>(splice->from), chain.end());
}

}  // namespace stackreel::analyze
