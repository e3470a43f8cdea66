#include "views/branch_text.h"

#include <fmt/format.h>

#include <array>
#include <iterator>

namespace stackreel::views {
namespace {

// PERF_BR_* of linux/perf_event.h, bits 20-23 of the flags.
constexpr std::array kKinds = {"",         "COND", "UNCOND",  "IND",    "CALL",
                               "IND_CALL", "RET",  "SYSCALL", "SYSRET", "COND_CALL",
                               "COND_RET", "ERET", "IRQ",     "SERROR", "NO_TX"};
// PERF_BR_NEW_*, bits 26-29, where the kind is PERF_BR_EXTEND_ABI.
constexpr std::array kNewKinds = {"FAULT_ALGN", "FAULT_DATA", "FAULT_INST", "ARCH_1",
                                  "ARCH_2",     "ARCH_3",     "ARCH_4",     "ARCH_5"};

std::string_view BranchKind(uint64_t flags) {
  const size_t kind = (flags >> 20) & 0xf;
  if (kind < kKinds.size()) return kKinds[kind];
  const size_t new_kind = (flags >> 26) & 0xf;
  return new_kind < kNewKinds.size() ? kNewKinds[new_kind] : "";
}

}  // namespace

void AppendBranches(const perfdata::BranchArray& branches, std::string_view lead,
                    const AppendPlace& place, std::string& out) {
  for (size_t i = 0; i < branches.size(); ++i) {
    const perfdata::BranchEntry branch = branches[i];
    const auto has = [&branch](int bit) { return ((branch.flags >> bit) & 1) != 0; };
    out += lead;
    place(branch.from, out);
    out += '/';
    place(branch.to, out);
    fmt::format_to(std::back_inserter(out), "/{}/{}/{}/{}/{} ",
                   has(0)   ? 'M'
                   : has(1) ? 'P'
                            : '-',
                   has(2) ? 'X' : '-', has(3) ? 'A' : '-', (branch.flags >> 4) & 0xffff,
                   BranchKind(branch.flags));
  }
}

}  // namespace stackreel::views
