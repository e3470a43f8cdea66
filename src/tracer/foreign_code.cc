#include "tracer/foreign_code.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace stackreel::tracer {
namespace {

constexpr const char* kGo = "Go code: its runtime walks and moves stacks";
constexpr const char* kOcaml = "OCaml code: its runtime finds values by return addresses";
constexpr const char* kHaskell = "Haskell code: it is jumped to, not called";
constexpr const char* kHotspot = "HotSpot finds Java's frames by return addresses of its own";
constexpr Svma kEndOfModule = Svma(UINT64_MAX);

}  // namespace

// Go's linker puts a table of the code into a section, for the runtime: strip(1) leaves it. GHC
// notes how it linked a program.
ForeignCodeFinder::ForeignCodeFinder(const elf::Image& image)
    : has_haskell_(image.FindSection(".debug-ghc-link-info") != nullptr) {
  constexpr auto kTables =
      std::to_array<std::string_view>({".gopclntab", ".data.rel.ro.gopclntab", ".go.buildinfo"});
  has_go_ = std::ranges::any_of(
      kTables, [&](std::string_view name) { return image.FindSection(name) != nullptr; });
}

// - Go's code stands between two symbols.
// - So does that of each unit of ocamlopt, and the assembly of its runtime:
//   camlStdlib__code_begin, camlStdlib__code_end ("__" has been "." and "$" too).
// - What GHC compiles refers to its runtime's stg_…_info, in a library too; its functions are named
//   for what they are: base_GHCziBase_zpzp_info.
// - HotSpot exports what debuggers of Java need. Compiled Java calls functions all over it.
void ForeignCodeFinder::OnSymbol(const elf::Symbol& symbol) {
  constexpr std::string_view kBegin = "code_begin", kEnd = "code_end";
  constexpr auto kHaskellKinds =
      std::to_array<std::string_view>({"_info", "_entry", "_fast", "_slow", "_ret"});
  const std::string_view name = symbol.name;
  has_haskell_ = has_haskell_ || (name.starts_with("stg_") && name.ends_with("_info"));
  if (symbol.section == 0) return;
  const Svma at(symbol.value);
  has_hotspot_ = has_hotspot_ || name == "gHotSpotVMStructs";
  if (name == "runtime.text") go_.start = at;
  if (name == "runtime.etext") go_.end = at;
  if (name.starts_with("caml") && name.ends_with(kBegin)) {
    ocaml_[name.substr(0, name.size() - kBegin.size())].start = at;
  } else if (name.starts_with("caml") && name.ends_with(kEnd)) {
    ocaml_[name.substr(0, name.size() - kEnd.size())].end = at;
  }
  const auto ends = [name](std::string_view kind) { return name.ends_with(kind); };
  if (name == "StgReturn" || std::ranges::any_of(kHaskellKinds, ends)) haskell_.push_back(at);
}

std::vector<ForeignCode> ForeignCodeFinder::Take() const {
  std::vector<ForeignCode> found;
  if (has_hotspot_) found.push_back({Svma(0), kEndOfModule, kHotspot});
  if (has_go_) {
    const bool is_known = go_.start && go_.end && *go_.start < *go_.end;
    found.push_back(is_known ? ForeignCode{*go_.start, *go_.end, kGo}
                             : ForeignCode{Svma(0), kEndOfModule, kGo});
  }
  for (const auto& [unit, extent] : ocaml_) {
    if (!extent.start && !extent.end) continue;
    found.push_back({extent.start.value_or(Svma(0)), extent.end.value_or(kEndOfModule), kOcaml});
  }
  for (const Svma start : has_haskell_ ? haskell_ : std::vector<Svma>()) {
    found.push_back({start, start + 1, kHaskell});
  }
  std::ranges::sort(found, {}, &ForeignCode::start);
  std::vector<ForeignCode> apart;
  for (const ForeignCode& code : found) {
    if (apart.empty() || code.start >= apart.back().end) {
      apart.push_back(code);
    } else {
      apart.back().end = std::max(apart.back().end, code.end);
    }
  }
  return apart;
}

}  // namespace stackreel::tracer
