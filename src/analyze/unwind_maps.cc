#include <bit>
#include <unordered_map>
#include <utility>

#include "analyze/analysis.h"

namespace stackreel::analyze {

struct UnwindMapsCache::State {
  // As many versions are kept; processes come and go in a recording of a whole system.
  static constexpr size_t kKept = 512;

  session::Session& session;
  std::function<std::shared_ptr<const unwind::UnwindModule>(session::ModuleId)> load;
  std::unordered_map<uint64_t, std::shared_ptr<const unwind::UnwindMaps>> by_version;
};

UnwindMapsCache::UnwindMapsCache(
    session::Session& session,
    std::function<std::shared_ptr<const unwind::UnwindModule>(session::ModuleId)> load)
    : state_(std::make_unique<State>(State{session, std::move(load), {}})) {}
UnwindMapsCache::~UnwindMapsCache() = default;

std::shared_ptr<const unwind::UnwindMaps> UnwindMapsCache::Get(
    const session::AddressSpacePtr& maps) {
  const auto it = state_->by_version.find(maps->version());
  if (it != state_->by_version.end()) return it->second;
  if (state_->by_version.size() >= State::kKept) state_->by_version.clear();

  auto out = std::make_shared<unwind::UnwindMaps>();
  out->version = maps->version();
  out->mappings.reserve(maps->entries().size());
  for (const session::AddressSpace::Entry& entry : maps->entries()) {
    unwind::UnwindMapping& mapping = out->mappings.emplace_back();
    mapping.start = entry.start;
    mapping.end = entry.end;
    mapping.bias = state_->session.BiasOf(entry);
    mapping.executable = entry.value.executable;
    std::shared_ptr<const unwind::UnwindModule> module = state_->load(entry.value.module);
    if (module == nullptr) continue;
    mapping.module = module.get();
    if (out->keep.empty() || out->keep.back() != module) out->keep.push_back(std::move(module));
  }
  state_->by_version.emplace(maps->version(), out);
  return out;
}

std::optional<unwind::Registers> RegistersOf(const perfdata::SampledRegs& regs) {
  constexpr uint64_t kAbiNone = 0;
  if (regs.abi == kAbiNone || regs.values.empty()) return std::nullopt;
  unwind::Registers out;
  size_t next = 0;
  for (uint64_t left = regs.mask; left != 0 && next < regs.values.size(); left &= left - 1) {
    const auto reg = static_cast<unsigned>(std::countr_zero(left));
    const uint64_t value = regs.values[next++];
    if (reg < unwind::Registers::kMax) out.Set(reg, value);
  }
  return out;
}

}  // namespace stackreel::analyze
