#include "tracer/site_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "x86/emit.h"
#include "x86/instruction.h"
#include "x86/relocate.h"

namespace stackreel::tracer {
namespace {

constexpr std::array<uint8_t, 4> kMakeFrame = {0x55, 0x48, 0x89, 0xe5};  // push rbp; mov rbp, rsp
constexpr std::array<uint8_t, 4> kMakeFrameToo = {0x55, 0x48, 0x8b, 0xec};

std::string ReasonOf(const x86::SiteError& error) {
  std::string text(NameOf(error.reason));
  if (error.relocate) text += fmt::format(" ({})", NameOf(*error.relocate));
  return text;
}

// What the function does before its site. The stub of a site knows the return address only where
// nothing was pushed, or a frame was made first.
enum class Before : uint8_t { kNothing, kFrame, kOther };

Before WhatComesBefore(const ModuleFunction& function, size_t site_offset) {
  size_t at = 0;
  bool has_frame = false;
  while (at < site_offset) {
    const ByteView rest = function.code.subspan(at);
    const auto instruction = x86::Decode(rest);
    if (!instruction || instruction->flow != x86::Flow::kNext) return Before::kOther;
    if (has_frame || instruction->is_nop || instruction->is_endbr64) {
      at += instruction->length;
      continue;
    }
    const ByteView start = rest.first(std::min(rest.size(), kMakeFrame.size()));
    if (!std::ranges::equal(start, kMakeFrame) && !std::ranges::equal(start, kMakeFrameToo)) {
      return Before::kOther;
    }
    has_frame = true;
    at += kMakeFrame.size();
  }
  if (at != site_offset) return Before::kOther;
  return has_frame ? Before::kFrame : Before::kNothing;
}

bool IsPreparedNop(x86::SiteKind kind) {
  return kind == x86::SiteKind::kNop || kind == x86::SiteKind::kCall ||
         kind == x86::SiteKind::kSled || kind == x86::SiteKind::kNops;
}

class Planner {
 public:
  Planner(const PlacedModule& module, const PlanOptions& options, Rooms& rooms)
      : module_(module), options_(options), rooms_(rooms) {}

  void Plan(const SiteWish& wish) {
    if (!planned_.insert(wish.target->start).second) return;
    auto site = PlanOne(wish);
    if (site) {
      plan_.sites.push_back(std::move(*site));
    } else {
      plan_.refused.push_back({wish.function, std::move(site.error())});
    }
  }
  SitePlan Take() && {
    std::ranges::sort(plan_.sites, {},
                      [](const PlannedSite& planned) { return planned.site.begin(); });
    return std::move(plan_);
  }

 private:
  using Outcome = std::expected<PlannedSite, std::string>;

  [[nodiscard]] Outcome PlanOne(const SiteWish& wish) {
    const ModuleFunction& function = *wish.target;
    x86::SiteOptions site_options = {.has_shadow_stack = options_.has_shadow_stack,
                                     .has_branch_tracking = options_.has_branch_tracking,
                                     .allow_trap = options_.allow_trap};
    std::optional<agent::StubKind> stub_kind;
    const auto chosen = Choose(wish, site_options, stub_kind);
    if (!chosen) {
      std::string reason = ReasonOf(chosen.error());
      site_options.allow_trap = true;
      if (!options_.allow_trap && !options_.why_no_trap.empty() &&
          module_.code->ChooseSite(function, site_options)) {
        reason += fmt::format("; {}", options_.why_no_trap);
      }
      return std::unexpected(std::move(reason));
    }
    // Each round would arrive at the stub, with no return address where it looks for one.
    if (chosen->is_loop_head && !IsPreparedNop(chosen->kind)) {
      return std::unexpected("its own loop begins at its first byte");
    }
    PlannedSite planned;
    planned.stub_kind = *stub_kind;
    return Build(wish, *chosen, std::move(planned));
  }

  std::expected<x86::Site, x86::SiteError> Choose(const SiteWish& wish, x86::SiteOptions options,
                                                  std::optional<agent::StubKind>& stub_kind) const {
    auto chosen = module_.code->ChooseSite(*wish.target, options);
    stub_kind = chosen ? StubFor(wish, *chosen) : wish.stub;
    if (stub_kind) return chosen;
    // What the compiler has made room for is of no use; the entry may be.
    options.allow_prepared = false;
    stub_kind = wish.stub;
    return module_.code->ChooseSite(*wish.target, options);
  }

  // Nothing if a stub there would not know the return address.
  static std::optional<agent::StubKind> StubFor(const SiteWish& wish, const x86::Site& site) {
    switch (WhatComesBefore(*wish.target, site.address - wish.target->start)) {
      case Before::kNothing:
        return wish.stub;
      case Before::kFrame:
        if (wish.stub == agent::StubKind::kCall) return agent::StubKind::kFramedCall;
        return std::nullopt;
      case Before::kOther:
        return std::nullopt;
    }
    return std::nullopt;
  }

  [[nodiscard]] Outcome Build(const SiteWish& wish, const x86::Site& chosen, PlannedSite planned) {
    patch::Site& site = planned.site;
    site.function = wish.function;
    site.kind = chosen.kind;
    site.address = Avma(chosen.address.value + module_.bias);
    const Svma begin = chosen.kind == x86::SiteKind::kShortJump ? chosen.padding : chosen.address;
    site.before = static_cast<uint8_t>(chosen.address - begin);
    const size_t length = site.before + std::max(chosen.length, chosen.piece_length);
    const ByteView loaded = module_.code->image().BytesAt(begin);
    if (length > patch::kMaxSiteLength || loaded.size() < length) {
      return std::unexpected(std::string(ToString(patch::Refusal::kTooShort)));
    }
    site.original = patch::SiteBytes(loaded.first(length));

    const ByteView piece = loaded.subspan(site.before);
    // A nop is not worth a copy; a sled is jumped over.
    const bool copies = chosen.kind != x86::SiteKind::kNop && chosen.kind != x86::SiteKind::kSled;
    const size_t at_least =
        chosen.piece_length == 0 ? 0 : std::min<size_t>(chosen.piece_length, x86::kMaxPatchLength);
    // The copy's length does not depend on where it stands.
    auto copy = copies ? x86::Relocate(piece.first(chosen.piece_length), site.address, site.address,
                                       at_least)
                       : x86::RelocatedCode{};
    if (!copy) return std::unexpected(std::string(x86::NameOf(copy.error())));
    const size_t head = agent::StubHeadLength(planned.stub_kind);
    const auto slot = rooms_.Take(head + copy->view().size() + x86::kJumpLength, module_.range);
    if (!slot) return std::unexpected(slot.error().message);
    planned.slot = slot->range;
    site.stub = slot->range.start;
    site.out_of_line = slot->range.start + head;
    auto outcome = Fill(*slot, piece.first(chosen.piece_length), copies, at_least, planned);
    if (!outcome) {
      rooms_.GiveBack(slot->range);
      return std::unexpected(outcome.error());
    }
    return planned;
  }

  // Everything that depends on where the stub stands.
  [[nodiscard]] std::expected<void, std::string> Fill(const Rooms::Slot& slot, ByteView piece,
                                                      bool copies, size_t at_least,
                                                      PlannedSite& planned) const {
    patch::Site& site = planned.site;
    x86::RelocatedCode copy;
    if (copies) {
      auto relocated = x86::Relocate(piece, site.address, site.out_of_line, at_least,
                                     {.has_shadow_stack = options_.has_shadow_stack});
      if (!relocated) return std::unexpected(std::string(x86::NameOf(relocated.error())));
      copy = *relocated;
      site.map = copy.map;
    }
    auto stub = MakeStub(planned.stub_kind, slot.room, site, copy.view(), copy.falls_through);
    if (!stub) return std::unexpected(std::string(ToString(stub.error())));
    if (stub->size() > planned.slot.size()) return std::unexpected("its stub is too long");
    planned.stub_bytes = std::move(*stub);
    const auto patched = MakePatchedForm(site);
    if (!patched) return std::unexpected(std::string(ToString(patched.error())));
    site.patched = *patched;
    if (auto status = CheckSite(site); !status) return std::unexpected(status.error().message);
    return {};
  }

  const PlacedModule& module_;
  const PlanOptions& options_;
  Rooms& rooms_;
  std::set<Svma> planned_;
  SitePlan plan_;
};

}  // namespace

SitePlan PlanSites(const PlacedModule& module, std::span<const SiteWish> wishes,
                   const PlanOptions& options, Rooms& rooms) {
  Planner planner(module, options, rooms);
  for (const SiteWish& wish : wishes) planner.Plan(wish);
  return std::move(planner).Take();
}

}  // namespace stackreel::tracer
