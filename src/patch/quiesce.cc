#include "patch/quiesce.h"

#include <algorithm>

namespace stackreel::patch {
namespace {

constexpr uint64_t kSyscallLength = 2;  // syscall, sysenter and int 0x80 alike

// The site that holds `ip`, its index; sites.size() if there is none.
size_t FindSite(std::span<const Site* const> sites, Avma ip) {
  const auto after = std::upper_bound(sites.begin(), sites.end(), ip,
                                      [](Avma at, const Site* site) { return at < site->begin(); });
  if (after == sites.begin()) return sites.size();
  const auto index = static_cast<size_t>(after - sites.begin()) - 1;
  return ip < sites[index]->end() ? index : sites.size();
}

ClearDecision LeaveOriginal(const Site& site, size_t index, Avma ip, Avma instruction) {
  if (instruction <= site.address) {
    // In the padding there is nobody; at the first byte whatever stands there is run whole. A
    // system call that began there has its end inside, so it moves as one.
    if (ip == instruction || instruction != site.address) return {};
    if (site.map.To(0)) return {ClearAction::kMove, site.out_of_line + (ip - instruction), index};
    return {ClearAction::kDefer, {}, index};
  }
  if (const auto to = site.MovedOutOfLine(instruction)) {
    return {ClearAction::kMove, *to + (ip - instruction), index};
  }
  return {ClearAction::kDefer, {}, index};
}

}  // namespace

bool NeedsClearing(const Site& site, Form inside) {
  if (inside == Form::kPatched) return site.Landing().has_value();
  // Two entries: one instruction and the end.
  return SwitchesByTrap(site.kind) && site.map.size() > 2;
}

ClearDecision DecideClearing(const CodePosition& position, std::span<const Site* const> sites,
                             Form inside) {
  const Avma ip = position.ip;
  // A restarted system call runs again from its instruction, which is what must not be overwritten.
  const Avma instruction = position.may_restart ? ip - kSyscallLength : ip;
  size_t index = FindSite(sites, instruction);
  if (index == sites.size() && position.may_restart) index = FindSite(sites, ip);
  if (index == sites.size() || !NeedsClearing(*sites[index], inside)) return {};
  const Site& site = *sites[index];
  if (inside == Form::kPatched) {
    if (ip == site.Landing()) return {ClearAction::kMove, site.address, index};
    return {};
  }
  if (position.trap_pending) {
    if (ip <= site.address + 1) return {};
    // A trap of the program's own inside the site; its handler must see where it was.
    return {ClearAction::kDefer, {}, index};
  }
  return LeaveOriginal(site, index, ip, instruction);
}

}  // namespace stackreel::patch
