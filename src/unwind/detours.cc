#include "unwind/detours.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace stackreel::unwind {
namespace {

// Of one function; more are hardly told apart by what leads on from them.
constexpr size_t kMostKnown = 64;

}  // namespace

const DetourRow* Detour::RowAt(uint64_t pc) const {
  const uint64_t offset = pc - begin;
  const DetourRow* found = nullptr;
  for (const DetourRow& row : rows) {
    if (row.offset > offset) break;
    found = &row;
  }
  return found;
}

void Detours::SetStubs(std::vector<Detour> stubs) {
  stubs_ = std::move(stubs);
  std::ranges::sort(stubs_, {}, &Detour::begin);
  all_ = {};
  if (!stubs_.empty()) all_ = {stubs_.front().begin, stubs_.back().end};
}

const Detour* Detours::FindStub(uint64_t pc) const {
  auto it = std::ranges::upper_bound(stubs_, pc, {}, &Detour::begin);
  if (it == stubs_.begin()) return nullptr;
  --it;
  return pc < it->end ? &*it : nullptr;
}

void Detours::SetOpen(std::vector<OpenReturn> open) {
  open_ = std::move(open);
  std::ranges::sort(open_, [](const OpenReturn& a, const OpenReturn& b) {
    return std::tie(a.place, b.start) < std::tie(b.place, a.start);
  });
  Learn(open_);
}

void Detours::Learn(std::span<const OpenReturn> open) {
  for (const OpenReturn& call : open) {
    std::vector<uint64_t>& known = known_[call.return_point];
    const auto at = std::ranges::find(known, call.return_address);
    if (at != known.end()) {
      std::rotate(at, at + 1, known.end());
      continue;
    }
    if (known.size() == kMostKnown) known.erase(known.begin());
    known.push_back(call.return_address);
  }
}

void Detours::FindReturns(uint64_t place, uint64_t return_point, uint64_t ticks,
                          Candidates& out) const {
  out.sure.reset();
  out.likely.clear();
  const auto add = [&out](uint64_t address) {
    if (std::ranges::find(out.likely, address) == out.likely.end()) out.likely.push_back(address);
  };
  for (auto it = std::ranges::lower_bound(open_, place, {}, &OpenReturn::place);
       it != open_.end() && it->place == place; ++it) {
    if (it->return_point != return_point) continue;
    if (it->is_open && ticks != 0 && it->start <= ticks) {
      out.sure = *it;
      return;
    }
    add(it->return_address);
  }
  const auto known = known_.find(return_point);
  if (known == known_.end()) return;
  for (auto it = known->second.rbegin(); it != known->second.rend(); ++it) add(*it);
}

}  // namespace stackreel::unwind
