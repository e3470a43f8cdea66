#include "tracer/dynamic_linker.h"

#include <elf.h>
#include <link.h>

#include <cstddef>

namespace stackreel::tracer {

namespace {

// DT_DEBUG of a module, which only an executable has, and the dynamic linker fills in.
std::optional<Avma> DebugEntryOf(const Target& target, const TargetModule& module) {
  if (module.file == nullptr || !module.why_not.empty()) return std::nullopt;
  const auto image = elf::Image::Parse(module.file->bytes());
  if (!image) return std::nullopt;
  for (const elf::Segment& segment : image->segments()) {
    if (segment.type != PT_DYNAMIC) continue;
    const Avma table(segment.vaddr + module.bias);
    for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= segment.mem_size; at += sizeof(Elf64_Dyn)) {
      const auto entry = target.ReadObject<Elf64_Dyn>(table + at);
      if (!entry || entry->d_tag == DT_NULL) break;
      if (entry->d_tag == DT_DEBUG && entry->d_un.d_ptr != 0) return Avma(entry->d_un.d_ptr);
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<DynamicLinker> FindDynamicLinker(const Target& target,
                                               std::span<const TargetModule> modules) {
  for (const TargetModule& module : modules) {
    const auto at = DebugEntryOf(target, module);
    if (!at) continue;
    const auto function = target.ReadObject<uint64_t>(*at + offsetof(r_debug, r_brk));
    if (!function || *function == 0) continue;
    return DynamicLinker{.state = *at, .function = Avma(*function)};
  }
  return std::nullopt;
}

}  // namespace stackreel::tracer
