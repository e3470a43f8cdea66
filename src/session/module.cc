#include "session/module.h"

#include <algorithm>

namespace stackreel::session {
namespace {

constexpr uint32_t kProtExec = 4;
constexpr uint32_t kMapHugetlb = 0x40000;
constexpr std::string_view kDeleted = " (deleted)";

bool IsVdso(std::string_view name) {
  return name == "[vdso]" || name == "[vdso32]" || name == "[vdsox32]";
}

// Memory that has no file, whatever its name says. A perf map may name the code in it.
bool IsAnonymous(std::string_view name, uint32_t flags) {
  return (flags & kMapHugetlb) != 0 || name == "//anon" || name.starts_with("/dev/zero") ||
         name.starts_with("/anon_hugepage") || name.starts_with("[stack") || name == "[heap]" ||
         name.starts_with("/SYSV") || name.starts_with("[anon");
}

// "…/jit-123.dump": a JIT compiler maps a page of its dump, executable, to tell that there is one.
bool IsJitDump(std::string_view name) {
  name = name.substr(name.rfind('/') + 1);
  if (!name.starts_with("jit-") || !name.ends_with(".dump")) return false;
  name.remove_prefix(4);
  name.remove_suffix(5);
  return !name.empty() && name.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

ModuleName ClassifyMapping(std::string_view filename, uint32_t pid, bool executable,
                           uint32_t map_flags) {
  ModuleName name;
  if (IsVdso(filename)) {
    name.key = {ModuleKind::kVdso, std::string(filename), {}};
    return name;
  }
  if (filename == "[vsyscall]") {
    name.key = {ModuleKind::kVsyscall, std::string(filename), {}};
    return name;
  }
  if (filename == kAgentMapping) {  // not of a stack, as it begins
    name.key = {ModuleKind::kAnonymous, std::string(filename), {}};
    return name;
  }
  if (IsAnonymous(filename, map_flags)) {
    if (executable) {
      name.key = {ModuleKind::kJit, "/tmp/perf-" + std::to_string(pid) + ".map", {}, pid};
    } else {
      name.key = {ModuleKind::kAnonymous, std::string(filename), {}};
    }
    return name;
  }
  if (filename.ends_with(kDeleted)) {
    filename.remove_suffix(kDeleted.size());
    name.deleted = true;
  }
  if (executable && IsJitDump(filename)) {
    name.key = {ModuleKind::kJitDump, std::string(filename), {}, pid};
  } else if (filename.starts_with("/memfd:")) {
    name.key = {executable ? ModuleKind::kJit : ModuleKind::kAnonymous,
                std::string(filename),
                {},
                executable ? pid : 0};
  } else if (filename.starts_with("[") || filename.starts_with("anon_inode:") || filename.empty()) {
    name.key = {ModuleKind::kAnonymous, std::string(filename), {}};
  } else {
    name.key = {ModuleKind::kFile, std::string(filename), {}};
  }
  return name;
}

const LoadSegment* SegmentOfMapping(const std::vector<LoadSegment>& segments, FileOffset offset,
                                    uint64_t length, bool executable) {
  const LoadSegment* best = nullptr;
  uint64_t best_overlap = 0;
  const uint64_t first = offset.value;
  const uint64_t last = first + std::min(length, UINT64_MAX - first);
  for (const LoadSegment& segment : segments) {
    const uint64_t segment_end =
        segment.offset + std::min(segment.file_size, UINT64_MAX - segment.offset);
    const uint64_t start = std::max(first, segment.offset);
    const uint64_t end = std::min(last, segment_end);
    if (start >= end) continue;
    const uint64_t overlap = end - start;
    const bool fits = segment.executable == executable;
    const bool best_fits = best != nullptr && best->executable == executable;
    if (best == nullptr || (fits && !best_fits) || (fits == best_fits && overlap > best_overlap)) {
      best = &segment;
      best_overlap = overlap;
    }
  }
  return best;
}

const LoadSegment* DataSegmentAt(const std::vector<LoadSegment>& segments, FileOffset offset) {
  const LoadSegment* only = nullptr;
  for (const LoadSegment& segment : segments) {
    const bool covers =
        segment.offset <= offset.value && offset.value - segment.offset < segment.file_size;
    if (segment.executable || !covers) continue;
    if (only != nullptr) return nullptr;
    only = &segment;
  }
  return only;
}

std::vector<LoadSegment> LoadSegmentsOf(const elf::Image& image) {
  constexpr uint32_t kPtLoad = 1;
  std::vector<LoadSegment> segments;
  for (const elf::Segment& segment : image.segments()) {
    if (segment.type != kPtLoad) continue;
    segments.push_back(
        {segment.offset, segment.file_size, segment.vaddr, segment.mem_size, segment.executable()});
  }
  return segments;
}

bool IsExecutable(uint32_t prot) { return (prot & kProtExec) != 0; }

}  // namespace stackreel::session
