// Test code: sites of each kind.
#pragma once

#include <string_view>

#include "patch/hex.h"
#include "patch/site.h"

namespace stackreel::patch {

// A whole site at `address` with these bytes (those of padding first), its stub near.
inline Site FakeSite(SiteKind kind, uint64_t address, std::string_view original) {
  Site site;
  site.kind = kind;
  site.before = kind == SiteKind::kShortJump ? kBranchLength : 0;
  site.address = Avma(address);
  site.original = SiteBytes(Hex(original));
  site.stub = Avma(address + 0x10000);
  site.out_of_line = Avma(address + 0x20000);
  if (const auto patched = MakePatchedForm(site)) site.patched = *patched;
  return site;
}

// push rbp; mov rbp,rsp; sub rsp,16
inline Site FakeJump(uint64_t address) {
  Site site = FakeSite(SiteKind::kJump, address, "55 48 89 e5 48 83 ec 10");
  for (const uint8_t at : {0, 1, 4, 8}) site.map.Add({at, at});
  return site;
}
inline Site FakeNop(uint64_t address) {
  return FakeSite(SiteKind::kNop, address, "0f 1f 44 00 00");
}
inline Site FakeCall(uint64_t address) {
  return FakeSite(SiteKind::kCall, address, "e8 00 10 00 00");
}
// push rbp; pop rbp behind five int3.
inline Site FakeShortJump(uint64_t address) {
  Site site = FakeSite(SiteKind::kShortJump, address, "cc cc cc cc cc 55 5d");
  for (const uint8_t at : {0, 1, 2}) site.map.Add({at, at});
  return site;
}
inline Site FakeSled(uint64_t address) {
  return FakeSite(SiteKind::kSled, address, "eb 09 66 0f 1f 84 00 00 02 00 00");
}
inline Site FakeExitSled(uint64_t address) {
  return FakeSite(SiteKind::kSled, address, "c3 2e 66 0f 1f 84 00 00 02 00 00");
}
inline Site FakeTrap(uint64_t address) { return FakeSite(SiteKind::kTrap, address, "c3"); }

}  // namespace stackreel::patch
