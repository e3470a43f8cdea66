#include "unwind/unwind.h"

#include <elf.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "unwind/aarch64/registers.h"
#include "unwind/x86_64/registers.h"

namespace stackreel::unwind {
namespace {

// A section's bytes; decompressed ones are kept in `owned`. Empty if it is absent or bad.
ByteView SectionView(const elf::Image& image, std::string_view name,
                     std::vector<elf::SectionBytes>& owned) {
  const elf::Section* section = image.FindSection(name);
  if (section == nullptr || section->type == SHT_NOBITS) return {};
  auto bytes = image.ReadSection(*section);
  if (!bytes) return {};
  const ByteView view = bytes->view();
  owned.push_back(*std::move(bytes));
  return view;
}

Svma SectionSvma(const elf::Image& image, std::string_view name) {
  const elf::Section* section = image.FindSection(name);
  return Svma(section == nullptr ? 0 : section->addr);
}

// Where the section table is gone, program headers still lead to .eh_frame_hdr, and that to
// .eh_frame, whose end is not known: its segment's end, terminated by a zero length.
void FindBySegments(const elf::Image& image, dwarf::FrameSections& sections) {
  for (const elf::Segment& segment : image.segments()) {
    if (segment.type != PT_GNU_EH_FRAME) continue;
    const ByteView bytes = image.BytesAt(Svma(segment.vaddr));
    sections.eh_frame_hdr = bytes.first(std::min<uint64_t>(bytes.size(), segment.file_size));
    sections.eh_frame_hdr_svma = Svma(segment.vaddr);
    const auto eh_frame = dwarf::EhFrameAddress(sections);
    if (!eh_frame) return;
    sections.eh_frame = image.BytesAt(*eh_frame);
    sections.eh_frame_svma = *eh_frame;
    return;
  }
}

dwarf::FrameSections FindSections(const elf::Image& image, const elf::Image* debug_image,
                                  std::vector<elf::SectionBytes>& owned) {
  dwarf::FrameSections sections;
  sections.endian = image.endian();
  sections.is_64bit = image.elf_class() == elf::Class::k64;
  sections.machine = image.machine();
  sections.eh_frame = SectionView(image, ".eh_frame", owned);
  sections.eh_frame_svma = SectionSvma(image, ".eh_frame");
  sections.eh_frame_hdr = SectionView(image, ".eh_frame_hdr", owned);
  sections.eh_frame_hdr_svma = SectionSvma(image, ".eh_frame_hdr");
  if (sections.eh_frame.empty()) FindBySegments(image, sections);
  sections.debug_frame = SectionView(image, ".debug_frame", owned);
  if (sections.debug_frame.empty() && debug_image != nullptr) {
    sections.debug_frame = SectionView(*debug_image, ".debug_frame", owned);
  }
  sections.text_svma = SectionSvma(image, ".text");
  sections.data_svma = SectionSvma(image, ".got");
  sections.loaded_bytes = [&image](Svma svma) { return image.BytesAt(svma); };
  return sections;
}

uint32_t NextSerial() {
  static std::atomic<uint32_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

Arch ArchOf(uint16_t elf_machine, uint64_t regs_abi) {
  const bool is_32bit = (regs_abi & kRegsAbi32) != 0;
  switch (elf_machine) {
    case 0:
    case EM_X86_64:
      return is_32bit ? Arch::kX86 : Arch::kX86_64;
    case EM_386:
      return Arch::kX86;
    case EM_AARCH64:
      return is_32bit ? Arch::kOther : Arch::kAarch64;
    default:
      return Arch::kOther;
  }
}

unsigned StackPointerOf(Arch arch) {
  return arch == Arch::kAarch64 ? unsigned{aarch64::Cpu::kSp} : x86_64::kPerfSp;
}

const char* StackEndName(StackEnd end) {
  switch (end) {
    case StackEnd::kRoot:
      return "root";
    case StackEnd::kDumpExhausted:
      return "dump exhausted";
    case StackEnd::kNoMapping:
      return "no mapping";
    case StackEnd::kNoCfi:
      return "no CFI";
    case StackEnd::kBadCfa:
      return "bad CFA";
    case StackEnd::kNoAdvance:
      return "no advance";
    case StackEnd::kBadCfi:
      return "bad CFI";
    case StackEnd::kNoRegisters:
      return "no registers";
    case StackEnd::kUnsupported:
      return "unsupported architecture";
    case StackEnd::kTraced:
      return "traced return address";
    case StackEnd::kLimit:
      return "frame limit";
  }
  return "unknown";
}

std::shared_ptr<const UnwindModule> UnwindModule::Make(const elf::Image* image,
                                                       const elf::Image* debug_image) {
  std::vector<elf::SectionBytes> owned;
  dwarf::FrameSections sections;
  if (image != nullptr) sections = FindSections(*image, debug_image, owned);
  return std::make_shared<const UnwindModule>(dwarf::FrameTable(sections), image, NextSerial(),
                                              std::move(owned));
}

std::shared_ptr<const UnwindModule> UnwindModule::OfSections(const dwarf::FrameSections& sections,
                                                             std::vector<elf::SectionBytes> owned) {
  return std::make_shared<const UnwindModule>(dwarf::FrameTable(sections), nullptr, NextSerial(),
                                              std::move(owned));
}

UnwindModule::UnwindModule(dwarf::FrameTable frames, const elf::Image* image, uint32_t serial,
                           std::vector<elf::SectionBytes> owned)
    : frames_(std::move(frames)), image_(image), serial_(serial), owned_(std::move(owned)) {}

ByteView UnwindModule::BytesAt(Svma svma) const {
  return image_ == nullptr ? ByteView() : image_->BytesAt(svma);
}

ByteView UnwindModule::ReadOnlyBytesAt(Svma svma) const {
  if (image_ == nullptr) return {};
  for (const elf::Segment& segment : image_->segments()) {
    if (segment.type == PT_LOAD && svma.value >= segment.vaddr &&
        svma.value - segment.vaddr < segment.file_size) {
      return (segment.flags & PF_W) != 0 ? ByteView() : image_->BytesAt(svma);
    }
  }
  return {};
}

const UnwindMapping* UnwindMaps::Find(uint64_t avma) const {
  auto it = std::upper_bound(
      mappings.begin(), mappings.end(), avma,
      [](uint64_t value, const UnwindMapping& mapping) { return value < mapping.start; });
  if (it == mappings.begin()) return nullptr;
  --it;
  return avma < it->end ? &*it : nullptr;
}

const UnwindMapping* UnwindMaps::FindCode(uint64_t pc, bool exact) const {
  const UnwindMapping* mapping = Find(exact ? pc : pc - 1);
  if (mapping != nullptr && mapping->executable) return mapping;
  if (exact) return nullptr;
  mapping = Find(pc);
  return mapping != nullptr && mapping->executable ? mapping : nullptr;
}

}  // namespace stackreel::unwind
