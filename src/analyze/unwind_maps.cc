#include <bit>
#include <unordered_map>
#include <utility>

#include "analyze/analysis.h"

namespace stackreel::analyze {

namespace {

using Entries = std::vector<session::AddressSpace::Entry>;

bool SameEntry(const session::AddressSpace::Entry& a, const session::AddressSpace::Entry& b) {
  return a.start == b.start && a.end == b.end && a.value.module == b.value.module &&
         a.value.offset == b.value.offset && a.value.executable == b.value.executable;
}

// The first executable mapping from `i` on.
size_t SkipData(const std::vector<unwind::UnwindMapping>& mappings, size_t i) {
  while (i < mappings.size() && !mappings[i].executable) ++i;
  return i;
}

bool SameCode(const std::vector<unwind::UnwindMapping>& a,
              const std::vector<unwind::UnwindMapping>& b) {
  size_t i = SkipData(a, 0);
  size_t j = SkipData(b, 0);
  while (i < a.size() && j < b.size()) {
    if (a[i].start != b[j].start || a[i].end != b[j].end || a[i].bias != b[j].bias ||
        a[i].module != b[j].module) {
      return false;
    }
    i = SkipData(a, i + 1);
    j = SkipData(b, j + 1);
  }
  return i == a.size() && j == b.size();
}

}  // namespace

struct UnwindMapsCache::State {
  // As many versions are kept; processes come and go in a recording of a whole system.
  static constexpr size_t kKept = 512;

  session::Session& session;
  std::function<std::shared_ptr<const unwind::UnwindModule>(session::ModuleId)> load;
  std::unordered_map<uint64_t, std::shared_ptr<const unwind::UnwindMaps>> by_version;
  // What was made last. The next one mostly is of the same process, a few data mappings later.
  session::AddressSpacePtr last_space;
  std::shared_ptr<const unwind::UnwindMaps> last_maps;
};

UnwindMapsCache::UnwindMapsCache(
    session::Session& session,
    std::function<std::shared_ptr<const unwind::UnwindModule>(session::ModuleId)> load)
    : state_(std::make_unique<State>(State{session, std::move(load), {}, {}, {}})) {}
UnwindMapsCache::~UnwindMapsCache() = default;

std::shared_ptr<const unwind::UnwindMaps> UnwindMapsCache::Get(
    const session::AddressSpacePtr& maps) {
  const auto it = state_->by_version.find(maps->version());
  if (it != state_->by_version.end()) return it->second;
  if (state_->by_version.size() >= State::kKept) state_->by_version.clear();

  static const Entries kNone;
  const Entries& known = state_->last_space ? state_->last_space->entries() : kNone;
  size_t next_known = 0;
  auto out = std::make_shared<unwind::UnwindMaps>();
  out->version = maps->version();
  out->mappings.reserve(maps->entries().size());
  for (const session::AddressSpace::Entry& entry : maps->entries()) {
    unwind::UnwindMapping& mapping = out->mappings.emplace_back();
    mapping.start = entry.start;
    mapping.end = entry.end;
    while (next_known < known.size() && known[next_known].start < entry.start) ++next_known;
    mapping.bias = next_known < known.size() && SameEntry(known[next_known], entry)
                       ? state_->last_maps->mappings[next_known].bias
                       : state_->session.BiasOf(entry);
    mapping.executable = entry.value.executable;
    std::shared_ptr<const unwind::UnwindModule> module = state_->load(entry.value.module);
    if (module == nullptr) continue;
    mapping.module = module.get();
    if (out->keep.empty() || out->keep.back() != module) out->keep.push_back(std::move(module));
  }
  if (state_->last_maps && SameCode(state_->last_maps->mappings, out->mappings)) {
    out->version = state_->last_maps->version;
  }
  state_->by_version.emplace(maps->version(), out);
  state_->last_space = maps;
  state_->last_maps = out;
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
